"""The job that a module's help shows, made ready to be submitted in a folder."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from mvstack.render.templates import template

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from checks_tree import LMOD

WORLD = Path(__file__).parents[1] / "reframe" / "src" / "world.c"


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
