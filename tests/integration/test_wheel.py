"""An installed wheel is the whole tool: no checkout, and a site's folder that adds to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from test_adding_guides import BLOCK, FILE

TOP = Path(__file__).resolve().parents[2]


class Wheel:
    """mvstack as it was installed, with a site's folder."""

    def __init__(self, python: Path, there: Path) -> None:
        self.python, self.there = python, there

    def run(self, *words: str, code: int = 0) -> str:
        """What a command printed; it must end with ``code``."""
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MVSTACK_SITE")}
        command = [str(self.python.with_name("mvstack")), *words]
        done = subprocess.run(
            command, cwd=self.there, env=kept, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """A wheel in an environment of its own; what it depends on is that of our .venv."""
    there = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(there), str(TOP)], check=True)
    venv.create(there / "venv", with_pip=True)
    python = there / "venv" / "bin" / "python"
    made = next(there.glob("*.whl"))
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(made)]
    subprocess.run(install, check=True)
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    # every package of ours but the link to the checkout, which a plain .pth file would follow
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name != "mvapich_stack.pth" and not (own / path.name).exists():
            (own / path.name).symlink_to(path)
    for program in ("reframe", "eb"):
        script = Path(sys.executable).with_name(program)
        if script.exists():
            shutil.copy(script, python.with_name(program))
    for guide in ("fabric.md", "application.md"):
        for _, text in BLOCK.findall((TOP / "docs" / "adding" / guide).read_text()):
            if named := FILE.match(text):
                path = there / named[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text[named.end() :])
    return Wheel(python, there)


def test_it_is_the_installed_one_and_it_knows_our_systems(wheel: Wheel) -> None:
    code = "from mvstack.support import home; print(home.DATA, home.INSTALLED)"
    ask = [str(wheel.python), "-P", "-c", code]
    said = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=wheel.there).stdout
    assert said.startswith(str(wheel.there)) and said.endswith("True\n")
    rows = json.loads(wheel.run("list", "systems", "--json"))
    assert {"expanse/cpu", "local"} <= {row["system"] for row in rows}


def test_all_of_it_is_right_with_a_fabric_and_an_application_of_the_site(wheel: Wheel) -> None:
    wheel.run("--site", "our-site", "check")
    said = wheel.run("--site", "our-site", "explain", "enterprise/bridge")
    assert "warpfabric" in said and "Warp is reached through" in said
    assert "zeta/1.2.0" in wheel.run("--site", "our-site", "list", "packages")


def test_it_renders_what_the_checkout_renders(wheel: Wheel) -> None:
    wheel.run("render", "expanse", "azure-hbv4", "--to", "rendered")
    for partition in ("expanse/cpu", "azure-hbv4/hpc"):
        ours = TOP / "environments" / "rendered" / partition
        for path in ours.rglob("*"):
            if path.is_file():
                made = wheel.there / "rendered" / partition / path.relative_to(ours)
                assert made.read_bytes() == path.read_bytes()


def test_what_the_site_adds_is_rendered(wheel: Wheel) -> None:
    words = ("render", "enterprise", "azure-hbv4", "--profile", "full", "--to", "lab")
    wheel.run("--site", "our-site", *words)
    easystack = (wheel.there / "lab" / "azure-hbv4" / "hpc" / "easystack.yaml").read_text()
    assert "Zeta-1.2.0-gmvapich-2026.11-ucx" in easystack
    plan = json.loads((wheel.there / "lab" / "enterprise" / "bridge" / "plan.json").read_text())
    assert plan["mpi"][0]["believe"]["provider"] == ["warp"]


def test_it_says_what_would_be_built_on_this_machine(wheel: Wheel) -> None:
    root = str(wheel.there / "root")
    words = ("install", "local", "--dry-run", "--no-prerequisites", "--root", root, "--json")
    said = wheel.run("--site", "our-site", *words)
    assert any(row["package"].lower() in ("mvapich", "mpich") for row in _rows(said))
    assert not Path(root, "2026.11").exists()


def _rows(said: str) -> list[dict[str, str]]:
    rows = json.loads(said[said.index("[") : said.rindex("]") + 1])
    assert isinstance(rows, list)
    return rows


def test_it_writes_nothing_below_itself(wheel: Wheel) -> None:
    for words in (["render"], ["render", "expanse"], ["diff", "HEAD"]):
        assert "needs a clone of mvapich-stack" in wheel.run(*words, code=7)
