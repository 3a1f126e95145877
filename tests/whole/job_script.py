"""The job script that a module's help shows, made ready to be submitted in a folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from mvstack.render.templates import template

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from checks_tree import LMOD

WORLD = Path(__file__).parents[1] / "reframe" / "src" / "world.c"


def written(plan, planned, folder):
    """Write job.sh of ``planned`` for the MPI of ``plan``; compile the PROGRAM that it starts."""
    usage = template("mpi_usage.txt", plan=planned, build=planned.mpi[0])
    script = re.search(r"    #!/bin/bash\n(?:    .*\n)+", usage)[0].replace("\n    ", "\n").strip()
    under_test = plan["mpi"][0]["module"]
    core = f"source {LMOD}; export MODULEPATH={plan['tree']}/modules/Core"
    script = script.replace(planned.mpi[0].module, under_test)
    (folder / "job.sh").write_text(script.replace("module load", f"{core}\nmodule load") + "\n")
    load = f"module load mvapich-stack/{plan['release']} {under_test}; mpicc -o PROGRAM {WORLD}"
    words = ["bash", "-c", f"{core}; {load}"]
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert "rror" not in made.stdout + made.stderr
