"""How far each package came on a machine, by each builder.

`easyconfigs/record.jsonl` has one JSON object a line:

    package, version, builder (easybuild or spack), mpi (module, or spec), date
    state     failed | resolves | built | run; each takes the one before for granted
    of        what it is true of: the hash of the easyconfig, or the spec; a recipe that changed
              since then has nothing to show
    seconds   of building; size_mb of what is installed; both null where they were not seen
    checks    what the checks said; figure: what one of them measured
    bytes     "" for upstream's, else whose

`environments/record.jsonl` has a line for each partition for which the pinned Spack solved, through
all gates, what `mvstack lock` asks of it. The line is true as long as its key is that of now.
"""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from mvstack.model.base import Strict, first_error
from mvstack.model.meaning import of_texts
from mvstack.model.release import Package, Release
from mvstack.model.spack import spack_pins
from mvstack.plan import easyconfigs
from mvstack.plan.spack import MENDS, RECIPES
from mvstack.plan.types import Plan
from mvstack.render.spack import spack_files
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, MvstackError, Problem, relative
from mvstack.support.home import DATA

RECORD = DATA / "easyconfigs" / "record.jsonl"
LOCKED = DATA / "environments" / "record.jsonl"
STATES = ("failed", "resolves", "built", "run")
T = TypeVar("T", bound=BaseModel)


class Row(Strict):
    """One line of the record, see above."""

    package: str
    version: str
    builder: str = Field(pattern="^(easybuild|spack)$")
    mpi: str
    date: str
    state: str = Field(pattern=f"^({'|'.join(STATES)})$")
    of: str
    seconds: float | None = None
    size_mb: int | None = None
    checks: str = ""
    figure: str = ""
    bytes: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """A newer row of the same key takes the place of an older one."""
        return (self.package, self.version, self.builder, self.mpi)


class Locked(Strict):
    """A lock of ``partition``; ``recipes`` are ours that it takes, ``of`` tells people the rest."""

    partition: str
    release: str
    date: str
    of: dict[str, str | int]
    recipes: list[str]
    key: str


def key_of(plan: Plan, recipes: list[str]) -> str:
    """What decides a lock of ``plan`` wherever its tree stands; ``recipes`` are ours that it takes.

    Of these only what is solved counts: methods and patches do not. New ones count by their names.
    """
    files = spack_files(replace(plan, root="/root", tree="/root/tree"))
    asked = of_texts({f"{name}.conf": text for name, text in files.items()})
    every = sorted(path for one in (RECIPES, MENDS) for path in (DATA / one).rglob("*.py"))
    texts = [path.read_text() for path in every if path.parent.name.replace("_", "-") in recipes]
    for path in every:  # what they inherit from
        texts += [path.read_text()] * any(f"build_systems.{path.stem} " in one for one in texts)
    own = [hashes.declared(text) for text in texts]
    names, pins = [one.parent.name for one in every if one.stem == "package"], spack_pins()
    return hashes.of(asked, names, own, pins.spack.commit, pins.packages.commit)[:16]


def read_record(path: Path = RECORD) -> list[Row]:
    """The rows. Raises InvalidInput with every line that is wrong."""
    return read_rows(path, Row, "tests/apps/record")


def hash_of(easyconfig: str) -> str:
    """What a row of EasyBuild is true of: the easyconfig without comments, over any MPI; or ""."""
    path = easyconfigs.source_of(easyconfig, easyconfigs.index())
    return hashes.of(hashes.normalised(path.read_text()))[:16] if path else ""


def counting(package: Package, release: Release, record: list[Row]) -> dict[str, list[Row]]:
    """Of each builder that has a recipe, the rows that are true of it as it is now."""
    file = easyconfigs.by_hand(package, release.name)
    recipes = {"easybuild": hash_of(file) if file else "", "spack": package.spack}
    return {
        builder: [
            row
            for row in record
            if row.key[:3] == (package.name, package.version, builder) and row.of == recipe
        ]
        for builder, recipe in recipes.items()
        if recipe and package.where.builder in ("", builder)
    }


def best(rows: list[Row]) -> list[Row]:
    """The farthest first; of equals that over our own MPI, not that over what stands in for it."""
    return sorted(
        rows,
        key=lambda row: (STATES.index(row.state), "mvapich" in row.mpi, row.date),
        reverse=True,
    )


def read_rows(path: Path, row: type[T], writer: str) -> list[T]:
    """The lines of a record, each a ``row``; none when there is no record yet.

    ``writer`` is the tool that writes it. Raises InvalidInput with every line that is wrong.
    """
    rows, problems = [], []
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(row.model_validate_json(line))
        except (ValidationError, MvstackError) as error:
            said = first_error(error) if isinstance(error, ValidationError) else error
            problems.append(
                Problem(
                    f"not a row of the record: {said}",
                    f"{relative(path)}:{number}",
                    todo=f"{writer} writes it; do not edit it by hand",
                )
            )
    if problems:
        raise InvalidInput(*problems)
    return rows
