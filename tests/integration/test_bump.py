"""`mvstack outdated` asks real git repositories, `mvstack bump` changes a copy of this one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from said import Mvstack, Said
from test_cli import TOP
from versions.elsewhere import STOCK

TAGS = {"hypre-space/hypre": ["v2.33.0", "v3.1.0", "v9.1.0", "v10.0-rc1", "nightly-99"]}
TAGS |= {"spack/spack.git": ["v1.1.0"], "openucx/ucx": ["v1.0.0"]}


@pytest.fixture
def upstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bare repositories with tags, in the place of github.com's by git's own setting."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for name, tags in TAGS.items():
        folder = tmp_path / "git" / name
        subprocess.run([*git, "init", "-q", "--bare", folder], check=True)
        blob = subprocess.run(
            [*git, "-C", folder, "hash-object", "-w", "--stdin"], input=b"", capture_output=True
        )
        for tag in tags:
            subprocess.run([*git, "-C", folder, "tag", tag, blob.stdout.strip()], check=True)
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "file://{tmp_path}/git/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    return tmp_path / "git"


def test_the_newest_of_each_place_is_listed(mvstack: Mvstack, upstreams: Path) -> None:
    document = json.loads(mvstack("outdated", "hypre", "spack", "LAMMPS", "--json").out)
    rows = {one["name"]: one for one in document["rows"]}
    assert rows["Hypre"]["upstream"] == "9.1.0" and rows["Hypre"]["behind"]
    assert rows["Hypre"]["release"] == "2.33.0" and rows["Hypre"]["why"]
    assert rows["Hypre"]["easybuild"], "stock EasyBuild is installed with the tests"
    assert rows["spack"]["upstream"] == "1.1.0" and not rows["spack"]["behind"]
    unseen = document["not_seen"]
    assert any("there is no" in one and "/spack/v1.1.0/packages" in one for one in unseen)
    assert any("https://github.com/lammps/lammps: " in one and "LAMMPS" in one for one in unseen)
    assert not any("Hypre" in one for one in unseen)
    said = mvstack("outdated", "hypre")
    assert "2.33.0" in said.out and "9.1.0" in said.out and "1 of 1 are behind" in said.out


def test_a_host_that_is_not_there_is_said_once(
    mvstack: Mvstack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text('[url "https://127.0.0.1:1/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    said = mvstack("outdated", "hypre", "lammps", "hdf5")
    assert said.code == 0
    (line,) = [one for one in said.out.splitlines() if "github.com" in one]
    assert line.startswith("not seen: github.com does not answer (") and all(
        name in line for name in ("Hypre", "LAMMPS", "HDF5")
    )


def test_a_tag_list_without_the_release_s_version_is_said(
    mvstack: Mvstack, upstreams: Path
) -> None:
    subprocess.run(["git", "-C", upstreams / "hypre-space/hypre", "tag", "-d", "v2.33.0"])
    said = mvstack("outdated", "hypre").out
    assert "none of its 4 tags is the release's version: Hypre" in said


@pytest.mark.parametrize(
    ("words", "code", "near"),
    [
        (["outdated", "hypr"], 3, "nearest   Hypre"),
        (["bump", "hypr", "3.1.0"], 3, "nearest   Hypre"),
        (["bump", "hypre", "../2"], 3, "VERSION: this cannot be used"),
        (["bump", "hypre", "3.1.0", "--sha256", "abc"], 3, "64 hexadecimal digits"),
        (["bump", "hypre", "2.33.0"], 4, "it is at 2.33.0 already"),
        (["bump", "mvapich", "4.2"], 3, "an MPI's versions are changed by hand"),
    ],
)
def test_what_cannot_be_is_refused(
    mvstack: Mvstack, words: list[str], code: int, near: str
) -> None:
    said = mvstack(*words, "--dry-run") if words[0] == "bump" else mvstack(*words)
    assert said.code == code and near in said.err, said


def copied(folder: Path) -> Path:
    """What git has of this checkout, as a checkout of its own, and a Spack that has hypre."""
    names = subprocess.run(
        ["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / name, folder / name)
    return folder


def test_a_package_is_bumped_and_everything_is_fresh(tmp_path: Path) -> None:
    """The one hash is stock EasyBuild's; a wrong one in Spack's recipe is caught before."""
    top, root = copied(tmp_path / "copy"), tmp_path / "root"
    recipe = root / "spack/v1.1.0/packages/repos/spack_repo/builtin/packages/hypre/package.py"
    recipe.parent.mkdir(parents=True)
    (easyconfig,) = STOCK.glob("h/Hypre/Hypre-3.1.0-foss-2026.1.eb")
    theirs = easyconfig.read_text().partition("checksums = ['")[2][:64]
    (old,) = top.glob("easyconfigs/h/Hypre/Hypre-2.33.0-*.eb")
    ours = old.read_text().partition("checksums = ['")[2][:64]

    def spack_has(sha256: str) -> None:
        versions = f'version("2.33.0", sha256="{ours}")\nversion("3.1.0", sha256="{sha256}")\n'
        recipe.write_text(versions)

    def said(*words: str) -> Said:
        paths = {"PYTHONPATH": str(top / "src"), "MVSTACK_ROOT": str(root), "COLUMNS": "200"}
        command = [sys.executable, "-P", "-m", "mvstack", *words]
        done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True)
        return Said(done.returncode, done.stdout, done.stderr)

    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    spack_has(planted := hashlib.sha256(b"planted").hexdigest())
    wrong = said("bump", "hypre", "3.1.0")
    assert wrong.code == 5 and planted in wrong.err and theirs in wrong.err
    assert "not the same everywhere" in wrong.err and "Nothing was changed." in wrong.err
    spack_has(theirs)
    dry = said("bump", "hypre", "3.1.0", "--dry-run")
    assert dry.code == 0 and "+version = '3.1.0'" in dry.out and "Nothing was written." in dry.out
    left = [x for x in before if "__pycache__" not in x.parts]
    assert all(path.read_bytes() == before[path] for path in left), "neither wrote anything"

    done = said("bump", "Hypre", "3.1.0", "--why", "newest 3.x")
    assert done.code == 0, done.err
    assert f"by EasyBuild's {easyconfig.name}, Spack's hypre recipe" in done.out
    assert "check by hand: easyconfigs/p/PETSc/" in done.out.replace(f"{top}/", "")
    assert (
        not old.exists()
        and theirs in old.with_name(old.name.replace("2.33.0", "3.1.0")).read_text()
    )
    rows = (top / "environments/releases/2026.11.yaml").read_text()
    was = (TOP / "environments/releases/2026.11.yaml").read_text()
    assert rows.count("#") == was.count("#") and "why: newest 3.x" in rows
    fresh, checked = said("render", "--check"), said("check")
    assert fresh.code == 0, fresh.err
    assert checked.code == 0, checked.err
    made = tmp_path / "made"
    assert said("render", "expanse/cpu", "--profile", "full", "--to", str(made)).code == 0
    assert "hypre@=3.1.0 +mpi" in (made / "expanse/cpu/spack/spack.yaml").read_text()
