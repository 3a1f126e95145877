"""A bundle, made and installed from, without a network where the kernel lets us take it away.

What is not tried here is the set-up of .venv from the wheels: it takes minutes, and the tests of
the launcher try it with one small package.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from cache_tree import Site
from install_tree import SYSTEM, states

from mvstack.bundle.make import archive, make
from mvstack.cache import gpg
from mvstack.cache.use import Caches
from mvstack.install import lmod
from mvstack.install.flow import Request
from mvstack.sources import accepted
from mvstack.sources.download import local
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Entry, Store
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.progress import Progress

TOP = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path, monkeypatch, tmp_path / "keys")
    made.fill()
    gpg.create("A site of tests", "a@example.org")

    def gather(target: Path, names: tuple[str, ...], note: Callable[[str], None]) -> None:
        target.mkdir(exist_ok=True)
        (target / "one.whl").write_text(" ".join(names))

    monkeypatch.setattr("mvstack.bundle.make.gather", gather)
    lua = tmp_path / "lua-1.tar.gz"
    lua.write_bytes(b"\x1f\x8bLua")
    digest = hashlib.sha256(lua.read_bytes()).hexdigest()
    spec = SourceSpec("Lua", "1", lua.name, (digest,), (lua.as_uri(),))
    monkeypatch.setattr(lmod, "specs", lambda: [spec])
    return made


def bundled(site: Site, name: str, **more: Any) -> tuple[Path, dict[str, Any]]:
    target = site.top / "bundle"
    binaries = more.pop("binaries", True)
    asked = Request(name, **{"root": Path(site.builder.root), "caches": Caches(), **more})
    about = make(asked, target, binaries, Progress(mode="quiet"))
    return target, about


class Far:
    """The machine on the other side: a home of its own, no network, a checkout that is set up."""

    def __init__(self, site: Site, bundle: Path) -> None:
        self.site, self.bundle = site, bundle
        self.to, self.home = site.top / "checkout", site.top / "far"
        self.home.mkdir()
        for file, words in {"mvstack": "-P -m mvstack", ".venv/bin/python": ""}.items():
            path = self.to / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f'#!/bin/sh\nexport PYTHONPATH={TOP}/src\nexec {sys.executable} {words} "$@"\n'
            )
            path.chmod(0o755)

    def install(self, *words: object) -> subprocess.CompletedProcess[str]:
        alone = ["unshare", "--net"] if _can_be_alone() else []
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LMOD_CMD": os.environ["LMOD_CMD"],
        }
        command = [*alone, str(self.bundle / "install"), "--to", str(self.to), *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)


def _can_be_alone() -> bool:
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


def test_binaries_arrive_and_are_installed_without_a_network(site: Site) -> None:
    bundle, about = bundled(site, "azure-hbv4")
    key = gpg.own_key().fingerprint
    assert about["binaries"] == {"signed_by": [key], "longest_root": len(site.builder.root)}
    far = Far(site, bundle)
    root = site.top / "other"

    nobody = far.install("--root", root, "--anyway")
    assert nobody.returncode and "nobody said by whom" in nobody.stderr and key in nobody.stderr
    wrong = far.install("--root", root, "--anyway", "--trust", "0" * 40)
    assert wrong.returncode and not root.exists()

    done = far.install("--root", root, "--anyway", "--trust", key, "azure-hbv4/hpc")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cached: ") == 4
    assert set(states(site.other).values()) == {"present"}
    again = far.install("--root", root, "--anyway")  # the key is trusted by now
    assert again.returncode == 0 and "nothing was built" in again.stdout

    longer = far.install("--root", site.top / "the-root-of-the-builder-and-more", "--anyway")
    assert longer.returncode == 4 and "is longer" in longer.stderr


def test_a_machine_without_lmod_finds_what_one_is_built_from(site: Site) -> None:
    bundle, _ = bundled(site, "azure-hbv4")
    (lua,) = lmod.specs()
    Path(lua.urls[0].removeprefix("file://")).unlink()
    far = Fetcher(Store(site.top / "far-sources"), [str(bundle / "sources")])
    assert far.fetch(lua).place.startswith("site mirror")
    assert "no Lmod" in (bundle / "README.md").read_text()


def test_a_bundle_that_was_damaged_on_its_way_is_not_used(site: Site) -> None:
    bundle, _ = bundled(site, "azure-hbv4")
    archive = next(bundle.glob("cache/easybuild/*/*/*.tar.gz"))
    archive.write_bytes(archive.read_bytes()[:-1])
    said = Far(site, bundle).install("--trust", gpg.own_key().fingerprint)
    assert said.returncode == 5 and "copy it again" in said.stderr


def test_what_it_says_of_itself_is_so(site: Site) -> None:
    bundle, about = bundled(site, "azure-hbv4")
    sums = (bundle / "SHA256SUMS").read_text()
    assert gpg.verified((bundle / "SHA256SUMS.asc").read_bytes())[0] == sums
    rows = dict(reversed(line.split("  ")) for line in sums.splitlines())
    for name, digest in rows.items():
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == digest
    files = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    assert files - set(rows) <= {"SHA256SUMS", "SHA256SUMS.asc", "cache/.lock", "sources/.lock"}
    with tarfile.open(bundle / "repository.tar.gz") as tar:
        names = set(tar.getnames())
    assert {"mvstack", "README.md", "requirements/runtime.txt"} <= names
    assert not any(name.startswith((".git/", ".venv/")) for name in names)
    page = (bundle / "README.md").read_text()
    assert "almalinux8" in page and "zen4" in page and "--trust FINGERPRINT" in page
    assert f"{len(site.builder.root)} characters" in page
    assert about["partitions"] == ["azure-hbv4/hpc"]
    if shutil.which("shellcheck"):
        assert subprocess.run(["shellcheck", str(bundle / "install")]).returncode == 0


def test_the_same_command_goes_on_and_other_folders_are_left_alone(site: Site) -> None:
    bundle, first = bundled(site, "azure-hbv4")
    (bundle / "SHA256SUMS").unlink()  # as if interrupted
    assert bundled(site, "azure-hbv4")[1] == first
    assert (bundle / "SHA256SUMS").is_file()
    with pytest.raises(InvalidInput, match="no release"):
        bundled(site, "azure-hbv4", release="none")
    assert (bundle / "SHA256SUMS").is_file()  # what was typed wrong harms no bundle
    shutil.rmtree(bundle)
    bundle.mkdir()
    (bundle / "letters").touch()
    with pytest.raises(InvalidInput, match="no bundle"):
        bundled(site, "azure-hbv4")
    assert [path.name for path in bundle.iterdir()] == ["letters"]


def test_binaries_come_from_a_cache_where_nothing_is_installed(site: Site) -> None:
    from mvstack.cache.use import site_caches

    site.push()
    caches = site_caches([str(site.cache)])
    bundle, about = bundled(site, "azure-hbv4", root=site.top / "empty", caches=caches)
    assert about["binaries"]["signed_by"] == [gpg.own_key().fingerprint]
    assert len(list(bundle.glob("cache/easybuild/*/*/*.json.asc"))) == 4
    with pytest.raises(Refused, match=r"there is no binary of .*MVAPICH"):
        bundled(site, "azure-hbv4", root=site.top / "empty")


def test_sources_of_stock_easyconfigs_are_refused(site: Site) -> None:
    with pytest.raises(Refused, match="EasyBuild's own") as error:
        bundled(site, "azure-hbv4", binaries=False)
    assert "--binaries" in str(error.value)


def test_sources_arrive_with_what_was_accepted(site: Site) -> None:
    file = site.top / "here.yaml"
    text = SYSTEM.read_text().replace("azure-hbv4", "here")
    file.write_text(text.replace("origin: easybuild", "origin: system"))
    root = site.top / "sources-here"
    store = Store(root / "sources")
    for name, version, filename in (
        ("MVAPICH", "4.0", "mvapich-4.0.tar.gz"),
        ("HPCC", "1.5.0", "hpcc-1.5.0.tar.gz"),
    ):
        tarball = site.top / filename
        tarball.write_bytes(b"\x1f\x8b" + name.encode())
        digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
        row = Entry(digest, filename, f"{name.lower()}@{version}", 9, "by hand")
        store.add(tarball, row)
        what = {"software": name, "version": version, "filename": filename, "when": "today"}
        accepted.accept(accepted.Accepted(**what, sha256=digest, reason="a site's own patch"))
    bundle, about = bundled(site, str(file), binaries=False, root=root)
    assert about["sources"] == ["hpcc-1.5.0.tar.gz", "mvapich-4.0.tar.gz"]
    assert {one["software"] for one in about["accepted"]} == {"MVAPICH", "HPCC"}
    assert "a site's own patch" in (bundle / "README.md").read_text()
    assert len(Store(bundle / "sources").entries()) == 2 + len(lmod.specs())
    assert (bundle / "system.yaml").read_text() == file.read_text()

    far = Far(site, bundle)
    said = far.install("--root", site.top / "other", "--anyway", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "would build" in said.stdout and "HPCC" in said.stdout
    assert "accepted by who made the bundle: a site's own patch" in said.stdout
    kept = json.dumps((far.home / ".local/state/mvapich-stack/accepted.yaml").read_text())
    assert "MVAPICH" in kept and "HPCC" in kept


def test_its_install_says_how_it_is_called(site: Site) -> None:
    bundle, _ = bundled(site, "azure-hbv4")

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        command = [bundle / "install", *words]
        return subprocess.run(command, cwd=site.top, capture_output=True, text=True)

    said = called("--help")
    assert said.returncode == 0 and said.stdout.startswith("Installs azure-hbv4/hpc from this")
    assert "\n--to " in said.stdout and "set -" not in said.stdout
    for option, lacks in (("--to", "folder"), ("--root", "folder"), ("--trust", "fingerprint")):
        said = called(option)
        assert said.returncode == 2 and f"bundle: {option} needs a {lacks}" in said.stderr
    assert not (site.top / "mvapich-stack").exists()


def test_a_stick_may_be_mounted_where_the_path_has_a_blank(site: Site) -> None:
    there = bundled(site, "azure-hbv4")[0].rename(site.top / "my 100% #1? stick")
    far = Far(site, there)
    asked = "$PIP_FIND_LINKS $MVSTACK_MIRRORS $MVSTACK_CACHES"
    (far.to / "mvstack").write_text(f'#!/bin/sh\necho "{asked}"\n')
    said = far.install("--trust", gpg.own_key().fingerprint)
    assert said.returncode == 0, said.stderr
    places = said.stdout.splitlines()[-1].split()
    assert [local(one) for one in places] == [there / "wheels", there / "sources", there / "cache"]


@pytest.mark.parametrize("clone", [False, True])
def test_a_bundle_in_the_checkout_does_not_hold_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clone: bool
) -> None:
    monkeypatch.setattr("mvstack.bundle.make.checkout", lambda _: tmp_path)
    (tmp_path / "bundle").mkdir()
    for name in ("mvstack", "bundle/one.whl"):
        (tmp_path / name).touch()
    if clone:
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
    target = tmp_path / "bundle" / "repository.tar.gz"
    assert archive(target) == ("", int(clone))
    with tarfile.open(target) as tar:
        assert [name for name in tar.getnames() if not name.startswith(".git/")] == ["mvstack"]
