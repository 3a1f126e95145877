"""What the models of all hand-written files have in common, and how their errors are told."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from mvstack.model.text import Text, expected
from mvstack.model.yamlfile import Place, YamlFile
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.words import listed, nearest

EMPTY_LIST: Any = Field(default_factory=lambda: [])
"""A field's default. For `list` itself pydantic parses Python's words on it: 0.2 ms a field."""


class Strict(BaseModel):
    """A mapping with known fields only, whose values are not converted from other types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    _file: YamlFile | None = PrivateAttr(default=None)
    _place: Place = PrivateAttr(default=())

    def at(self, *place: str | int) -> str:
        """``file:line`` of a place in the file that this was read from; "" without a file."""
        return self._file.where((*self._place, *place)) if self._file else ""

    def stands(self, file: YamlFile | None, *place: str | int) -> None:
        """Say that this part of a file was read from there, wherever it is put later."""
        self._file, self._place = file, place


class Reasoned(Strict):
    """What is there for a reason, and where that reason comes from."""

    why: Text
    source: Text


M = TypeVar("M", bound=Strict)
KINDS: dict[type, str] = {list: "a list", str: "text without fields"}


def validated(model: type[M], file: YamlFile) -> M:
    """``file`` as an instance of ``model``.

    Raises InvalidInput with one problem for every error of the file, in the order of its lines.
    """
    if not isinstance(file.data, dict):
        kind = "empty" if file.data is None else KINDS.get(type(file.data), "a single value")
        raise InvalidInput(
            f"a mapping of fields is expected and the file is {kind}",
            file.where(()),
            allowed=listed(model.model_fields),
            todo="write `field: value` lines; docs/ describes the fields of each kind of file",
        )
    try:
        made = model.model_validate(file.data)
    except ValidationError as error:
        problems = [
            (file.line(_place(file, item["loc"])), _problem(file, model, item))
            for item in error.errors()
        ]
        problems.sort(key=lambda pair: pair[0])
        raise InvalidInput(
            *(problem for _, problem in problems), outcome="Nothing was changed."
        ) from None
    made._file = file
    return made


def first_error(error: ValidationError) -> str:
    """The first error of a file that a machine wrote, in one line."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}".removeprefix(": ")


def _place(file: YamlFile, loc: tuple[str | int, ...]) -> Place:
    """The part of pydantic's location that exists in the file.

    Pydantic adds names of its own (a union's branch, a validator) which are no keys of the file.
    """
    place: Place = ()
    node: Any = file.data
    for part in loc:
        inside = part in node if isinstance(node, dict) else False
        if isinstance(node, list) and isinstance(part, int):
            inside = part < len(node)
        if not inside:
            break
        node = node[part]
        place = (*place, part)
    return place


def _problem(file: YamlFile, model: type[BaseModel], item: Any) -> Problem:
    loc = tuple(item["loc"])
    if loc and loc[-1] == "[key]":
        loc = loc[:-1]
    name = next((part for part in reversed(loc) if isinstance(part, str)), "")
    context = ": ".join(str(part) for part in loc[:-1])
    where = file.where(_place(file, loc)) + (f": {context}" if context else "")
    kind = item["type"]
    if kind == "extra_forbidden":
        return _unknown("field", item, name, where, _fields_at(model, loc[:-1]))
    if kind == "literal_error":
        choices = item["ctx"]["expected"].replace(" or ", ", ").split(", ")
        words = [word.strip("'") for word in choices]
        return _unknown("word", item, str(item["input"]), where, words, name)
    if kind == "unknown_word":
        unknown = _unknown("word", item, str(item["input"]), where, item["ctx"]["allowed"], name)
        todo = f"use one of these, or add a row to environments/policy/{item['ctx']['file']}"
        return replace(unknown, todo=todo)
    if kind == "missing":
        return Problem(f"{name}: this field must be given", where, todo=f"add a line `{name}: …`")
    if item["input"] is None and len(loc) > 1:
        todo = "fill it in (a comment there may say why it is empty), or remove the line"
        return Problem(f"{name}: nothing is given", where, todo=todo)
    if kind == "string_type" and isinstance(item["input"], (int, float, date)):
        return Problem(
            f"{name}: text is expected and YAML reads this as a {type(item['input']).__name__}",
            where,
            found=f"{name}: {item['input']}",
            todo=f'put it in quotes: {name}: "…" (without them 4.10 is the number 4.1)',
        )
    message = expected(item)
    return Problem(f"{name}: {message}" if name else message, where, found=_short(item["input"]))


def _unknown(
    what: str, item: Any, said: str, where: str, allowed: list[str], name: str = ""
) -> Problem:
    """A field or a word that nobody knows, with the nearest that is known."""
    name = name or said
    close = nearest(said, allowed)
    return Problem(
        f"{name}: unknown {what}" + (f"; did you mean {close}?" if close else ""),
        where,
        found=f"{name}: {_short(item['input'])}",
        allowed=listed([word for word in allowed if word]),
        nearest=close,
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fields_at(model: type[BaseModel], loc: tuple[Any, ...]) -> list[str]:
    """The fields that the model at ``loc`` below ``model`` knows."""
    parts = iter(loc)
    for part in parts:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        model = next(_models(annotation), model)
        if get_origin(annotation) in (dict, list):
            next(parts, None)  # the key or the number within it
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation such as ``dict[str, Model | None]`` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
