"""Do programs of one MPI run with another? By what the loader and the compiler know of both."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from mvstack.cache.elf import Linked, linked
from mvstack.support.errors import InvalidInput
from mvstack.support.processes import run
from mvstack.support.words import few

# Names that programs take from an MPI library: C, the profiling names, Fortran and its modules,
# and the objects that mpi.h and mpif.h refer to.
_OF_MPI = re.compile(r"(P?MPI[XOR]?_|p?mpi_|P?MPI_|MPIR_F08_|mpir_|mpifcmb|mpipriv|MPIR_C_|__mpi)")
# Printed by a program that never calls MPI_Init: what the compiler put into every object file.
_SIZES = ("MPI_Comm", "MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Request")
_CONSTANTS = (
    *("MPI_COMM_WORLD", "MPI_COMM_NULL", "MPI_INT", "MPI_DOUBLE", "MPI_SUM", "MPI_INFO_NULL"),
    *("MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_SUCCESS", "MPI_THREAD_MULTIPLE"),
    *(f"sizeof({name})" for name in _SIZES),
    "offsetof(MPI_Status, MPI_SOURCE)",
)
_ALLOWED = "a library, or a prefix with lib/libmpi.so or lib64/libmpi.so"
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


def read_library(place: Path) -> Library:
    """The MPI library ``place``, or that of a prefix, with its bindings. Raises InvalidInput."""
    paths = (place, place / "lib" / "libmpi.so", place / "lib64" / "libmpi.so")
    path = next((one for one in paths if one.is_file()), None)
    if path is None:
        what = "there is no libmpi.so" if place.is_dir() else "there is no such file or folder"
        raise InvalidInput(what, str(place), allowed=_ALLOWED)
    bindings = (path.with_name(name) for name in ("libmpifort.so", "libmpicxx.so"))
    files = [_read(one) for one in (path, *bindings) if one.exists()]
    symbols = [one for _, _, own in files for one in own if one["st_shndx"] != "SHN_UNDEF"]
    if not symbols:
        what = "this is not an MPI library: it has no MPI symbols"
        raise InvalidInput(what, str(path), allowed=_ALLOWED)
    machine, first, _ = files[0]
    return Library(
        path,
        first.soname,
        frozenset(one.name for one in symbols),
        {one.name: one["st_size"] for one in symbols if one["st_info"]["type"] == "STT_OBJECT"},
        machine,
        frozenset(one.soname for _, one, _ in files if one.soname),
    )


def read_program(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The MPI names that a program needs, and the libraries that it names."""
    if not path.is_file():
        what = "this is a folder" if path.is_dir() else "there is no such file"
        raise InvalidInput(what, str(path), allowed="a program that is linked to OLD")
    _, own, symbols = _read(path)
    names = {one.name for one in symbols if one["st_shndx"] == "SHN_UNDEF"}
    return frozenset(names), frozenset(own.needed)


def read_constants(prefix: Path) -> dict[str, int]:
    """Handles and sizes in bytes that mpi.h compiles in, if mpicc is there. Raises InvalidInput."""
    wrapper = prefix / "bin" / "mpicc"
    if not wrapper.is_file():
        return {}
    lines = [f'printf("{name} %ld\\n", (long) {name});' for name in _CONSTANTS]
    text = "#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "constants.c"
        source.write_text(f"{text}int main(void) {{\n" + "\n".join(lines) + "\nreturn 0; }\n")
        program = Path(folder) / "constants"
        try:
            said = run([wrapper, source, "-o", program], limit=SECONDS)
            if not said.status:
                said = run([program], limit=SECONDS)
            wrong = said.status and (said.errors.strip() or f"exit status {said.status}")
            if said.timed_out:
                wrong = f"it did not end within {SECONDS} s"
        except OSError as error:
            wrong = str(error)
    if wrong:
        raise InvalidInput(
            "a program of three lines does not compile and start with this MPI",
            str(wrapper),
            found=str(wrong)[-500:],
            todo="repair that wrapper, or give libmpi.so instead of the prefix; the constants "
            "of mpi.h are not compared then",
        )
    rows = re.findall(r"^(.+) (-?\d+)$", said.text, re.MULTILINE)
    return {name: int(value) for name, value in rows}


def _read(path: Path) -> tuple[str, Linked, list[Any]]:
    """Machine, dynamic section and, as pyelftools has them, the symbols that belong to MPI."""
    # here, for the start-up time of every command
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    content = path.read_bytes()
    try:
        file = ELFFile(BytesIO(content))
        table = file.get_section_by_name(".dynsym")
        rows = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
        symbols = [one for one in rows if _OF_MPI.match(one.name)]
        machine = f"ELF{file.elfclass} {file['e_machine']}"
    except Exception as error:  # pyelftools raises whatever it stumbles over
        what = "this is not an ELF library or program"
        raise InvalidInput(what, str(path), found=str(error)) from None
    return machine, linked(content) or Linked((), (), ""), symbols


@dataclass(frozen=True)
class Difference:
    """One reason why a program linked to the old library does not run with the new."""

    what: str
    old: str
    new: str
    means: str


def differences(
    old: Library,
    new: Library,
    old_constants: dict[str, int],
    new_constants: dict[str, int],
    needed: frozenset[str] | None = None,
    named: frozenset[str] = frozenset(),
) -> Iterator[Difference]:
    """Why programs linked to ``old`` cannot run with ``new``; none when nothing speaks against it.

    ``needed`` are the names that the programs at hand take from MPI; None means every name that
    ``old`` has. ``named`` are the libraries of ``old`` that the programs name: one in Fortran may
    name that of its binding alone. Constants are compared where both are known.
    """
    not_found = "the loader looks for the old name and does not find it"
    if old.machine != new.machine:
        yield Difference("machine", old.machine, new.machine, "the loader passes it over")
    if old.soname != new.soname:
        yield Difference("soname", old.soname, new.soname, not_found)
    if gone := sorted(named - new.sonames - {old.soname}):
        yield Difference("soname of a binding", few(gone), few(sorted(new.sonames)), not_found)
    wanted = old.names if needed is None else needed & old.names
    if lacking := sorted(wanted - new.names):
        yield Difference(
            "names",
            f"{len(wanted)} names",
            f"lacks {len(lacking)}: {few(lacking)}",
            "programs that call them end with an undefined symbol",
        )
    if grown := [name for name in _changed(old.sizes, new.sizes) if name in wanted]:
        yield Difference(
            "sizes of objects",
            few([f"{name} {old.sizes[name]} bytes" for name in grown]),
            few([f"{name} {new.sizes[name]} bytes" for name in grown]),
            "the linker copied the old object into programs",
        )
    if changed := _changed(old_constants, new_constants):
        yield Difference(
            "constants of mpi.h",
            few([f"{name} {old_constants[name]:#x}" for name in changed]),
            few([f"{name} {new_constants[name]:#x}" for name in changed]),
            "the compiler put the old values into programs",
        )


def _changed(old: dict[str, int], new: dict[str, int]) -> list[str]:
    return sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
