"""The easyconfigs of this repository: which a plan needs, what each says over its MPI and GCC."""

import ast
import importlib.util
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from mvstack.model.release import Package
from mvstack.plan.types import Plan
from mvstack.support.errors import Refused
from mvstack.support.home import DATA, home
from mvstack.support.words import listed, nearest

FOLDER = DATA / "easyconfigs"


def _load(path: Path) -> ModuleType:
    """A module by its path: EasyBuild's hooks, which cannot import us, load the same file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_OVER_MPI = _load(FOLDER / "over_mpi.py")

# For each product what stands for gmvapich (GCC and MPI) and mvfoss (that, and linear algebra).
TOOLCHAINS: dict[str, dict[str, str]] = _OVER_MPI.TOOLCHAINS

GCC_BY_HAND: str = _OVER_MPI.GCC_BY_HAND

# The libraries that are taken from the distribution, in the version that is there.
LIBRARIES = frozenset(_OVER_MPI.LIBRARIES)

DEPENDENCIES = {"dependencies", "builddependencies"}


def folders() -> list[Path]:
    """The folders of easyconfigs: the site's, if it has one, and ours."""
    return [*home().folders("easyconfigs")[:-1], FOLDER]


def index() -> dict[str, Path]:
    """Every easyconfig by file name; the site's stand for ours."""
    return _index(tuple(folders()))


@cache
def _index(places: tuple[Path, ...]) -> dict[str, Path]:
    return {path.name: path for one in reversed(places) for path in sorted(one.rglob("*.eb"))}


def source_of(name: str, files: Mapping[str, Path]) -> Path | None:
    """The file among ``files`` from which the easyconfig ``name`` is made; None when none is."""
    found: str | None = _OVER_MPI.source(name, files)
    return files[found] if found else None


def versions_of(plan: Plan) -> dict[str, str]:
    """The compiler of ``plan``, its generation, and the libraries that are the distribution's."""
    if plan.beneath:
        return dict(plan.beneath)
    own = {one.name: one.version for one in plan.packages if one.name in LIBRARIES and not one.mpi}
    return dict(_OVER_MPI.with_gcc(plan.compiler["version"], **own))


def text_over(name: str, source: Path, versions: Mapping[str, str] | None = None) -> str:
    """The text of the easyconfig ``name``: that of ``source``, with the toolchain of its name.

    ``versions`` are those of :func:`versions_of`.
    """
    return str(_OVER_MPI.text_over(source.read_text(), source.name, name, versions))


def names_over(
    toolchains: Iterable[str], versions: Mapping[str, str] | None = None, distribution: bool = True
) -> list[str]:
    """The packages' easyconfigs over ``toolchains`` (``mvfoss-2026.11-ucx``) that have no file.

    With ``versions`` also those that differ from their files, in name or text; of those that wrap
    a library of the distribution none, unless it is the ``distribution``'s compiler.
    """
    over, files = _OVER_MPI.names_over(index(), list(toolchains)), index()
    if versions and not distribution:
        wrappers = FOLDER / "system"
        files = {name: path for name, path in files.items() if not path.is_relative_to(wrappers)}
    return list({**over, **_OVER_MPI.names_at(files, versions)} if versions else over)


def find(name: str, wanted_by: str) -> Path:
    """The file by hand from which the easyconfig ``name`` is made.

    Raises Refused, naming what there is of the same software, when there is none.
    """
    files = index()
    if path := source_of(name, files):
        return path
    raise absent(name, wanted_by, files)


def absent(name: str, wanted_by: str, files: Iterable[str]) -> Refused:
    """The error that says which easyconfigs of the same software are there instead of ``name``."""
    software = name.split("-")[0]
    same = [file for file in files if file.split("-")[0] == software]
    todo = "write it below easyconfigs/, or choose a compiler and MPI for which one is there"
    message = f"there is no easyconfig {name}"
    if other := same and "GCC" in (gcc := _OVER_MPI.versions_in(name)):
        message += f", and gcc {gcc['GCC']} is none that one is made for"
        todo = f"put such a gcc first on PATH (on EL, `enable` of a gcc-toolset does); or {todo}"
    return Refused(
        message,
        where=wanted_by,
        allowed=listed(same) or f"none of {software}",
        nearest=nearest(name, same),
        because=_OVER_MPI.OTHERS if other else "",
        todo=todo,
    )


def netmod(device: str) -> str:
    """The part of a module's version that tells the device: ``ch4:ucx`` → ``ucx``."""
    return device.partition(":")[2].replace(":", "-").replace(",", "-") or device


def compiler_file(version: str, origin: str) -> list[str]:
    """The easyconfigs of the compiler; only a system compiler's are ours."""
    if origin != "system":
        return [f"GCC-{version}.eb"]
    return [f"GCCcore-{version}.eb", f"GCC-{version}.eb"]


def toolchain_file(product: str, release: str, device: str, kind: str = "gmvapich") -> str:
    """``gmvapich-2026.11-ucx.eb``, or what over ``product`` stands for the toolchain ``kind``."""
    return f"{TOOLCHAINS[product][kind]}-{release}-{netmod(device)}.eb"


def package_file(name: str, version: str, toolchain: str, suffix: str = "") -> str:
    """``HPCC-1.5.0-gmvapich-2026.11-ucx.eb``; ``suffix`` is EasyBuild's versionsuffix.

    ``toolchain`` is the toolchain's own file, or ``GCC-12.2.0`` for the compiler alone.
    """
    return f"{name}-{version}-{toolchain.removesuffix('.eb')}{suffix}.eb"


def files_of(row: Package, release: str) -> list[str]:
    """The easyconfigs of a release's row over the compiler, or each product that it may be over."""
    if row.toolchain == "gcc":
        start = f"{row.name}-{row.version}-GCC-"
        return [one for one in index() if one.startswith(start)] or [f"{start}….eb"]
    kinds = [TOOLCHAINS.get(one, {}) for one in row.only_over] or list(TOOLCHAINS.values())
    chains = dict.fromkeys(kind.get(row.toolchain, "") for kind in kinds)
    return [
        package_file(row.name, row.version, f"{chain}-{release}-{netmod}", row.suffix)
        for chain in chains
        for netmod in ("ofi", "ucx", "mrail")
    ]


def by_hand(row: Package, release: str) -> str:
    """The file from which the easyconfigs of a release's row are made; "" where there is none."""
    found = (source_of(name, index()) for name in files_of(row, release) if row.toolchain)
    return next((one.name for one in found if one), "")


def needs(*names: str) -> list[str]:
    """What these easyconfigs are built on, by name; of one that is not there, nothing."""
    files = index()
    found = (source_of(name, files) for name in names if name)
    return [need for path in found if path for need in dependencies(path.read_text())]


def dependencies(text: str) -> list[str]:
    """The names of what an easyconfig is built on, in the order in which they are written.

    Read from its text without running it: a name that is not written out is not found.
    """
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return []
    lists = [
        statement
        for statement in body
        if isinstance(statement, ast.Assign)
        and {getattr(target, "id", "") for target in statement.targets} & DEPENDENCIES
    ]
    entries = [one for each in lists for one in ast.walk(each) if isinstance(one, ast.Tuple)]
    firsts = [getattr(one.elts[0], "value", None) for one in entries if one.elts]
    return list(dict.fromkeys(one for one in firsts if isinstance(one, str)))
