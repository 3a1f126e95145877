"""`mvstack diff` on a small git repository that holds what a repository of ours holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
HELD = (
    "src/mvstack",
    "environments/systems",
    "environments/releases",
    "environments/policy",
    "environments/templates",
    "easyconfigs",
    "spack-repo",
    "modulefiles",
    "docs",
    "requirements",
    "tests/reframe/settings.py",
)


class Clone:
    """A clone in which files can be edited, and what `mvstack diff` says there."""

    def __init__(self, folder: Path) -> None:
        self.top = folder

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=A Tester", "-c", "user.email=tester@example.org")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=self.top, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.top / path
        text = file.read_text()
        assert old in text, f"{path} lacks {old}"
        file.write_text(text.replace(old, new, 1))

    def append(self, path: str, text: str) -> None:
        file = self.top / path
        file.write_text(file.read_text() + text)

    def mvstack(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.top / "src"), "NO_COLOR": "1"}
        return subprocess.run(
            [sys.executable, "-m", "mvstack", *arguments],
            cwd=self.top,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def diff(self, *arguments: str, code: int = 9) -> dict[str, Any]:
        done = self.mvstack("diff", *arguments, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff") / "original"
    for name in HELD:
        source, target = TOP / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    clone = Clone(folder)
    clone.git("init", "-q", "-b", "main")
    clone.commit("The first")
    return folder


@pytest.fixture
def clone(original: Path, tmp_path: Path) -> Clone:
    shutil.copytree(original, tmp_path / "clone")
    return Clone(tmp_path / "clone")


def test_comments_documents_and_titles_rebuild_nothing(clone: Clone) -> None:
    clone.append("environments/systems/expanse.yaml", "\n# a remark\n")
    clone.append("environments/policy/builds.yaml", "\n# a remark\n")
    clone.append(
        "spack-repo/spack_repo/mvapich_stack/packages/mvapich/package.py", "\n# a remark\n"
    )
    clone.append("docs/install.md", "\nMore words.\n")
    (clone.top / "docs" / "new.md").write_text("New.\n")
    clone.edit("environments/systems/azure-hbv4.yaml", "\ntitle: ", "\ntitle: The ")
    done = clone.mvstack("diff", "HEAD")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("nothing is rebuilt against HEAD (")
    assert "expanse/gpu" in done.stdout


def test_each_system_is_told_what_its_own_change_rebuilds(clone: Clone) -> None:
    clone.append("spack-repo/spack_repo/mvapich_stack/packages/mvapich/package.py", "\nNEW = 1\n")
    clone.edit("environments/systems/azure-hbv4.yaml", "target: zen4", "target: zen3")
    found = clone.diff("HEAD")
    assert found["changes"]
    partitions = found["partitions"]
    cpu = partitions["expanse/cpu"]
    assert cpu["mpi_changes"] and cpu["builder"] == "spack"
    assert [(row["kind"], row["why"]) for row in cpu["changed"]][:2] == [
        ("mpi", ["recipe"]),
        ("package", ["what it stands on: mvapich"]),
    ]
    azure = partitions["azure-hbv4/hpc"]
    assert all("target zen4 → zen3" in row["why"] for row in azure["changed"])
    assert azure["mpi_changes"] and azure["builder"] == "easybuild"
    # expanse/gpu has MVAPICH-Plus, aws has EasyBuild: neither is touched
    for name in ("expanse/gpu", "aws-hpc7a/hpc"):
        assert not partitions[name]["changed"] and not partitions[name]["mpi_changes"]


def test_a_change_of_the_code_that_renders_counts_and_a_package_that_goes(clone: Clone) -> None:
    """Each side is rendered by its own code."""
    clone.edit("src/mvstack/render/partition.py", "= {value!r}", "= {value!r} or 0")
    first = clone.commit("Write parameters otherwise")
    found = clone.diff(f"{first}~1", "aws-hpc7a")
    clone.append("environments/releases/2026.11.yaml", MORE)
    assert list(found["partitions"]) == ["aws-hpc7a/hpc"]
    rows = found["partitions"]["aws-hpc7a/hpc"]["changed"]
    assert "easyconfig" in next(row for row in rows if row["kind"] == "mpi")["why"]
    alps = clone.diff("HEAD", "alps/cpu")["partitions"]["alps/cpu"]
    assert [row["name"] for row in alps["added"]] == ["MORE 1.0 over mvapich/4.0-ofi"]
    assert not alps["mpi_changes"]
    clone.commit("More")
    clone.edit("environments/releases/2026.11.yaml", MORE, "")
    done = clone.mvstack("diff", "HEAD", "alps")
    assert done.returncode == 9
    assert "alps/cpu (spack): the MPI stays; 1 removed" in done.stdout
    assert "  - MORE 1.0" in done.stdout


MORE = """  - name: MORE
    version: "1.0"
    title: A package of a test
    module: more/1.0
    only_over: [mvapich]
    why: a test
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_of_somebody_else_is_compared(clone: Clone) -> None:
    for path in (clone.top, clone.top / ".git"):
        os.chown(path, 65534, 65534)
    assert clone.diff("HEAD", "alps", code=0)["changes"] is False


