"""Discovery, mpi-doctor, the launch guard and MPICH over the Slurm of two Debians."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / "slurm" / "in-debian"
# what a root lacks, and the Slurm itself never
ALLOWED = {"test_without_slurmdbd_the_error_says_what_to_install"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(("suite", "version"), [("bookworm", "22.05"), ("trixie", "24.11")])
def test_all_that_starts_a_slurm_passes_with_that_of(suite: str, version: str) -> None:
    missing = [one for one in ("mmdebstrap", "git", "unshare") if not shutil.which(one)]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"skipped: a bare Debian needs root and {', '.join(missing or ['no more'])}")
    done = subprocess.run(
        [RUN, suite, "--as-is"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(rf"^slurmd\s+{re.escape(version)}\.", done.stdout, re.M), done.stdout[:2000]
    skipped = set(re.findall(r"skipped +\S+::(\w+)", done.stdout))
    assert skipped <= ALLOWED, done.stdout[-5000:]
    passed = re.search(r"^tests: (\d+) passed", done.stdout, re.M)
    assert passed and int(passed[1]) > 30, done.stdout[-5000:]
