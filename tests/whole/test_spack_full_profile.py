"""All that the release holds concretizes on every partition that Spack builds for.

Together and through the gates, the licensed packages among it. Some minutes of a core for each
partition: only where MVSTACK_TEST_FULL_LOCK is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from spack_here import spack_here

from mvstack.model.load import load_release, load_system, system_names
from mvstack.support.home import DATA

OF_SPACK = [name for name in system_names() if load_system(name).builder == "spack"]


@pytest.mark.skipif(
    not os.environ.get("MVSTACK_TEST_FULL_LOCK"),
    reason="minutes of a core for each partition: set MVSTACK_TEST_FULL_LOCK",
)
@pytest.mark.parametrize("name", OF_SPACK)
def test_the_full_profile_concretizes(name: str, tmp_path: Path) -> None:
    root = spack_here(tmp_path / "state").clones.home.parent.parent
    file = tmp_path / f"{name}.yaml"
    system = yaml.safe_load(
        (DATA / "environments" / "systems" / file.name).read_text(encoding="utf-8")
    )
    licensed = {one.name: "users" for one in load_release().packages if one.licence != "open"}
    system.setdefault("install", {})["licensed"] = licensed
    file.write_text(yaml.safe_dump(system, sort_keys=False))
    words = ["lock", str(file), "--profile", "full", "--root", str(root), "--json"]
    done = subprocess.run([sys.executable, "-m", "mvstack", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)
