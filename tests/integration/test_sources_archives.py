"""The Debian source archive through a real apt, and PyPI through a real pip."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from source_server import closed_port

from mvstack.plan.easyconfigs import index
from mvstack.sources import Fetcher, SourceSpec, Store, specs_from_easyconfigs
from mvstack.sources.apt_sources import archives
from mvstack.sources.debian import KEYRINGS, DebianArchive
from mvstack.sources.download import NotHere
from mvstack.sources.hosts import SilentHosts
from mvstack.sources.spec import Debian
from mvstack.support.errors import SourceError

HPCC = Debian(package="hpcc", suite="bookworm", file="hpcc_1.5.0.orig.tar.gz")
HPCC_HASH = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"

pytestmark = pytest.mark.skipif(
    not shutil.which("apt-get") or not list(KEYRINGS.glob("debian-archive-*.gpg")),
    reason="no apt-get or no keys of Debian's archive on this machine",
)


@pytest.fixture(scope="module")
def archive() -> str:
    """The archive that this machine uses, if it answers."""
    for uri in archives():
        url = f"{uri}/dists/bookworm/InRelease"
        try:
            with urllib.request.urlopen(url, timeout=10):
                return uri
        except OSError:
            continue
    pytest.skip("unreachable: no Debian archive answers")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))


def debian(state: Path, *uris: str) -> DebianArchive:
    return DebianArchive(state, SilentHosts(state), list(uris))


def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    return folder


def test_the_file_comes_by_its_hash(archive: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    state, folder = tmp_path / "state", inbox(tmp_path)
    file, place = debian(state, archive).fetch(
        HPCC, [HPCC_HASH], folder, lambda *row: seen.append(row)
    )
    assert hashlib.sha256(file.read_bytes()).hexdigest() == HPCC_HASH
    assert place.startswith("Debian source archive, bookworm, hpcc 1.5.0-")
    assert seen[-1] == (file.stat().st_size, file.stat().st_size)
    # The index is kept: the second file needs no update.
    before = (state / "apt" / "updated").stat().st_mtime
    file.unlink()
    debian(state, archive).fetch(HPCC, [HPCC_HASH], folder, lambda *_: None)
    assert (state / "apt" / "updated").stat().st_mtime == before


def test_other_hashes_are_told_and_nothing_is_loaded(archive: str, tmp_path: Path) -> None:
    folder = inbox(tmp_path)
    with pytest.raises(NotHere, match="listed hash") as caught:
        debian(tmp_path, archive).fetch(HPCC, ["a" * 64], folder, lambda *_: None)
    assert HPCC_HASH in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Debian(package="no-such-package", suite="bookworm", file="x"), "no source package"),
        (Debian(package="hpcc", suite="no-such-suite", file="x"), "404|Release"),
        (Debian(package="hpcc", suite="bookworm", file="other"), "no other with a listed hash"),
    ],
)
def test_what_the_archive_does_not_have(
    archive: str, tmp_path: Path, wanted: Debian, words: str
) -> None:
    with pytest.raises(NotHere, match=words):
        debian(tmp_path, archive).fetch(wanted, ["a" * 64], inbox(tmp_path), lambda *_: None)


def test_an_archive_that_refuses_is_remembered_and_the_next_is_asked(
    archive: str, tmp_path: Path
) -> None:
    closed = f"http://127.0.0.1:{closed_port()}/debian"
    both = debian(tmp_path, closed, archive)
    assert both.fetch(HPCC, [HPCC_HASH], inbox(tmp_path), lambda *_: None)
    assert "127.0.0.1" in both.hosts.why(closed.split("/")[2])


def test_an_archive_that_does_not_answer(tmp_path: Path) -> None:
    places = (f"http://127.0.0.1:{closed_port()}/debian", "http://archive.invalid/debian")
    state = tmp_path / "state"
    with pytest.raises(NotHere) as caught:
        debian(state, *places).fetch(HPCC, [HPCC_HASH], inbox(tmp_path), lambda *_: None)
    assert "127.0.0.1" in str(caught.value)
    assert "archive.invalid" in str(caught.value)
    with pytest.raises(NotHere, match="not asked again"):
        debian(state, *places).fetch(HPCC, [HPCC_HASH], inbox(tmp_path), lambda *_: None)


def test_it_needs_no_root_and_changes_nothing_of_the_machine(archive: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("every other test here has run without root already")
    # pytest's folders are closed to other users
    folder = Path("/var/tmp") / f"mvstack-test-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    lists = Path("/var/lib/apt/lists")
    before = sorted((path.name, path.stat().st_mtime) for path in lists.glob("*"))

    def fetch() -> None:
        inbox(folder)
        file, _ = debian(folder / "state", archive).fetch(
            HPCC, [HPCC_HASH], folder / "in", lambda *_: None
        )
        assert file.stat().st_uid == 65534

    try:
        assert as_nobody(fetch) == 0
    finally:
        shutil.rmtree(folder)
    assert sorted((path.name, path.stat().st_mtime) for path in lists.glob("*")) == before


def as_nobody(call: Callable[[], None]) -> int:
    """Do ``call`` as a user without rights, in a process of its own; 0 when it went well."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.environ["HOME"] = "/nonexistent"
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        call()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    os._exit(0)


def test_mpich_of_our_own_recipe(archive: str, tmp_path: Path) -> None:
    """Upstream's or Debian's, whichever can be had: told apart by the hash."""
    (spec,) = specs_from_easyconfigs([index()["MPICH-4.0.2-GCC-12.2.0-ofi.eb"]])
    fetched = Fetcher(Store(tmp_path / "sources"), [], tmp_path / "state").fetch(spec)
    assert fetched.sha256 in spec.hashes
    assert fetched.upstream == (fetched.sha256 == spec.hashes[0])
    assert fetched.upstream or "Debian" in fetched.place


# --- PyPI -----------------------------------------------------------------------------------------

WHEEL = "typing_extensions-4.12.2-py3-none-any.whl"
WHEEL_HASH = "04e5ca0351e0f3f85c6853954072df659d0d13fac324d0072316b67d7794700d"


def wheel_spec(sha256: str = WHEEL_HASH, name: str = WHEEL) -> SourceSpec:
    requirement = "typing-extensions==4.12.2"
    return SourceSpec("Alpha", "1", name, (sha256,), (), pypi=requirement)


def test_a_wheel_from_pypi(tmp_path: Path) -> None:
    fetcher = Fetcher(Store(tmp_path / "sources"), [], tmp_path / "state")
    try:
        fetched = fetcher.fetch(wheel_spec())
    except SourceError as error:
        if "does not answer" in str(error):
            pytest.skip("unreachable: no index of Python packages answers")
        raise
    assert fetched.path.name == f"{WHEEL_HASH}.whl"
    assert fetched.place == "PyPI, typing-extensions==4.12.2"
    for spec in (wheel_spec("a" * 64), wheel_spec(name="typing_extensions-9-py3-none-any.whl")):
        with pytest.raises(SourceError):
            Fetcher(Store(tmp_path / "other"), [], tmp_path / "state").fetch(spec)
    assert not list((tmp_path / "other").glob(".incoming*"))


def test_an_index_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port()}/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    fetcher = Fetcher(Store(tmp_path / "sources"), [], tmp_path / "state")
    with pytest.raises(SourceError, match=r"PyPI: .*the index does not answer"):
        fetcher.fetch(wheel_spec())
    with pytest.raises(SourceError, match="not asked again"):
        fetcher.fetch(wheel_spec())
