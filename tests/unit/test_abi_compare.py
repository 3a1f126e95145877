"""Whether one MPI can stand in for another: every reason against it, one at a time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mvstack.abi.compare import Library, differences

OLD = Library(
    Path("/old/libmpi.so"),
    "libmpi.so.12",
    frozenset({"MPI_Send", "MPI_Recv", "mpi_send_", "MPI_UNWEIGHTED"}),
    {"MPI_UNWEIGHTED": 8},
)
CONSTANTS = {"MPI_COMM_WORLD": 0x44000000, "sizeof(MPI_Status)": 20}


def what(
    new: Library, constants: dict[str, int] | None = None, **more: frozenset[str]
) -> list[str]:
    """The kinds of differences between OLD and ``new``."""
    found = list(
        differences(OLD, new, CONSTANTS, CONSTANTS if constants is None else constants, **more)
    )
    return [one.what for one in found]


def test_the_same_is_compatible() -> None:
    assert what(OLD) == []


def test_more_names_do_no_harm() -> None:
    assert what(dataclasses.replace(OLD, names=OLD.names | {"MPI_Session_init"})) == []


def test_another_soname_is_not_found_by_the_loader() -> None:
    assert what(dataclasses.replace(OLD, soname="libmpi.so.0")) == ["soname"]


def test_a_library_for_another_processor_is_no_library_here() -> None:
    assert what(dataclasses.replace(OLD, machine="ELF64 AArch64")) == ["machine"]


def test_a_name_that_is_gone_counts_unless_no_program_takes_it() -> None:
    new = dataclasses.replace(OLD, names=OLD.names - {"mpi_send_"})
    assert what(new) == ["names"]
    assert what(new, needed=frozenset({"MPI_Send"})) == []
    assert what(new, needed=frozenset({"mpi_send_"})) == ["names"]


def test_an_object_of_another_size_was_copied_into_programs() -> None:
    assert what(dataclasses.replace(OLD, sizes={"MPI_UNWEIGHTED": 4})) == ["sizes of objects"]


def test_other_constants_were_compiled_into_programs() -> None:
    assert what(OLD, {**CONSTANTS, "sizeof(MPI_Status)": 24}) == ["constants of mpi.h"]


def test_constants_are_compared_where_both_are_known() -> None:
    assert what(OLD, {}) == []


NAMES = st.frozensets(st.sampled_from(["MPI_A", "MPI_B", "mpi_c_", "MPI_D"]))


@given(old=NAMES, new=NAMES, needed=NAMES)
def test_only_what_is_needed_and_was_there_can_lack(
    old: frozenset[str], new: frozenset[str], needed: frozenset[str]
) -> None:
    found = differences(
        Library(Path("a"), "s", old), Library(Path("b"), "s", new), {}, {}, needed=needed
    )
    assert bool(list(found)) == bool((needed & old) - new)
