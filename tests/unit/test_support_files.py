"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mvstack.cache.place import place
from mvstack.install.stages import default_root
from mvstack.sources.download import local
from mvstack.support.files import write_atomically
from mvstack.support.home import home, use


def test_text_and_bytes_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "text", "é\n")
    write_atomically(tmp_path / "a" / "bytes", b"\xff")
    assert (tmp_path / "a" / "text").read_bytes() == "é\n".encode()
    assert (tmp_path / "a" / "bytes").read_bytes() == b"\xff"


@pytest.mark.parametrize(("mode", "wanted"), [(0o644, 0o644), (None, 0o600)])
def test_permissions_are_those_asked_for_or_the_umasks(
    tmp_path: Path, mode: int | None, wanted: int
) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "file", "x", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == wanted


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "file", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_disk_that_is_read_only_is_told_by_the_name_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a disk refuses to remove the new file as well, which was never made."""

    def refuse(path: object, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("os.open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_atomically(tmp_path / "file", "x")
    assert caught.value.filename == str(tmp_path / "file")


def test_a_folder_is_meant_as_its_name_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root is written into modules: neither the folder it was typed in nor ~ may stay in it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")  # as an automounter makes them
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MVSTACK_SITE", "~/here")
    wanted = str(tmp_path / "link")
    for typed in ("../link", "~/link"):  # bash leaves the ~ of --root=~/link as it is
        monkeypatch.setenv("MVSTACK_ROOT", typed)
        assert default_root() == default_root(Path(typed)) == wanted
        assert str(place(typed).folder) == str(local(typed)) == wanted
    (tmp_path / "here" / "below").mkdir()
    (tmp_path / "far").symlink_to("here/below")
    assert local(str(tmp_path / "far" / ".." / "x")) == tmp_path / "here" / "x"  # as the kernel
    assert home().site == tmp_path / "here"
    use(Path("~/link"))
    assert os.environ["MVSTACK_SITE"] == str(tmp_path / "here")