def test_a_system_that_only_one_side_has(clone: Clone) -> None:
    text = (clone.top / "environments/systems/azure-hbv4.yaml").read_text()
    (clone.top / "environments/systems/mine.yaml").write_text(
        text.replace("name: azure-hbv4", "name: mine", 1)
    )
    found = clone.diff("HEAD", "mine")["partitions"]
    assert list(found) == ["mine/hpc"]
    assert {row["kind"] for row in found["mine/hpc"]["added"]} >= {"mpi", "package"}
    assert found["mine/hpc"]["mpi_changes"]


def test_errors_name_the_side_that_is_at_fault(clone: Clone) -> None:
    done = clone.mvstack("diff", "no-such-branch")
    assert done.returncode == 3
    assert "no-such-branch is not a revision of this repository" in done.stderr

    done = clone.mvstack("diff", "HEAD", "alpz")
    assert done.returncode == 3
    assert "neither side has a system alpz" in done.stderr

    clone.edit("environments/systems/alps.yaml", "fabric: ", "fabrik: ")
    done = clone.mvstack("diff", "HEAD")
    assert done.returncode == 3
    assert "the working tree: cannot be rendered" in done.stderr
    assert "fabrik" in done.stderr

    broken = clone.commit("Break it")
    clone.git("checkout", "-q", "HEAD~1", "--", "environments")
    done = clone.mvstack("diff", broken)
    assert done.returncode == 3
    assert f"{broken} ({broken[:10]}): cannot be rendered" in done.stderr
    assert "compare with a newer revision" in done.stderr

    clone.git("rm", "-rq", "--cached", "src")
    clone.git("commit", "-qm", "Before there was any code")
    done = clone.mvstack("diff", "HEAD")
    assert "older than what is compared" in done.stderr

    shutil.rmtree(clone.top / ".git")
    done = clone.mvstack("diff", "HEAD")
    assert done.returncode == 3
    assert "not a git clone" in done.stderr


def test_a_wrong_file_of_the_site_is_to_be_corrected_now(clone: Clone, tmp_path: Path) -> None:
    """Both sides have the site's folder of now, so no other revision would help."""
    (tmp_path / "site" / "systems").mkdir(parents=True)
    (tmp_path / "site" / "systems" / "mine.yaml").write_text("name: mine\nfabrik: x\n")
    done = clone.mvstack("--site", str(tmp_path / "site"), "diff", "HEAD", "mine")
    assert done.returncode == 3
    assert "the working tree: cannot be rendered" in done.stderr
    assert "mine.yaml:2" in done.stderr and "correct what it names" in done.stderr


def test_a_partition_that_only_one_side_has(clone: Clone) -> None:
    file = clone.top / "environments" / "systems" / "expanse.yaml"
    text = file.read_text().replace("\n  cpu:\n", "\n  more:\n")
    text = text.replace("nodes: {cpu: ", "nodes: {more: ")  # of its wiring
    file.write_text(text.replace("partitions.cpu.", "partitions.more."))
    found = clone.diff("HEAD", "expanse/more")["partitions"]
    assert list(found) == ["expanse/more"] and found["expanse/more"]["added"]
    found = clone.diff("HEAD", "expanse/cpu")["partitions"]
    assert list(found) == ["expanse/cpu"] and found["expanse/cpu"]["removed"]
    for name in ("expanse/none", "expanse/cpu/none"):
        done = clone.mvstack("diff", "HEAD", name)
        assert done.returncode == 3 and f"neither side has a partition {name}" in done.stderr
