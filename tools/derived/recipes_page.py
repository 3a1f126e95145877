"""docs/recipes.md: each value of each variant, and how far each version came with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from recipes.model import GIVEN, Recipe, Variant
from recipes.reading import MENDS, read_recipes
from recipes_record import STATES, Row, read_record

from mvstack.model.constraint import matches_version, parse
from mvstack.model.yamlfile import read_yaml
from mvstack.render.templates import template

RECIPE, ABSENT = "recipe", "—"
_ORDER = (ABSENT, RECIPE, *STATES[1:])


@dataclass(frozen=True)
class Line:
    """One value of a variant: what it means, and a cell for each version."""

    word: str
    default: bool
    description: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One recipe: its versions with how far each came, lines, patches."""

    recipe: Recipe
    versions: tuple[str, ...]
    whole: tuple[str, ...]
    lines: tuple[Line, ...]
    rows: tuple[Row, ...]
    patches: tuple[tuple[str, str, str], ...]

    @property
    def needs(self) -> dict[str, list[str]]:
        """What it depends on, each spec with all of its conditions."""
        found: dict[str, list[str]] = {}
        for spec, when in self.recipe.needs:
            found.setdefault(spec, []).append(when)
        return found


def tables(recipes: Iterable[Recipe], record: Iterable[Row]) -> list[Table]:
    """A table for each recipe that is wholly ours, in order of names."""
    rows = list(record)
    return [
        _table(recipe, [row for row in rows if row.package == recipe.name])
        for recipe in sorted(recipes, key=lambda one: one.name)
        if not recipe.builtin
    ]


def _table(recipe: Recipe, rows: list[Row]) -> Table:
    # what was recorded of a version that the recipe does not list stands in a column of its own
    versions = [version.name for version in recipe.versions]
    versions += sorted({row.version for row in rows} - set(versions))
    lines: dict[str, Line] = {}
    for variant in (*recipe.variants, *_inherited(recipe)):
        for word in variant.words() or [f"{variant.name}=…"]:
            cells = tuple(_cell(word, variant, version, rows) for version in versions)
            if word in lines:  # declared again for other versions
                cells = tuple(map(_best, cells, lines[word].cells))
            lines[word] = Line(word, _is_default(variant, word), variant.description, cells)
    whole = tuple(_reached(row for row in rows if row.version == one) for one in versions)
    patches = tuple((name, when, _why(recipe.path.parent / name)) for name, when in recipe.patches)
    return Table(recipe, tuple(versions), whole, tuple(lines.values()), tuple(rows), patches)


def _why(patch: Path) -> str:
    """The first paragraph of the words before a patch's first file; "" where it is an address."""
    if not patch.is_file():
        return ""
    words = patch.read_text().partition("--- ")[0]
    return " ".join(words.partition("\n\n")[0].split())


def _inherited(recipe: Recipe) -> list[Variant]:
    """The variants that Spack's helper classes bring, e.g. ``+cuda``."""
    own = {variant.name for variant in recipe.variants}
    return [
        Variant(name, "false" if values else "none", values, f"From Spack's {helper}", recipe.line)
        for helper in recipe.helpers
        for name, values in GIVEN.get(helper, {}).items()
        if name not in own
    ]


def _cell(word: str, variant: Variant, version: str, rows: list[Row]) -> str:
    name, _, value = word.partition("=")
    if not _holds(variant.when, version) or not _holds(variant.conditional.get(value, ""), version):
        return ABSENT
    if value == "…":
        with_it = [row for row in rows if any(one.startswith(f"{name}=") for one in row.words)]
    else:
        with_it = [row for row in rows if word in row.words]
    return _reached(row for row in with_it if row.version == version)


def _holds(when: str, version: str) -> bool:
    """Whether the part of ``when`` that is about the version holds for it."""
    versions = parse(f"x {when}".replace("x @", "x@")).versions
    return matches_version(version, versions)


def _reached(rows: Iterable[Row]) -> str:
    return _best(RECIPE, *(row.state for row in rows))


def _best(*cells: str) -> str:
    return max((one for one in cells if one in _ORDER), key=_ORDER.index)


def _is_default(variant: Variant, word: str) -> bool:
    if variant.boolean:
        return word[0] == ("+" if variant.default == "true" else "~")
    return word.partition("=")[2] in variant.default.split(",")


def recipes_page() -> str:
    """docs/recipes.md. Raises InvalidInput when a recipe or the record cannot be read."""
    recipes, record = read_recipes(), read_record()
    mended = sorted((one for one in recipes if one.builtin), key=lambda one: one.name)
    told = read_yaml(MENDS.parent / "mends.yaml").data
    return template(
        "recipes.md", tables=tables(recipes, record), mended=mended, record=record, **told
    )
