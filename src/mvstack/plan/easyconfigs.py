"""The easyconfigs of this repository: which a plan needs, and what each says over its MPI."""

import ast
import importlib.util
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

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
    names: list[str] = _OVER_MPI.sources(name)
    return next((files[one] for one in names if one in files), None)


def text_over(name: str, source: Path) -> str:
    """The text of the easyconfig ``name``: that of ``source``, with the toolchain of its name."""
    text: str = _OVER_MPI.text_over(source.read_text(), source.name, name)
    return text


def names_over(toolchains: Iterable[str]) -> list[str]:
    """The packages' easyconfigs over ``toolchains`` (``mvfoss-2026.11-ucx``) that have no file."""
    return list(_OVER_MPI.names_over(index(), list(toolchains)))


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
    return Refused(
        f"there is no easyconfig {name}",
        where=wanted_by,
        allowed=listed(same) or f"none of {software}",
        nearest=nearest(name, same),
        todo="write it below easyconfigs/, or choose a compiler and MPI for which one is there",
    )


def text(name: str, wanted_by: str) -> str:
    """The text of the easyconfig ``name``. Raises Refused as :func:`find` does."""
    return text_over(name, find(name, wanted_by))


def netmod(device: str) -> str:
    """The part of a module's version that tells the device: ``ch4:ucx`` → ``ucx``."""
    return device.partition(":")[2].replace(":", "-").replace(",", "-") or device


def compiler_file(version: str, origin: str) -> list[str]:
    """The easyconfigs of the compiler; only a system compiler's are ours."""
    if origin != "system":
        return [f"GCC-{version}.eb"]
    return [f"GCCcore-{version}.eb", f"GCC-{version}.eb"]


def mpi_file(software: str, version: str, gcc: str, device: str) -> str:
    """``MVAPICH-4.0-GCC-12.2.0-ucx.eb``."""
    return f"{software}-{version}-GCC-{gcc}-{netmod(device)}.eb"


def toolchain_file(product: str, release: str, device: str, kind: str = "gmvapich") -> str:
    """``gmvapich-2026.11-ucx.eb``, or what over ``product`` stands for the toolchain ``kind``."""
    return f"{TOOLCHAINS[product][kind]}-{release}-{netmod(device)}.eb"


def package_file(name: str, version: str, toolchain: str, suffix: str = "") -> str:
    """``HPCC-1.5.0-gmvapich-2026.11-ucx.eb``; ``suffix`` is EasyBuild's versionsuffix.

    ``toolchain`` is the toolchain's own file, or ``GCC-12.2.0`` for the compiler alone.
    """
    return f"{name}-{version}-{toolchain.removesuffix('.eb')}{suffix}.eb"


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
