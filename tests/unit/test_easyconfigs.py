"""One easyconfig of a package, by hand, serves every MPI of the stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.plan import easyconfigs
from mvstack.plan.easyconfigs import names_over, source_of, text_over
from mvstack.support.errors import Refused

NAME = "X-1.0-mvfoss-2026.11-ofi-fb.eb"
TEXT = """\
name = 'X'
toolchain = {'name': 'mvfoss', 'version': '2026.11-ofi'}
dependencies = [('HDF5', '1.14.5', '', ('gmvapich', '2026.11-ofi'))]
"""


def place(folder: Path, *names: str) -> dict[str, Path]:
    for name in names:
        (folder / name).write_text(TEXT)
    return {name: folder / name for name in names}


@pytest.mark.parametrize("over", ["mvfoss-2026.11-ucx", "mpfoss-2026.11-ofi", "mpfoss-2026.11-ucx"])
def test_over_another_mpi_the_toolchain_is_another_and_nothing_else(
    tmp_path: Path, over: str
) -> None:
    files = place(tmp_path, NAME)
    name = f"X-1.0-{over}-fb.eb"
    source = source_of(name, files)
    assert source == files[NAME]
    chain, version = over.split("-", 1)
    small = {"mvfoss": "gmvapich", "mpfoss": "gmpich"}[chain]
    assert text_over(name, source).splitlines() == [
        "name = 'X'",
        f"toolchain = {{'name': '{chain}', 'version': '{version}'}}",
        f"dependencies = [('HDF5', '1.14.5', '', ('{small}', '{version}'))]",
    ]


def test_mvapich2_has_a_toolchain_of_gcc_and_mpi(tmp_path: Path) -> None:
    files = place(tmp_path, "Y-1-gmvapich-2026.11-ofi.eb")
    name = "Y-1-gmvapich2-2026.11-mrail.eb"
    source = source_of(name, files)
    assert source and "('gmvapich2', '2026.11-mrail')" in text_over(name, source)


def test_what_is_written_by_hand_over_an_mpi_goes_first(tmp_path: Path) -> None:
    own, over_mpich = "X-1.0-mpfoss-2026.11-ucx-fb.eb", "X-1.0-mpfoss-2026.11-ofi-fb.eb"
    files = place(tmp_path, NAME, over_mpich)
    assert source_of(own, files) == files[over_mpich]
    files |= place(tmp_path, own)
    assert source_of(own, files) == files[own]
    assert text_over(own, files[own]) == TEXT


def test_what_is_for_mpich_alone_is_not_there_over_mvapich(tmp_path: Path) -> None:
    files = place(tmp_path, "Y-1-gmpich-2026.11-ofi.eb")
    assert source_of("Y-1-gmpich-2026.11-ucx.eb", files)
    assert source_of("Y-1-gmvapich-2026.11-ucx.eb", files) is None


@pytest.mark.parametrize(
    "name", ["gmvapich-2026.12-ucx.eb", "MVAPICH-4.9-GCC-12.2.0-ucx.eb", "X-1.0-foss-2022b.eb"]
)
def test_an_easyconfig_that_is_nowhere_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="there is no easyconfig"):
        easyconfigs.find(name, "here")


def test_every_package_of_the_repository_is_there_over_each_mpi() -> None:
    over = {
        chain: names_over([f"{chain}-2026.11-ucx"])
        for chain in ("gmvapich", "mvfoss", "gmpich", "mpfoss")
    }
    assert all(over.values())
    for name in [one for names in over.values() for one in names]:
        text = easyconfigs.text(name, "here")
        assert "2026.11-ofi" not in text and "2026.11-ucx" in text
        assert ("gmvapich" in text or "mvfoss" in text) == ("-gmv" in name or "-mvf" in name)


def test_no_copy_of_an_easyconfig_is_committed() -> None:
    found = [
        (name, other.name)
        for name in easyconfigs.index()
        for other in [source_of(name, {k: v for k, v in easyconfigs.index().items() if k != name})]
        if other and text_over(name, other) == easyconfigs.index()[name].read_text()
    ]
    assert found == []
