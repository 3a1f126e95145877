"""How far each spec of our recipes came on a machine, as the tool below tests/spack recorded it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from mvstack.model.constraint import Constraint, parse, variant, words
from mvstack.report.seen import read_rows
from mvstack.support import hashes
from mvstack.support.home import DATA

RECORD = DATA / "spack-repo" / "record.jsonl"
# In this order each takes the one before for granted.
State = Literal["refused", "concretizes", "built", "run"]
STATES: tuple[str, ...] = get_args(State)


class Row(BaseModel):
    """One line: a spec and how far it came.

    ``spec`` is the concrete root, or what was asked for where it did not become one. ``state`` is
    "" for a spec that neither concretized nor was to be refused. ``outcome`` says what went
    otherwise than it should have; ``source`` whose bytes were built, unless they are upstream's.
    ``recipe`` is the hash of the recipe that was tried, see :func:`recipe_hash`.
    """

    model_config = ConfigDict(frozen=True)

    id: str = ""
    asked: str = ""
    spec: str = ""
    state: State | Literal[""]
    seconds: float | None = None
    packages: int | None = None
    printed: str = ""
    source: str = ""
    outcome: str = ""
    recipe: str = ""

    @model_validator(mode="after")
    def _spec_is_known(self) -> Row:
        parse(self.spec or self.asked)
        return self

    @cached_property
    def root(self) -> Constraint:
        """The spec as it is understood here."""
        return parse(self.spec or self.asked)

    @property
    def package(self) -> str:
        """The package of the root."""
        return self.root.name

    @property
    def version(self) -> str:
        """The version of the root; "" where it has none."""
        return self.root.versions[0].lstrip("=") if self.root.versions else ""

    @property
    def by_this_recipe(self) -> bool:
        """Whether the recipe is still what it was then."""
        return self.recipe == recipe_hash(self.package)

    @cached_property
    def words(self) -> frozenset[str]:
        """The values of the root's variants, each as a spec writes it."""
        return frozenset(
            variant(key, value if isinstance(value, bool) else one)
            for key, value in self.root.variants.items()
            for one in words(value)
        )


def recipe_hash(package: str) -> str:
    """Of the recipe of ``package``, without comments, docstrings and layout."""
    folder = package.replace("-", "_")
    (path,) = (DATA / "spack-repo").glob(f"spack_repo/*/packages/{folder}/package.py")
    return hashes.of_files([path])[:12]


def read_record(path: Path = RECORD) -> list[Row]:
    """The record's rows; see :func:`mvstack.report.seen.read_rows`."""
    return read_rows(path, Row, "the tool below tests/spack")
