"""How far each package came on a machine, by each builder, as it was seen there.

`easyconfigs/record.jsonl` has one JSON object a line:

    package, version, builder (easybuild or spack), mpi (module, or spec), date
    state     failed | resolves | built | run; each takes the one before for granted
    of        what it is true of: the hash of the easyconfig, or the spec; a recipe that changed
              since then has nothing to show
    seconds   of building; size_mb of what is installed; both null where they were not seen
    checks    what the checks said; figure: what one of them measured
    bytes     "" for upstream's, else whose
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from mvstack.model.base import Strict
from mvstack.model.release import Package, Release
from mvstack.plan import easyconfigs
from mvstack.recipes.record import read_rows
from mvstack.support import hashes
from mvstack.support.home import DATA

RECORD = DATA / "easyconfigs" / "record.jsonl"
STATES = ("failed", "resolves", "built", "run")


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


def read_record(path: Path = RECORD) -> list[Row]:
    """The rows. Raises InvalidInput with every line that is wrong."""
    return read_rows(path, lambda data: Row(**data), "tests/apps/record")


def hash_of(easyconfig: str) -> str:
    """What a row of EasyBuild is true of: the easyconfig without comments, over any MPI; or ""."""
    path = easyconfigs.source_of(easyconfig, easyconfigs.index())
    return hashes.of(hashes.normalised(path.read_text()))[:16] if path else ""


def by_hand(package: Package, release: Release) -> str:
    """The easyconfig of ``package`` that is written by hand; "" where there is none."""
    files = easyconfigs.index()
    if package.toolchain == "gcc":
        start = f"{package.name}-{package.version}-GCC-"
        return next((name for name in files if name.startswith(start)), "")
    if not package.toolchain:
        return ""
    # the nearest to MPICH's is its own, else that over MVAPICH
    over = easyconfigs.toolchain_file("mpich", release.name, "ch4:ofi", package.toolchain)
    name = easyconfigs.package_file(package.name, package.version, over, package.suffix)
    path = easyconfigs.source_of(name, files)
    return path.name if path else ""
