"""The release of QEMU's image, really installed: what images hold, and what runs in them.

Its MPI is built once, below the default install root or MVSTACK_TEST_IMAGE_ROOT, because an image
holds a release at the very path that it was built for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_writer import one_writer

from mvstack.discover import look
from mvstack.install.stages import default_root
from mvstack.model.load import load_release
from mvstack.support.home import DATA

SYSTEM, PARTITION = "qemu-debian12", "mpich"
IMAGE = f"{SYSTEM}-{PARTITION}"
ROOT = Path(os.environ.get("MVSTACK_TEST_IMAGE_ROOT") or default_root())
TREE = ROOT / load_release().name / IMAGE


def installed() -> Path:
    """The tree, installed first where it is not; skips where it cannot be built."""
    if os.geteuid() != 0:
        pytest.skip("needs root: images are made by root")
    if look().os != "debian12":
        pytest.skip(f"the release is built on Debian 12, and this is {look().os}")
    command = [sys.executable, "-P", "-m", "mvstack", "install", f"{SYSTEM}/{PARTITION}"]
    with one_writer():
        done = subprocess.run(
            [*command, "--root", str(ROOT), "--yes"],
            env={**os.environ, "PYTHONPATH": str(DATA / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return TREE
