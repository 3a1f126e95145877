"""Files that a person adds: upstream's bytes, and others on purpose."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mvstack.install.stages import accepted_bytes
from mvstack.model.load import load_release
from mvstack.sources.accepted import (
    Accepted,
    accept,
    accepted_for,
    add_source,
    all_accepted,
    forget,
    meant,
    state_dir,
)
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import Known, SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import InvalidInput, SourceError

UPSTREAM = gzip.compress(b"upstream", mtime=0)
OTHER = gzip.compress(b"other", mtime=0)
REFUSED = gzip.compress(b"refused", mtime=0)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SPEC = SourceSpec(
    "MVAPICH",
    "4.0",
    "mvapich-4.0.tar.gz",
    (sha256(UPSTREAM),),
    known=Known.model_construct(refused={sha256(REFUSED): "replaced in place by upstream"}),
    recipe="MVAPICH-4.0.eb:17",
)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def acceptance(digest: str) -> Accepted:
    what = {"software": SPEC.software, "version": SPEC.version, "filename": SPEC.filename}
    return Accepted(**what, sha256=digest, reason="on purpose", when="2026-11-26T00:00:00Z")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "root" / "sources")


def file_of(tmp_path: Path, data: bytes, name: str = "mvapich-4.0.tar.gz") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_upstreams_bytes_are_stored_and_nothing_is_accepted(tmp_path: Path, store: Store) -> None:
    row = add_source(store, SPEC, file_of(tmp_path, UPSTREAM), None, None)
    assert row["upstream"] is True
    assert store.get(sha256(UPSTREAM))
    assert accepted_for("MVAPICH", "4.0", SPEC.filename) is None
    assert (store.root / "easybuild/m/MVAPICH/mvapich-4.0.tar.gz").read_bytes() == UPSTREAM


def test_other_bytes_are_refused_with_both_hashes(tmp_path: Path, store: Store) -> None:
    with pytest.raises(SourceError, match=r"not the mvapich-4\.0\.tar\.gz") as caught:
        add_source(store, SPEC, file_of(tmp_path, OTHER), None, None)
    problem = caught.value.problems[0]
    assert sha256(OTHER) in problem.found
    assert sha256(UPSTREAM) in problem.allowed
    assert f"--accept-hash {sha256(OTHER)}" in problem.todo
    assert store.entries() == []


def test_a_known_replaced_tarball_is_explained(tmp_path: Path, store: Store) -> None:
    with pytest.raises(SourceError, match="replaced in place by upstream"):
        add_source(store, SPEC, file_of(tmp_path, REFUSED), None, None)


def test_other_bytes_on_purpose(tmp_path: Path, store: Store) -> None:
    file = file_of(tmp_path, OTHER)
    row = add_source(store, SPEC, file, sha256(OTHER).upper(), "site\n patch 12")
    assert row["upstream"] is False
    assert row["note"] == "not upstream's bytes: site patch 12"
    taken = accepted_for("mvapich", "4.0", SPEC.filename)
    assert taken is not None
    assert (taken.sha256, taken.reason) == (sha256(OTHER), "site patch 12")
    fetched = Fetcher(store, []).fetch(SPEC)
    assert (fetched.upstream, fetched.sha256) == (False, sha256(OTHER))
    assert "site patch 12" in fetched.note
    assert (store.root / "easybuild/m/MVAPICH/mvapich-4.0.tar.gz").read_bytes() == OTHER


def test_accepted_bytes_come_before_upstreams(tmp_path: Path, store: Store) -> None:
    add_source(store, SPEC, file_of(tmp_path, UPSTREAM), None, None)
    add_source(store, SPEC, file_of(tmp_path, OTHER), sha256(OTHER), "on purpose")
    assert Fetcher(store, []).fetch(SPEC).sha256 == sha256(OTHER)


def test_accepted_bytes_that_are_gone_are_not_quietly_replaced(
    tmp_path: Path, store: Store
) -> None:
    add_source(store, SPEC, file_of(tmp_path, UPSTREAM), None, None)
    accept(acceptance(sha256(OTHER)))
    with pytest.raises(SourceError, match="are not in this mirror") as caught:
        Fetcher(store, []).fetch(SPEC)
    assert "sources forget mvapich@4.0" in caught.value.problems[0].todo
    forget("mvapich", "4.0")
    assert Fetcher(store, []).fetch(SPEC).sha256 == sha256(UPSTREAM)


def test_bytes_accepted_for_another_root_are_not_available_in_this_one(
    tmp_path: Path, store: Store
) -> None:
    """`up local` chose a version whose bytes were in another root's mirror, and ended with 5."""
    add_source(store, SPEC, file_of(tmp_path, OTHER), sha256(OTHER), "on purpose")
    other = Store(tmp_path / "other" / "sources")
    assert Fetcher(store, []).available(SPEC)
    assert not Fetcher(other, []).available(SPEC)


