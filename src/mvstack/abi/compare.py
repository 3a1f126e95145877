"""Compare two MPI libraries as a program linked to the first finds the second. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mvstack.abi.library import Library

SHOWN = 5  # names in one line


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
        yield Difference("soname of a binding", _some(gone), _some(sorted(new.sonames)), not_found)
    wanted = old.names if needed is None else needed & old.names
    if lacking := sorted(wanted - new.names):
        yield Difference(
            "names",
            f"{len(wanted)} names",
            f"lacks {len(lacking)}: {_some(lacking)}",
            "programs that call them end with an undefined symbol",
        )
    if grown := [name for name in _changed(old.sizes, new.sizes) if name in wanted]:
        yield Difference(
            "sizes of objects",
            _some([f"{name} {old.sizes[name]} bytes" for name in grown]),
            _some([f"{name} {new.sizes[name]} bytes" for name in grown]),
            "the linker copied the old object into programs",
        )
    if changed := _changed(old_constants, new_constants):
        yield Difference(
            "constants of mpi.h",
            _some([f"{name} {old_constants[name]:#x}" for name in changed]),
            _some([f"{name} {new_constants[name]:#x}" for name in changed]),
            "the compiler put the old values into programs",
        )


def _changed(old: dict[str, int], new: dict[str, int]) -> list[str]:
    return sorted(name for name in old.keys() & new.keys() if old[name] != new[name])


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
