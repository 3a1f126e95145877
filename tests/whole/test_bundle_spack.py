"""A bundle for Spack with the real Spack: its clones, its solver and binaries, without a network.

The packages are those of test_spack_builder, which build in a second. The solver's answer is taken
along, so that one solve is enough.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_bundle import _can_be_alone
from test_cache_spack import INSTALL, carry_lock
from test_spack_builder import RECIPES, TOP, Here

from mvstack.bundle import arrive
from mvstack.bundle.make import gather, make
from mvstack.cache import gpg
from mvstack.cache.use import Caches
from mvstack.install.flow import Request
from mvstack.support.errors import SourceError
from mvstack.support.progress import Progress


def bundled(here: Here, target: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The bundle with binaries; of the Python packages the solver's alone, for the test's sake."""
    monkeypatch.setattr(
        "mvstack.bundle.make.gather", lambda to, _names, note: gather(to, ("spack.txt",), note)
    )
    monkeypatch.setattr("mvstack.plan.spack.RECIPES", RECIPES)
    try:
        asked = Request(str(here.system), root=here.root, caches=Caches())
        return make(asked, target, True, Progress(mode="quiet"))
    except SourceError as error:
        pytest.skip(f"skipped: unreachable: {error.problems[0].message}")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
def test_spack_and_binaries_arrive(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path_factory.mktemp("spack-bundle-of-the-builder"))
    status, said = here.install()
    assert status == 0, said
    bundle, far = here.folder / "bundle", here.folder / "far"
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(here.folder / "keys"))
    gpg.create("Site of the tests", "a@example.org")
    about = bundled(here, bundle, monkeypatch)
    assert about["builder"] == "spack" and about["binaries"]["signed_by"]
    assert (bundle / "spack" / "spack.git" / "HEAD").is_file()
    install = (bundle / "install").read_text()
    settings = [line for line in install.splitlines() if line.startswith("export ")]
    assert any("MVSTACK_SPACK_URL" in line for line in settings)

    # the other side: nothing of here but the bundle, the lock and this checkout
    carry_lock(here.tree, far / "2026.11" / "here-node")
    home = far / "home"
    home.mkdir()
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(far / "keys"))
    assert arrive.arrive(bundle, about["binaries"]["signed_by"][0])
    exports = "\n".join(line.replace("$here", str(bundle)) for line in settings)
    words = f'"{sys.executable}" -c "$INSTALL" "{RECIPES}" "{bundle}/system.yaml" "{far}"'
    script = f'{exports}\n{words} "$MVSTACK_CACHES"\n'
    alone = ["unshare", "--net"] if _can_be_alone() else []
    done = subprocess.run(
        [*alone, "bash", "-c", script],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(TOP / "src"),
            "MVSTACK_GNUPGHOME": str(far / "keys"),
            "INSTALL": INSTALL,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert {"mvapich", "hpcc"} <= {row["package"].lower() for row in rows}
    assert {row.get("from") for row in rows} == {"binary cache"}
    tree = far / "2026.11" / "here-node"
    loaded = subprocess.run(
        ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c",
         f"source {tree}/init/bash && module load mvapich-stack hpcc && hpcc"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert loaded.stdout.splitlines()[:1] == ["whole"], loaded.stderr
