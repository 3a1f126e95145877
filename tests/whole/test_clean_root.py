"""The first command on a bare Debian for who is not root, and has a compiler and no Lmod.

It builds MVAPICH 4.0, over the libfabric in its source, so it runs where
``MVSTACK_TEST_MVAPICH_TARBALL`` names a tarball of it. Bytes that are not upstream's are accepted
by their hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TARBALL = "MVSTACK_TEST_MVAPICH_TARBALL"
THERE = "gcc g++ gfortran make patch file bzip2 xz-utils unzip perl python3 git"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]


def test_who_is_not_root_gets_through_the_first_command(tmp_path: Path) -> None:
    if TARBALL not in os.environ:
        pytest.skip(f"{TARBALL} is not set: there is no source of mvapich 4.0")
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("a bare Debian needs root and mmdebstrap")
    tmp_path.chmod(0o755)  # the user below reads it
    source = Path(shutil.copy(os.environ[TARBALL], tmp_path))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    accept = f"--as mvapich@4.0 --accept-hash {digest} --reason 'test of a bare machine'"
    done = subprocess.run(
        [
            *(TOP / "tests" / "clean-root", "--user", "--apt", THERE, "--with", tmp_path),
            f"./mvstack sources add /mnt/{source.name} {accept}",
            "./mvstack up local --yes",
            # what a user's new shell gets
            "source ~/.local/share/mvapich-stack/*/local/init/bash && "
            "module load mvapich-stack mvapich && mpi-doctor --run",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    for said in (
        "prepare Lmod and Lua from source: done",
        "mvapich/4.0-ofi",
        "nothing is wrong",
        "left out\n +not HPCC .*: OpenBLAS is not installed",
    ):
        assert re.search(said, done.stdout), said
    results = re.findall(r"^(\w[\w.+ ]*?)  +mvapich/\S+ +\d+ +(\w+) ", done.stdout, re.M)
    assert len(results) > 10, done.stdout[-5000:]
    assert [what for what, result in results if result != "passed"] == []
