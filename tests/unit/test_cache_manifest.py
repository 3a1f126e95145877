"""No manifest, pushes that meet, an archive that would write elsewhere than into its package."""

from __future__ import annotations

import errno
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from mvstack.cache import gpg, store
from mvstack.cache.manifest import Archive, parse
from mvstack.cache.place import place
from mvstack.cache.unpack import NotWhole, check, install
from mvstack.support import locks
from mvstack.support.errors import Missing
from mvstack.support.files import sha256_of

ZERO = "0" * 64
MODULE = "modules/x/1.lua"


def manifest(**changes: Any) -> str:
    data = {
        "format": 1, "builder": "easybuild", "content": ZERO, "os": "debian12", "target": "zen4",
        "easyconfig": "x-1.eb", "package": "x", "version": "1", "module": "x/1", "mpi": "",
        "tree": "/opt/stack/2026.11/local", "module_file": MODULE,
        "software": "software/x/1", "archive": {"sha256": ZERO, "size": 1}, "needs": [],
        "build": {}, "in_binary": "software/x/1/bin/x", "in_packed": "",
    }  # fmt: skip
    return json.dumps({**data, **changes})


def looked_at(folder: Path, *entries: tarfile.TarInfo | str, module: bool = True) -> None:
    """Look at an archive of these entries and the module; nothing of it may reach a tree."""
    archive = folder / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for one in (*entries, *([MODULE] if module else [])):
            tar.addfile(
                one if isinstance(one, tarfile.TarInfo) else tarfile.TarInfo(one), io.BytesIO()
            )
    named = Archive(sha256=sha256_of(archive), size=archive.stat().st_size)
    entry = parse(manifest()).model_copy(update={"archive": named})
    try:
        check(entry, archive)
    except NotWhole:
        with pytest.raises(NotWhole):
            install(entry, archive, folder / "tree")
        assert list((folder / "tree").iterdir()) == []
        raise


def of_type(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def test_a_plain_one_is_read(tmp_path: Path) -> None:
    read = parse(manifest())
    assert read.in_binary == "software/x/1/bin/x"
    assert parse(read.text()) == read
    looked_at(tmp_path, "software/x/1/bin/x", "ebfiles_repo/x/x-1.eb")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "software/x/1/../../../y", "software/x/1//a", "./a", "",
     "software/y/1/a", "records/plan.json", "init/bash", "software/x/10/a"],
)  # fmt: skip
def test_a_path_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotWhole):
        looked_at(tmp_path, path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"os": "../../x"},
        {"content": "x"},
        {"tree": "relative"},
        {"tree": "/ends/"},
        {"module_file": "/etc/x.lua"},
        {"software": "../x"},
        {"easyconfig": "a/b.eb"},
        {"archive": {"sha256": ZERO, "size": -1}},
        {"unknown": 1},
        {"in_binary": 1},
    ],
)
def test_what_is_not_as_it_must_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        parse(manifest(**changes))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    link = of_type("software/x/1/lib", tarfile.SYMTYPE, "/etc")
    with pytest.raises(NotWhole, match="through a link"):
        looked_at(tmp_path, link, "software/x/1/lib/passwd")
    with pytest.raises(NotWhole, match="through a link"):
        looked_at(tmp_path, "software/x/1/lib/passwd", link)


def test_a_path_occurs_once_and_the_module_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotWhole, match="twice"):
        looked_at(tmp_path, "software/x/1/a", "software/x/1/a")
    with pytest.raises(NotWhole, match="its own module"):
        looked_at(tmp_path, "software/x/1/a", module=False)
    with pytest.raises(NotWhole, match="its own module"):
        looked_at(tmp_path, of_type(MODULE, tarfile.SYMTYPE, "/etc/x.lua"), module=False)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE])
def test_devices_pipes_and_hard_links_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(NotWhole, match="neither a file"):
        looked_at(tmp_path, of_type("software/x/1/a", kind, MODULE))


def test_text_that_is_no_json_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError) as error:
        parse("{")
    assert "\n" not in str(error.value)


KEY = gpg.Key("0" * 40, "a@example.org", own=True)


def put(cache: Path, content: str) -> None:
    """Push an archive with ``content`` as a build of one and the same package."""
    archive = cache.parent / "archive"
    archive.write_text(content)
    about = Archive(sha256=sha256_of(archive), size=len(content))
    made = parse(manifest()).model_copy(update={"archive": about})
    store.put(place(str(cache)), made, about.sha256, archive, KEY)


def test_of_two_that_push_one_package_at_once_one_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold: Callable[..., AbstractContextManager[None]] = locks.hold

    def overtaken(file: Path) -> AbstractContextManager[None]:  # while it waits for the lock
        monkeypatch.setattr(locks, "hold", hold)
        put(tmp_path / "cache", "another's build")
        return hold(file)

    monkeypatch.setattr(store, "publish", lambda *_: None)
    monkeypatch.setattr(locks, "hold", overtaken)
    put(tmp_path / "cache", "a build")
    (signed,) = (tmp_path / "cache").glob("easybuild/*/*/*.json.asc")
    (archive,) = signed.parent.glob("*.tar.gz")
    assert sha256_of(archive) == signed.read_text()


def test_a_full_disk_of_the_cache_is_said_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, _: Path) -> None:  # as shutil says it: of the file it copies from
        raise OSError(errno.ENOSPC, "No space left on device", str(source))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(Missing, match=f"{tmp_path}/cache: the cache cannot be written: No space"):
        put(tmp_path / "cache", "a build")
