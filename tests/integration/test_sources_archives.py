"""A real Debian source archive, and PyPI through a real pip."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from source_server import closed_port

from mvstack.plan.easyconfigs import index
from mvstack.sources.archives import debian_archives
from mvstack.sources.fetch import Fetcher
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import Debian, Known, SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import SourceError

HPCC = Debian(package="hpcc", file="hpcc_1.5.0.orig.tar.gz")
HPCC_HASH = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"


@pytest.fixture(scope="module")
def archive() -> str:
    """The archive that this machine uses, if it answers."""
    for uri in debian_archives():
        url = f"{uri}/pool/main/h/hpcc/{HPCC.file}"
        try:
            with urllib.request.urlopen(url, timeout=10):
                return uri
        except OSError:
            continue
    pytest.skip("unreachable: no Debian archive answers")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))


def test_a_file_of_this_machines_archive(archive: str, tmp_path: Path) -> None:
    spec = SourceSpec(
        "HPCC", "1.5.0", "hpcc-1.5.0.tar.gz", (HPCC_HASH,), known=Known.model_construct(debian=HPCC)
    )
    seen: list[tuple[str, int, int]] = []
    fetcher = Fetcher(Store(tmp_path / "sources"), [])
    fetcher.on_progress = lambda *row: seen.append(row)
    fetched = fetcher.fetch(spec)
    assert fetched.place == f"Debian source archive, {archive}/pool/main/h/hpcc/{HPCC.file}"
    size = fetched.path.stat().st_size
    assert seen[-1] == ("hpcc-1.5.0.tar.gz", size, size)


def test_mpich_of_our_own_recipe(archive: str, tmp_path: Path) -> None:
    """Upstream's or Debian's, whichever can be obtained: told apart by the hash."""
    (spec,) = specs_from_easyconfigs([index()["MPICH-4.0.2-GCC-12.2.0-ofi.eb"]])
    fetched = Fetcher(Store(tmp_path / "sources"), []).fetch(spec)
    assert fetched.sha256 in spec.hashes
    assert fetched.upstream == (fetched.sha256 == spec.hashes[0])
    assert fetched.upstream or "Debian" in fetched.place


# --- PyPI -----------------------------------------------------------------------------------------

WHEEL = "typing_extensions-4.12.2-py3-none-any.whl"
WHEEL_HASH = "04e5ca0351e0f3f85c6853954072df659d0d13fac324d0072316b67d7794700d"


def wheel_spec(sha256: str = WHEEL_HASH, name: str = WHEEL) -> SourceSpec:
    requirement = "typing-extensions==4.12.2"
    return SourceSpec(
        "Alpha", "1", name, (sha256,), (), known=Known.model_construct(pypi=requirement)
    )


def test_a_wheel_from_pypi(tmp_path: Path) -> None:
    fetcher = Fetcher(Store(tmp_path / "sources"), [])
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
            Fetcher(Store(tmp_path / "other"), []).fetch(spec)
    assert not list((tmp_path / "other").glob(".incoming*"))


def test_an_index_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port()}/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    fetcher = Fetcher(Store(tmp_path / "sources"), [])
    with pytest.raises(SourceError, match=r"PyPI: .*the index does not answer"):
        fetcher.fetch(wheel_spec())
    with pytest.raises(SourceError, match="not asked again"):
        fetcher.fetch(wheel_spec())
