"""What the loader and a compiled program know of an MPI library: read with readelf and mpicc."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mvstack.support.errors import InvalidInput, Missing, Problem
from mvstack.support.processes import Done, run

# Names that programs take from an MPI library: C, the profiling names, Fortran and its modules,
# and the objects that mpi.h and mpif.h refer to.
_OF_MPI = re.compile(r"(P?MPI[XOR]?_|p?mpi_|P?MPI_|MPIR_F08_|mpir_|mpifcmb|mpipriv|MPIR_C_|__mpi)")
# Printed by a program that never calls MPI_Init: what the compiler put into every object file.
_CONSTANTS = (
    "MPI_COMM_WORLD",
    "MPI_COMM_NULL",
    "MPI_INT",
    "MPI_DOUBLE",
    "MPI_SUM",
    "MPI_INFO_NULL",
    "MPI_ANY_SOURCE",
    "MPI_PROC_NULL",
    "MPI_SUCCESS",
    "MPI_THREAD_MULTIPLE",
)
_ALLOWED = "a library, or a prefix with lib/libmpi.so or lib64/libmpi.so"
_SIZES = ("MPI_Comm", "MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Request")


SECONDS = 60  # for mpicc, and for what it compiled


@dataclass(frozen=True)
class Library:
    """One shared library: its soname, the names that it defines, and the machine it is for.

    ``sizes`` holds the bytes of data objects, which the linker may have copied into a program.
    """

    path: Path
    soname: str
    names: frozenset[str]
    sizes: dict[str, int] = field(default_factory=dict)
    machine: str = ""
    sonames: frozenset[str] = frozenset()  # of it and of its bindings' libraries


def find_libmpi(place: Path) -> Path:
    """The libmpi of ``place``: the library itself, or a prefix that has it in lib or lib64.

    Raises InvalidInput when there is none.
    """
    if place.is_file():
        return place
    for folder in ("lib", "lib64"):
        path = place / folder / "libmpi.so"
        if path.exists():
            return path
    raise InvalidInput(
        Problem(
            "there is no libmpi.so" if place.is_dir() else "there is no such file or folder",
            str(place),
            allowed=_ALLOWED,
        )
    )


def read_library(place: Path) -> Library:
    """The MPI library at ``place``, the ones of its Fortran bindings included.

    Raises InvalidInput for what is no ELF library or none of MPI, Missing without binutils.
    """
    path = find_libmpi(place)
    all_of_it = [path, *_bindings(path)]
    soname = _soname(path)
    names: set[str] = set()
    sizes: dict[str, int] = {}
    for one in all_of_it:
        for row in _symbols(one):
            if row.defined and _OF_MPI.match(row.name):
                names.add(row.name)
                if row.kind == "OBJECT":
                    sizes[row.name] = row.size
    if not names:
        raise InvalidInput(
            Problem("this is no MPI library: no name of MPI is in it", str(path), allowed=_ALLOWED)
        )
    machine = " ".join(re.findall(r"^ +(?:Class|Machine): +(.+)$", _readelf("-hW", path), re.M))
    sonames = frozenset(filter(None, map(_soname, all_of_it)))
    return Library(path, soname, frozenset(names), sizes, machine, sonames)


def _soname(path: Path) -> str:
    found = re.search(r"\(SONAME\).*\[(.+)\]", _readelf("-dW", path))
    return found.group(1) if found else ""


def read_program(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The MPI names that a program needs, and the libraries that it names."""
    if not path.is_file():
        raise InvalidInput(
            Problem(
                "this is a folder" if path.is_dir() else "there is no such file",
                str(path),
                allowed="a program that is linked to OLD",
            )
        )
    needed = frozenset(re.findall(r"\(NEEDED\).*\[(.+)\]", _readelf("-dW", path)))
    names = {row.name for row in _symbols(path) if not row.defined and _OF_MPI.match(row.name)}
    return frozenset(names), needed


def read_constants(prefix: Path) -> dict[str, int]:
    """What mpi.h of ``prefix`` compiles into programs: handles, and sizes of types in bytes.

    Empty when the prefix has no mpicc. Raises InvalidInput when mpicc fails.
    """
    wrapper = prefix / "bin" / "mpicc"
    if not wrapper.is_file():
        return {}
    lines = [f'printf("{name} %ld\\n", (long) {name});' for name in _CONSTANTS]
    lines += [f'printf("sizeof({name}) %ld\\n", (long) sizeof({name}));' for name in _SIZES]
    lines.append('printf("offsetof(MPI_SOURCE) %ld\\n", (long) offsetof(MPI_Status, MPI_SOURCE));')
    text = "#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "constants.c"
        source.write_text(f"{text}int main(void) {{\n" + "\n".join(lines) + "\nreturn 0; }\n")
        program = Path(folder) / "constants"
        try:
            said = _said(str(wrapper), str(source), "-o", str(program))
            if not said.status:
                said = _said(str(program))
            wrong = said.status and (said.errors.strip() or f"exit status {said.status}")
            if said.timed_out:
                wrong = f"it did not end within {SECONDS} s"
        except OSError as error:
            wrong = str(error)
    if wrong:
        raise InvalidInput(
            Problem(
                "a program of three lines does not compile and start with this MPI",
                str(wrapper),
                found=str(wrong)[-500:],
                todo="mend that wrapper, or give the libmpi.so instead of the prefix: then the "
                "constants of mpi.h are not compared",
            )
        )
    rows = re.findall(r"^(\S+) (-?\d+)$", said.text, re.MULTILINE)
    return {name: int(value) for name, value in rows}


def _said(*command: str) -> Done:
    """What a program said; one that waits for something is ended."""
    return run(command, limit=SECONDS)


@dataclass(frozen=True)
class _Symbol:
    name: str
    kind: str
    size: int
    defined: bool


def _symbols(path: Path) -> list[_Symbol]:
    found = []
    for line in _readelf("--dyn-syms", "-W", path).splitlines():
        parts = line.split()
        if len(parts) >= 8 and parts[0].rstrip(":").isdigit():
            name = parts[7].partition("@")[0]
            found.append(_Symbol(name, parts[3], int(parts[2], 0), parts[6] != "UND"))
    return found


def _bindings(libmpi: Path) -> list[Path]:
    """The libraries of the Fortran and C++ bindings that lie beside libmpi."""
    folder = libmpi.parent
    return [path for name in ("libmpifort.so", "libmpicxx.so") if (path := folder / name).exists()]


def _readelf(*words: object) -> str:
    try:
        done = run(
            ["readelf", *map(str, words[:-1]), "--", str(words[-1])],
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"},
        )
    except FileNotFoundError:
        raise Missing(
            Problem("readelf is not installed", todo="apt-get install binutils")
        ) from None
    if done.status or "Error:" in done.errors or not done.text.strip():
        raise InvalidInput(
            Problem("this is no ELF library or program", str(words[-1]), found=done.errors.strip())
        )
    return done.text
