"""The scripts that pass the tests, as people call them: without a word, and with a wrong one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RUN = Path(__file__).resolve().parents[1] / "run"


def lane(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTEST_ADDOPTS": "--collect-only -n0 --ignore-glob=*/test_*"}
    return subprocess.run(
        [RUN, *words], env=environment, capture_output=True, text=True, check=False
    )


def test_a_lane_needs_no_more_words():
    done = lane("fast")
    assert "unbound variable" not in done.stderr, done.stderr[-2000:]
    assert "== summary" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


def test_what_is_no_lane_and_no_file_is_refused():
    done = lane("fats")
    assert done.returncode == 2
    assert "fats: no such file, and the lanes are fast and all" in done.stderr


def test_a_bare_machine_of_an_architecture_that_is_not_known_is_wrong_usage():
    """Not status 7, which says what to install."""
    for words in (
        ["clean-root", "--arch", "riscv", "true"],
        ["other-arch", "run", "riscv", "true"],
    ):
        done = subprocess.run(
            [RUN.with_name(words[0]), *words[1:]], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "arm64 or ppc64el" in done.stdout, done
