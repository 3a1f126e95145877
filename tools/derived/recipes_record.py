"""How far each spec of our recipes came on a machine, as the tool below tests/spack recorded it."""

from __future__ import annotations

import ast
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
BUILT = STATES[2:]


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
        return self.recipe == recipe_hash(self.package, self.state)

    @cached_property
    def words(self) -> frozenset[str]:
        """The values of the root's variants, each as a spec writes it."""
        return frozenset(
            variant(key, value if isinstance(value, bool) else one)
            for key, value in self.root.variants.items()
            for one in words(value)
        )


def recipe_hash(package: str, state: str = "") -> str:
    """Of the recipe of ``package``, without comments, docstrings and layout.

    Of what came to the ``state`` built or run, also without conflicts and requirements: they
    decide whether a spec is taken, and not how one that was is built.
    """
    folder = package.replace("-", "_")
    (path,) = (DATA / "spack-repo").glob(f"spack_repo/*/packages/{folder}/package.py")
    text = path.read_text()
    return hashes.of([hashes.normalised(building(text) if state in BUILT else text)])[:12]


def building(text: str) -> str:
    """A recipe's text without conflicts, requirements, and the names that they alone use."""
    tree = _Building().visit(ast.parse(text))
    while True:
        before = ast.dump(tree)
        used = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        tree = _Building(used).visit(tree)
        if ast.dump(tree) == before:
            return ast.unparse(tree)


class _Building(ast.NodeTransformer):
    """Takes conflicts and requirements out of classes, then private names that are not ``used``."""

    def __init__(self, used: set[str] | None = None) -> None:
        self.used = used

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        call = node.value
        name = call.func if isinstance(call, ast.Call) else None
        taken = isinstance(name, ast.Name) and name.id in ("conflicts", "requires")
        return None if taken else node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        parts = (one for target in node.targets for one in ast.walk(target))
        names = {one.id for one in parts if isinstance(one, ast.Name)}
        private = all(name.startswith("_") for name in names)
        return None if self.used is not None and private and not names & self.used else node

    def visit_For(self, node: ast.For | ast.If | ast.With) -> ast.stmt | None:
        self.generic_visit(node)
        return node if node.body else None

    visit_If = visit_With = visit_For


def read_record(path: Path = RECORD) -> list[Row]:
    """The record's rows; see :func:`mvstack.report.seen.read_rows`."""
    return read_rows(path, Row, "the tool below tests/spack")
