"""The value of an expression in a recipe, where it can be told without running the recipe."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any


class Unread(Exception):
    """This expression's value depends on what only Spack or the machine knows."""


class Words(list[str]):
    """The values of a variant, with what its maker adds; each call on it returns it again."""

    default: str = ""
    conditional: dict[str, str]

    def __init__(self, values: Iterable[str] = ()) -> None:
        super().__init__(values)
        self.conditional = {}


class Conditional(list[str]):
    """``conditional("a", "b", when=…)``: values that exist under a condition."""

    def __init__(self, values: Iterable[str], when: str) -> None:
        super().__init__(values)
        self.when = when


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Mod: lambda left, right: left % right,
    ast.Sub: lambda left, right: left - right,
    ast.BitOr: lambda left, right: left | right,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "frozenset": frozenset,
    "len": len,
    "list": list,
    "set": set,
    "sorted": sorted,
    "str": str,
    "tuple": tuple,
}
# Constants of Spack's own classes, one value standing for all: enough to read what a loop declares.
_SPACKS: dict[str, Any] = {
    "CudaPackage.cuda_arch_values": ("80",),
    "ROCmPackage.amdgpu_targets": ("gfx90a",),
}
_BUILTINS: dict[str, Any] = {"bool": bool, "str": str, "True": True, "False": False, "None": None}


def value_of(node: ast.expr | None, names: dict[str, Any]) -> Any:
    """The value of ``node``, with ``names`` known. Raises Unread."""
    try:
        return _value(node, names)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Unread(ast.unparse(node) if node is not None else "") from error


def arguments_of(call: ast.Call, names: dict[str, Any]) -> list[Any]:
    """The values of a call's plain arguments, those after a star among them. Raises Unread."""
    return list(value_of(ast.List(elts=call.args), names))


def _value(node: ast.expr | None, names: dict[str, Any]) -> Any:
    match node:
        case None:
            return None
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name] if name in names else _BUILTINS[name]
        case ast.Attribute():
            return _SPACKS[ast.unparse(node)]
        case ast.Tuple(elts=parts):
            return tuple(_each(parts, names))
        case ast.List(elts=parts):
            return list(_each(parts, names))
        case ast.Set(elts=parts):
            return set(_each(parts, names))
        case ast.Dict(keys=keys, values=values):
            return {_value(k, names): _value(v, names) for k, v in zip(keys, values, strict=True)}
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.JoinedStr(values=parts):
            return "".join(_piece(part, names) for part in parts)
        case ast.Subscript(value=inner, slice=index):
            return _value(inner, names)[_value(index, names)]
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(_value(left, names), op, _value(right, names))
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return _comprehended(node, names)
        case ast.Call():
            return _called(node, names)
    raise Unread(ast.unparse(node))


def _each(parts: list[ast.expr], names: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        if isinstance(part, ast.Starred):
            found += list(_value(part.value, names))
        else:
            found.append(_value(part, names))
    return found


def _piece(part: ast.expr, names: dict[str, Any]) -> str:
    if isinstance(part, ast.FormattedValue):
        return str(_value(part.value, names))
    return str(_value(part, names))


def _compared(left: Any, op: ast.cmpop, right: Any) -> bool:
    if isinstance(op, (ast.Eq, ast.NotEq)):
        return bool((left == right) is isinstance(op, ast.Eq))
    if isinstance(op, (ast.In, ast.NotIn)):
        return bool((left in right) is isinstance(op, ast.In))
    raise Unread("comparison")


def _comprehended(
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp, names: dict[str, Any]
) -> list[Any]:
    scopes = [dict(names)]
    for part in node.generators:
        inner = [
            bound(part.target, item, scope) for scope in scopes for item in _value(part.iter, scope)
        ]
        scopes = [scope for scope in inner if all(_value(test, scope) for test in part.ifs)]
    return [_value(node.elt, scope) for scope in scopes]


def bound(target: ast.expr, value: Any, names: dict[str, Any]) -> dict[str, Any]:
    """``names`` and what the loop variable ``target`` is, item by item for a tuple."""
    if isinstance(target, ast.Name):
        return {**names, target.id: value}
    if isinstance(target, ast.Tuple):
        values = list(value)
        for part, one in zip(target.elts, values, strict=True):
            names = bound(part, one, names)
        return names
    raise Unread(ast.unparse(target))


def _called(node: ast.Call, names: dict[str, Any]) -> Any:
    arguments = _each(node.args, names)
    options = {one.arg: _value(one.value, names) for one in node.keywords if one.arg}
    if isinstance(node.func, ast.Attribute):
        return _method(_value(node.func.value, names), node.func.attr, arguments, options)
    if not isinstance(node.func, ast.Name):
        raise Unread(ast.unparse(node))
    match node.func.id:
        case "any_combination_of" | "auto_or_any_combination_of" as maker:
            words = _words(arguments)
            words.insert(0, "none" if maker.startswith("any") else "auto")
            words.default = words[0]
            return words
        case "disjoint_sets":
            words = _words([one for part in arguments for one in part])
            if "none" not in words:  # Spack adds the empty set, so written
                words.append("none")
            return words
        case "conditional":
            return Conditional([str(one) for one in arguments], str(options.get("when", "")))
        case "join_path":
            return "/".join(arguments)
        case plain if plain in _FUNCTIONS:
            return _FUNCTIONS[plain](*arguments)
    raise Unread(ast.unparse(node))


def _words(values: Iterable[Any]) -> Words:
    """Values of a variant from plain words, numbers and ``conditional(…)`` among them."""
    words = Words()
    for one in values:
        if isinstance(one, Conditional):
            words += list(one)
            words.conditional |= dict.fromkeys(one, one.when)
        elif one is not None:
            words.append(str(one))
    return words


def as_words(values: Any) -> Words:
    """What stands behind ``values=`` as words, whichever way it is written."""
    if isinstance(values, Words):
        return values
    if values is bool:
        return Words(["true", "false"])
    if isinstance(values, type):  # `values=str` takes any word
        return Words()
    if isinstance(values, str):
        return Words([values])
    return _words(values)


_TEXT = {"format", "join", "replace", "lower", "upper", "split", "strip", "removeprefix"}


def _method(owner: Any, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
    if isinstance(owner, Words):
        if name == "with_default":
            owner.default = str(arguments[0])
        elif name in ("allow_empty_set", "prohibit_empty_set"):
            if name == "allow_empty_set" and "none" not in owner:
                owner.insert(0, "none")
            elif name == "prohibit_empty_set" and "none" in owner:
                owner.remove("none")
        elif name not in ("with_error", "with_non_feature_values"):
            raise Unread(name)
        return owner
    if isinstance(owner, str) and name in _TEXT:
        return getattr(owner, name)(*arguments, **options)
    if isinstance(owner, dict) and name in ("items", "keys", "values", "get"):
        found = getattr(owner, name)(*arguments)
        return found if name == "get" else list(found)
    raise Unread(name)
