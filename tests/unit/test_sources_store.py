"""The mirror on disk: any bytes in, the same bytes out, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mvstack.cli.sources import app
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec, extension
from mvstack.sources.store import Entry, Store
from mvstack.support.errors import InvalidInput, SourceError


def put(store: Store, data: bytes, filename: str = "a-1.tar.gz", folder: Path | None = None) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        Path(file.name).write_bytes(data)
        store.add(Path(file.name), Entry(sha256, filename, "a@1", len(data), "here"))
    return sha256


def states(store: Store) -> list[str]:
    return [verdict.state for verdict in store.verify()]


def left_over(store: Store) -> list[Path]:
    return [path for path in store.root.rglob("*") if ".incoming" in path.name]


@given(
    st.lists(
        st.tuples(st.binary(max_size=300), st.sampled_from(["x.tar.gz", "y.whl", "z"])), max_size=6
    )
)
def test_any_bytes_in_the_same_bytes_out(files: list[tuple[bytes, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "sources")
        hashes = [put(store, data, name) for data, name in files]
        for (data, name), sha256 in zip(files, hashes, strict=True):
            path = store.get(sha256)
            assert path is not None
            assert path.read_bytes() == data
            link = store.link_easybuild("Alpha", name, sha256)
            assert link.read_bytes() == data
        assert {entry.sha256 for entry in store.entries()} == set(hashes)
        names = {(sha256, name) for sha256, (_, name) in zip(hashes, files, strict=True)}
        assert len(store.entries()) == len(names)
        assert set(states(store)) <= {"good"}
        assert not left_over(store)


@given(st.text(), st.text(), st.text(), st.text())
def test_the_index_keeps_any_text(name: str, software: str, place: str, note: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        incoming = Path(folder) / "file"
        incoming.write_bytes(b"x")
        entry = Entry("a" * 64, name, software, 1, place, note)
        store.take(incoming, entry)
        assert store.entry("a" * 64, software) == entry


def test_the_layouts_are_those_of_spack_and_easybuild(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sha256 = put(store, b"data", "mpich-4.0.2.tar.xz")
    spacks = tmp_path / "_source-cache" / "archive" / sha256[:2] / f"{sha256}.tar.xz"
    assert store.get(sha256) == spacks
    link = store.link_easybuild("MPICH", "mpich-4.0.2.tar.xz", sha256)
    assert link == tmp_path / "easybuild" / "m" / "MPICH" / "mpich-4.0.2.tar.xz"
    assert not link.readlink().is_absolute()  # the mirror can be moved, or mounted elsewhere
    assert store.link_easybuild("3to2", "x.gz", sha256).parent.parent.name == "0"


@pytest.mark.parametrize(
    ("name", "ext"),
    [("a-1.tar.gz", "tar.gz"), ("a.tgz", "tgz"), ("a.whl", "whl"), ("a", ""), ("a.b", "")],
)
def test_extension(name: str, ext: str) -> None:
    assert extension(name) == ext


def test_files_get_the_permissions_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        store = Store(tmp_path / "sources")
        path = store.get(put(store, b"data"))
    finally:
        os.umask(before)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o640


def test_verify_tells_damaged_and_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, damaged, missing = (put(store, data) for data in (b"good", b"damaged", b"missing"))
    damaged_path, missing_path = store.get(damaged), store.get(missing)
    assert damaged_path and missing_path
    damaged_path.write_bytes(b"damagee")
    missing_path.unlink()
    (store.archive / "ab").mkdir()
    (store.archive / "ab" / "notes.txt").write_text("somebody's")
    store.link_easybuild("Alpha", "a.tar.gz", damaged)
    found = {verdict.entry.sha256: verdict for verdict in store.verify()}
    assert found[good].state == "good"
    assert found[damaged].state == "damaged"
    assert found[missing].state == "missing"
    assert len(found) == 3, "a file that is not named by a hash is left alone"
    assert damaged_path.exists(), "verify removes nothing"
    for verdict in list(store.verify()):
        if verdict.state != "good":
            store.remove(verdict)
    assert states(store) == ["good"]
    assert not (tmp_path / "easybuild" / "a" / "Alpha" / "a.tar.gz").is_symlink()


def test_a_file_that_somebody_elses_spack_put_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sha256 = hashlib.sha256(b"data").hexdigest()
    path = store.archive / sha256[:2] / f"{sha256}.odd-ending"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"data")
    assert store.get(sha256) == path
    assert [(v.state, v.path) for v in store.verify()] == [("good", path)]


WRONG = {"sha256": "0" * 64, "filename": "y", "software": 3, "size": "z", "place": None}
LEADING_OUT = {**WRONG, "sha256": "../../../y", "software": "y@1", "size": 1, "place": "here"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[1]", '[{"sha256": "x"}]', "\udce4", "[" * 200_000),
        *(json.dumps([WRONG]), json.dumps([LEADING_OUT])),
    ],
)
def test_a_lost_or_damaged_index_costs_the_names_only(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path)
    sha256 = put(store, b"data")
    store.index.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert [entry.sha256 for entry in store.entries()] == [sha256]
    assert states(store) == ["good"]
    other = put(store, b"other")
    assert {entry.sha256 for entry in store.entries()} == {sha256, other}


def test_an_index_of_a_later_version_can_be_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sha256 = put(store, b"data")
    rows = json.loads(store.index.read_text())
    store.index.write_text(json.dumps([{**row, "colour": "blue"} for row in rows]))
    entry = store.entry(sha256, "a@1")
    assert entry is not None
    assert entry.software == "a@1"


def test_the_same_bytes_for_two_software_are_two_lines_and_one_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for software in ("a@1", "b@2"):
        incoming = tmp_path / "file"
        incoming.write_bytes(b"data")
        sha256 = hashlib.sha256(b"data").hexdigest()
        store.take(incoming, Entry(sha256, "x.tar.gz", software, 4, f"for {software}"))
    first, second = store.entry(sha256, "a@1"), store.entry(sha256, "b@2")
    assert first and second
    assert (first.place, second.place) == ("for a@1", "for b@2")
    assert states(store) == ["good"]


def test_a_link_in_the_archive_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    sha256 = hashlib.sha256(b"secret").hexdigest()
    store = Store(tmp_path / "sources")
    place = store.path(sha256, "a.tar.gz")
    place.parent.mkdir(parents=True)
    place.symlink_to(secret)
    assert store.get(sha256) is None
    put(store, b"secret")  # replaces the link and leaves what it leads to
    assert not place.is_symlink()
    assert secret.read_bytes() == b"secret"


def test_a_name_that_is_no_hash_finds_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store, b"data")
    assert all(store.get(name) is None for name in ("", "*", "../..", "a" * 63, "[a-f]" * 13))


def test_a_wrong_hash_is_not_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "sources")
    file = tmp_path / "file"
    file.write_bytes(b"data")
    with pytest.raises(SourceError, match="does not have its hash") as caught:
        store.add(file, Entry("a" * 64, "a.tar.gz", "a@1", 4, "here"))
    problem = caught.value.problems[0]
    assert hashlib.sha256(b"data").hexdigest() in problem.found
    assert "a" * 64 in problem.allowed
    assert store.entries() == []
    assert not left_over(store)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "sources")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, words in (
        (fifo, "not a regular file"),
        (tmp_path, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "none", "no such file"),
        (fifo / "below", "no such file"),
        (Path("a\0b"), "cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=words):
            store.add(path, Entry("a" * 64, "a.tar.gz", "a@1", 4, "here"))


def test_easybuilds_own_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sha256 = put(store, b"data")
    own = tmp_path / "easybuild" / "a" / "Alpha" / "a.tar.gz"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"data")
    assert store.link_easybuild("Alpha", "a.tar.gz", sha256) == own
    own.write_bytes(b"other")
    with pytest.raises(SourceError, match="has other bytes"):
        store.link_easybuild("Alpha", "a.tar.gz", sha256)
    assert own.read_bytes() == b"other"


def test_a_link_to_other_bytes_is_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = put(store, b"one"), put(store, b"two")
    store.link_easybuild("Alpha", "a.tar.gz", one)
    assert store.link_easybuild("Alpha", "a.tar.gz", two).read_bytes() == b"two"


def test_a_store_that_cannot_be_written_says_so_and_still_gives(tmp_path: Path) -> None:
    store = Store(tmp_path / "sources")
    sha256 = put(store, b"data")
    store.link_easybuild("Alpha", "a.tar.gz", sha256)
    with read_only(tmp_path):
        fresh = Store(store.root)
        with pytest.raises(SourceError, match="cannot be written") as caught:
            put(fresh, b"other")
        assert "--root" in caught.value.problems[0].todo
        assert fresh.get(sha256)
        assert states(fresh) == ["good"]
        assert fresh.link_easybuild("Alpha", "a.tar.gz", sha256).read_bytes() == b"data"
        with pytest.raises(SourceError, match="cannot be written"):
            fresh.link_easybuild("Alpha", "b.tar.gz", sha256)


def test_what_this_user_may_not_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # for somebody else than root
    store = Store(tmp_path / "sources")
    sha256 = put(store, b"data")
    path, spec = store.get(sha256), SourceSpec("Alpha", "1", "a-1.tar.gz", (sha256,), ())
    assert path
    with read_only(tmp_path, path):  # licensed, or added under umask 077
        assert states(store) == ["unreadable"]
        with pytest.raises(SourceError, match="you may not read this file"):
            Fetcher(store, []).fetch(spec)
    with read_only(tmp_path, store.archive):
        assert store.get(sha256) is None


def test_only_what_is_damaged_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    sha256 = put(store := Store(tmp_path / "sources"), b"data")
    monkeypatch.setattr("mvstack.sources.store.sha256_of", refused)
    done = CliRunner().invoke(app, ["verify", "--remove-damaged", "--root", str(tmp_path)])
    assert "unreadable: a-1.tar.gz" in str(done.exception) and "chmod" in str(done.exception)
    assert store.get(sha256)


def test_a_mirror_that_cannot_be_read_stops_no_other_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    site, store = tmp_path / "site", Store(tmp_path / "own")
    sha256 = put(Store(site), b"data")
    store.root.mkdir()
    store.root.chmod(0o777)
    spec = SourceSpec("Alpha", "1", "a-1.tar.gz", (sha256,), ())
    with (
        read_only(site, site),
        pytest.raises(SourceError, match="cannot be fetched") as error,
    ):
        Fetcher(store, [str(site), "/mnt/not-mounted"]).fetch(spec)
    found = error.value.problems[0].found
    assert f"{site}/a-1.tar.gz: Permission denied; /mnt/not-mounted/a-1.tar.gz: No such" in found


class read_only:
    """Take away the right to write below a folder; root gives up being root for it.

    ``closed`` are those that nobody may read either.
    """

    def __init__(self, folder: Path, *closed: Path) -> None:
        self.folder, self.closed = folder, closed

    def __enter__(self) -> None:
        for path in [self.folder, *self.folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o555 if path.is_dir() else 0o444)
        for path in self.closed:
            path.chmod(0)
        # pytest's own folders are closed to other users, and root becomes one below
        closed = [path for path in self.folder.parents if not path.stat().st_mode & 0o001]
        self.parents = closed if os.geteuid() == 0 else []
        self.modes = [path.stat().st_mode & 0o7777 for path in self.parents]
        if os.geteuid() == 0:
            for path, mode in zip(self.parents, self.modes, strict=True):
                path.chmod(mode | 0o055)
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        if os.getuid() == 0:
            os.seteuid(0)
            for path, mode in zip(self.parents, self.modes, strict=True):
                path.chmod(mode)
        for path in self.closed:
            path.chmod(0o755)
        for path in [self.folder, *self.folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