def test_adding_upstreams_bytes_ends_an_acceptance(tmp_path: Path, store: Store) -> None:
    add_source(store, SPEC, file_of(tmp_path, OTHER), sha256(OTHER), "on purpose")
    row = add_source(store, SPEC, file_of(tmp_path, UPSTREAM), None, None)
    assert "no longer accepted" in row["note"]
    assert accepted_for("MVAPICH", "4.0", SPEC.filename) is None


@pytest.mark.parametrize(
    ("accepted", "reason", "error", "words"),
    [
        ("a" * 64, "why", SourceError, "does not have the hash that is accepted"),
        ("0x12", "why", InvalidInput, "64 hexadecimal digits"),
        ("real", None, InvalidInput, "needs --reason"),
        ("real", "  \n ", InvalidInput, "needs --reason"),
        (None, "why", InvalidInput, "no --accept-hash is given"),
    ],
)
def test_an_acceptance_that_is_none(
    tmp_path: Path,
    store: Store,
    accepted: str | None,
    reason: str | None,
    error: type[Exception],
    words: str,
) -> None:
    accepted = sha256(OTHER) if accepted == "real" else accepted
    with pytest.raises(error, match=words):
        add_source(store, SPEC, file_of(tmp_path, OTHER), accepted, reason)
    assert store.entries() == []
    assert all_accepted() == []


def test_both_mistakes_of_an_acceptance_are_told_at_once(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        add_source(store, SPEC, file_of(tmp_path, OTHER), "short", "")
    assert len(caught.value.problems) == 2


def test_odd_file_names_and_links_do_no_harm(tmp_path: Path, store: Store) -> None:
    for name in ("-rf", "a b;rm -rf $HOME", "..tar.gz", "ä\u202e.gz"):
        add_source(store, SPEC, file_of(tmp_path, UPSTREAM, name), None, None)
    link = tmp_path / "link"
    link.symlink_to(file_of(tmp_path, UPSTREAM, "target"))
    add_source(store, SPEC, link, None, None)
    assert [entry.sha256 for entry in store.entries()] == [sha256(UPSTREAM)]
    stored = store.get(sha256(UPSTREAM))
    assert stored is not None
    assert not stored.is_symlink()
    assert link.is_symlink()


def test_which_of_several_files_is_meant(tmp_path: Path) -> None:
    two = SourceSpec("MVAPICH", "4.0", "data.tgz", ())
    assert meant([SPEC], Path("anything")) is SPEC
    assert meant([SPEC, two], Path("/x/data.tgz")) is two
    with pytest.raises(InvalidInput, match="say which one") as caught:
        meant([SPEC, two], Path("other"))
    assert "mvapich@4.0:data.tgz" in caught.value.problems[0].allowed


def test_a_broken_file_of_acceptances_names_its_line() -> None:
    accept(acceptance("a" * 64))
    path = state_dir() / "accepted.yaml"
    path.write_text(path.read_text().replace("reason:", "raeson:"))
    with pytest.raises(InvalidInput, match=r"accepted\.yaml:\d+.*did you mean reason"):
        accepted_for("MVAPICH", "4.0", SPEC.filename)


def test_the_state_folder_follows_the_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/x")
    assert state_dir() == Path("/home/x/.local/state/mvapich-stack")


def test_a_state_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "file"))
    with pytest.raises(SourceError, match="cannot be written") as caught:
        accept(acceptance("a" * 64))
    assert "XDG_STATE_HOME" in caught.value.problems[0].todo


def test_bytes_of_each_file_are_accepted_for_that_file(tmp_path: Path, store: Store) -> None:
    """Those accepted for the third source were taken for the first, and the build failed."""
    version = next(one.version for one in load_release().packages if one.name == "QuantumESPRESSO")
    same = {"software": "QuantumESPRESSO", "version": version, "hashes": ("0" * 64,)}
    for at, name in ((0, "first"), (2, "third")):
        spec = SourceSpec(**same, filename=f"{name}.tgz", position=at)
        data = gzip.compress(name.encode(), mtime=0)
        add_source(store, spec, file_of(tmp_path, data), sha256(data), f"the {name}")
    taken = accepted_bytes(load_release())["QuantumESPRESSO", version]
    digests = [sha256(gzip.compress(name, mtime=0)) for name in (b"first", b"third")]
    assert taken.sha256 == [digests[0], "", digests[1]]
    assert taken.reason == "the first; the third"


def test_other_bytes_of_an_extension_are_refused(tmp_path: Path, store: Store) -> None:
    spec = replace(SPEC, position=-1)
    with pytest.raises(InvalidInput, match="extension or component"):
        add_source(store, spec, file_of(tmp_path, OTHER), sha256(OTHER), "on purpose")
    assert not all_accepted() and not store.entries()
