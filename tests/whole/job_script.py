"""What the tests of schedulers share: an MPI, a scheduler beside the test, a module's job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mvstack.render.templates import template

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from checks_tree import LMOD

WORLD = Path(__file__).parents[1] / "reframe" / "src" / "world.c"


@contextmanager
def beside(words: list[Any], ready: Path, log: Path) -> Iterator[None]:
    """Run ``words``, which end with their input; the block begins when they have made ``ready``."""
    with log.open("wb") as told:
        started = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
    assert started.stdin is not None
    try:
        until = time.monotonic() + 240
        while not ready.exists():
            assert started.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.5)
        yield
    finally:
        started.stdin.close()
        try:
            started.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            raise


def said(*words: Any, **options: Any) -> str:
    """What the command prints, on both outputs."""
    made = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    return made.stdout + made.stderr


def written(plan, planned, folder):
    """Write the job of ``planned`` for the MPI of ``plan``; compile the program that it starts."""
    name, build = planned.job["script"], planned.mpi[0]
    script = template(name, plan=planned, build=build)
    assert textwrap.indent(script, "    ") in template("mpi_usage.txt", plan=planned, build=build)
    under_test = plan["mpi"][0]["module"]
    core = f"source {LMOD}; export MODULEPATH={plan['tree']}/modules/Core"
    for here, there in ((f"source {planned.tree}/init/bash", core), (build.module, under_test)):
        assert here in script
        script = script.replace(here, there)
    (folder / name).write_text(script)
    load = f"module load mvapich-stack/{plan['release']} {under_test}; mpicc -o program {WORLD}"
    words = ["bash", "-c", f"{core}; {load}"]
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert "rror" not in made.stdout + made.stderr
