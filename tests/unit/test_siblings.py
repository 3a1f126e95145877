"""The easyconfigs that are derived: one by hand, the same over the other MPI builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.plan import easyconfigs
from mvstack.plan.siblings import MARK, is_derived, left_over, siblings

TEXT = """\
# About it.
name = 'X'
version = '1.0'
toolchain = {'name': 'mvfoss', 'version': '2026.11-ofi'}
dependencies = [('HDF5', '1.14.5', '', ('gmvapich', '2026.11-ofi'))]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "x" / "X"
    place.mkdir(parents=True)
    (place / "X-1.0-mvfoss-2026.11-ofi-fb.eb").write_text(TEXT)
    return tmp_path


def names(found: dict[Path, str]) -> list[str]:
    return sorted(path.name for path in found)


def test_one_by_hand_gives_three_more_beside_it(folder: Path) -> None:
    found = siblings(folder)
    assert names(found) == [
        "X-1.0-mpfoss-2026.11-ofi-fb.eb",
        "X-1.0-mpfoss-2026.11-ucx-fb.eb",
        "X-1.0-mvfoss-2026.11-ucx-fb.eb",
    ]
    text = found[folder / "x" / "X" / "X-1.0-mpfoss-2026.11-ucx-fb.eb"]
    assert text.startswith(f"{MARK}x/X/X-1.0-mvfoss-2026.11-ofi-fb.eb\n")
    assert "{'name': 'mpfoss', 'version': '2026.11-ucx'}" in text
    assert "('gmpich', '2026.11-ucx')" in text
    assert "ofi" not in text.split("\n", 2)[2] and "mvfoss" not in text.split("\n", 2)[2]


def test_what_is_written_by_hand_is_not_written_over(folder: Path) -> None:
    own = folder / "x" / "X" / "X-1.0-mvfoss-2026.11-ucx-fb.eb"
    own.write_text("# by hand, another patch is needed here\n" + TEXT)
    assert own not in siblings(folder)
    assert not is_derived(own)


def test_what_is_derived_is_derived_again_and_never_from_itself(folder: Path) -> None:
    first = siblings(folder)
    for path, text in first.items():
        path.write_text(text)
    assert siblings(folder) == first


def test_over_mpich_alone_there_is_no_mvapich(tmp_path: Path) -> None:
    (tmp_path / "Y-1-gmpich-2026.11-ofi.eb").write_text("toolchain = 'gmpich-2026.11-ofi'\n")
    assert names(siblings(tmp_path)) == ["Y-1-gmpich-2026.11-ucx.eb"]


def test_toolchains_and_mpis_are_none(tmp_path: Path) -> None:
    for name in ("gmvapich-2026.11-ofi.eb", "MVAPICH-4.0-GCC-12.2.0-ofi.eb", "GCC-12.2.0.eb"):
        (tmp_path / name).write_text("name = 'x'\n")
    assert siblings(tmp_path) == {}


def test_what_nothing_gives_any_more_is_found(folder: Path) -> None:
    for path, text in siblings(folder).items():
        path.write_text(text)
    assert left_over(folder) == []
    (folder / "x" / "X" / "X-1.0-mvfoss-2026.11-ofi-fb.eb").unlink()
    assert names(dict.fromkeys(left_over(folder), "")) == [
        "X-1.0-mpfoss-2026.11-ofi-fb.eb",
        "X-1.0-mpfoss-2026.11-ucx-fb.eb",
        "X-1.0-mvfoss-2026.11-ucx-fb.eb",
    ]


def test_those_of_the_repository_are_fresh() -> None:
    found = siblings(easyconfigs.FOLDER)
    assert found and all(path.read_text() == text for path, text in found.items())
    assert left_over(easyconfigs.FOLDER) == []
