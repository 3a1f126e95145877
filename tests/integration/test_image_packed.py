"""A release that was packed and signed on another machine is taken, and no other one is."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvstack.cache import gpg
from mvstack.image import packed
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.plan.make import make_plan
from mvstack.plan.types import Plan
from mvstack.support.errors import CheckFailed, Missing, Refused
from mvstack.support.progress import Progress


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    home = Path("/tmp") / f"mvs-gpg-packed-{id(monkeypatch)}"  # a socket's path must be short
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(home))
    gpg.create("Image tests", "images@example.org")
    yield
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Of AlmaLinux 8, whatever runs here: nothing of it is started."""
    system = load_system("azure-hbv4")
    made = make_plan(system, "hpc", load_release(), load_policy())
    tree = tmp_path / "tree"
    (tree / "records").mkdir(parents=True)
    made = dataclasses.replace(made, tree=str(tree))
    (tree / "records/plan.json").write_text(json.dumps(made.as_dict()))
    return made


@pytest.mark.usefixtures("keys")
def test_what_was_packed_and_signed_is_taken(plan: Plan, tmp_path: Path) -> None:
    done = packed.pack(plan, tmp_path / "packed", "", Progress())
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == [
        *("SHA256SUMS", "SHA256SUMS.asc", "release.tar.zst"),
    ]
    assert packed.archive_of(tmp_path / "packed", plan).name == "release.tar.zst"
    assert len(done["sha256"]) == 64
    with pytest.raises(Refused, match="there already"):
        packed.pack(plan, tmp_path / "packed", "", Progress())


@pytest.mark.usefixtures("keys")
def test_another_release_or_a_changed_one_is_refused(plan: Plan, tmp_path: Path) -> None:
    place = tmp_path / "packed"
    packed.pack(plan, place, "", Progress())
    other = dataclasses.replace(plan, os="almalinux9", mpi=plan.mpi[:0])
    with pytest.raises(Refused) as refused:
        packed.archive_of(place, other)
    told = str(refused.value)
    assert "of another os" in told and "almalinux9" in told and "other MPI builds" in told
    with (place / "release.tar.zst").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(CheckFailed, match="not what was signed"):
        packed.archive_of(place, plan)
    (place / "SHA256SUMS.asc").unlink()
    with pytest.raises(Refused, match="not signed"):
        packed.archive_of(place, plan)


@pytest.mark.usefixtures("keys")
def test_nothing_is_packed_that_is_not_installed(plan: Plan, tmp_path: Path) -> None:
    (Path(plan.tree) / "records/plan.json").unlink()
    with pytest.raises(Missing, match="not installed here"):
        packed.pack(plan, tmp_path / "packed", "", Progress())
    assert not (tmp_path / "packed").exists()
