"""What the loader and a compiled program know of an MPI library: read with readelf and mpicc."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mvstack.errors import InvalidInput, Missing, Problem

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
_SIZES = ("MPI_Comm", "MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Request")


@dataclass(frozen=True)
class Library:
    """One shared library: its soname, and the names that it defines.

    ``sizes`` holds the bytes of data objects, which the linker may have copied into a program.
    """

    path: Path
    soname: str
    names: frozenset[str]
    sizes: dict[str, int] = field(default_factory=dict)


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
            "there is no libmpi.so",
            str(place),
            allowed="a library, or a prefix with lib/libmpi.so or lib64/libmpi.so",
        )
    )


def read_library(place: Path) -> Library:
    """The MPI library at ``place``, the ones of its Fortran bindings included.

    Raises InvalidInput for what is no ELF library, Missing without binutils.
    """
    path = find_libmpi(place)
    dynamic = _readelf("-dW", path)
    soname = re.search(r"\(SONAME\).*\[(.+)\]", dynamic)
    names: set[str] = set()
    sizes: dict[str, int] = {}
    for one in [path, *_bindings(path)]:
        for row in _symbols(one):
            if row.defined and _OF_MPI.match(row.name):
                names.add(row.name)
                if row.kind == "OBJECT":
                    sizes[row.name] = row.size
    return Library(path, soname.group(1) if soname else "", frozenset(names), sizes)


def read_program(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The MPI names that a program needs, and the libraries that it names."""
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
        made = subprocess.run(
            [str(wrapper), str(source), "-o", str(program)], capture_output=True, text=True
        )
        said = (
            subprocess.run([str(program)], capture_output=True, text=True)
            if not made.returncode
            else made
        )
    if said.returncode:
        raise InvalidInput(
            Problem(
                "a program of three lines does not compile and start with this MPI",
                str(wrapper),
                found=(said.stderr.strip() or f"exit status {said.returncode}")[-500:],
            )
        )
    return {
        name: int(value)
        for name, value in (line.rsplit(" ", 1) for line in said.stdout.splitlines())
    }


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
        done = subprocess.run(
            ["readelf", *map(str, words)],
            capture_output=True,
            text=True,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"},
        )
    except FileNotFoundError:
        raise Missing(
            Problem("readelf is not installed", todo="apt-get install binutils")
        ) from None
    if done.returncode or "Error:" in done.stderr or not done.stdout.strip():
        raise InvalidInput(
            Problem("this is no ELF library or program", str(words[-1]), found=done.stderr.strip())
        )
    return done.stdout
