"""What discovery and mpi-doctor make of the Slurm that is here, whatever its version.

tests/slurm/in-debian runs this with the Slurm of other Debians.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from checks_tree import empty_tree
from test_slurm_loopback import needs_slurm, run

from mvstack.discover.libraries import slurm_modules
from mvstack.discover.scheduler import slurm_plugins, slurm_version
from mvstack.tree.modules import install_doctor

SRC = Path(__file__).resolve().parents[2] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1"}
DISCOVER = f"{sys.executable} -P -m mvstack discover --json"


def beside(lines: str, *words: str) -> str:
    """What lines of shell print beside a Slurm of one node, which `words` are options of."""
    needs_slurm()
    done = run(*words, "--", "sh", "-ec", lines, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_srun_takes_every_pmi_that_is_read_from_its_list() -> None:
    said = beside("srun --mpi=list 2>&1; echo ==; sinfo --version")
    listed, _, version = said.partition("==")
    plugins = slurm_plugins(listed)
    assert {"none", "pmi2"} <= set(plugins)
    # a word that is no plugin, such as one of a heading, would be refused
    tried = [
        one for one in plugins if not one.startswith(("cray", "pmix"))
    ]  # need what is not here
    done = beside("; ".join(f"srun --mpi={one} echo {one}" for one in tried))
    assert done.split() == tried
    assert slurm_version(version)[:1].isdigit(), version


def test_plugins_are_the_same_by_their_files_as_srun_lists_them() -> None:
    listed = slurm_plugins(beside("srun --mpi=list 2>&1"))
    names = slurm_modules(
        lambda folder: [one.name for one in Path(folder).glob("*")],
        "/usr",
        f"{os.uname().machine}-linux-gnu",
    )
    # by file each version of PMIx is one more, and `none` has had none since Slurm 22
    assert set(listed) - {"none"} <= set(names) <= {*listed, *(x for x in names if "pmix_v" in x)}


@pytest.mark.parametrize("default", ["pmi2", "none"])
def test_discovery_takes_this_slurm_and_a_pmi_that_it_has(default: str) -> None:
    found = json.loads(beside(DISCOVER, "--line", f"MpiDefault={default}"))
    said = json.dumps(found)
    assert '"scheduler": "slurm"' in said and '"launcher": "srun"' in said
    assert '"pmi": "pmi2"' in said
    assert ("start programs with srun --mpi=pmi2" in said) == (default == "none")


def test_mpi_doctor_sees_whether_srun_has_the_pmi(tmp_path: Path) -> None:
    """The plugin is there; then srun looks into a folder of plugins without it."""
    plan = empty_tree(tmp_path)
    plan["mpi"][0] |= {"launcher": "srun", "pmi": "pmi2"}
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "plan.json").write_text(json.dumps(plan))
    install_doctor(tmp_path)
    needs_slurm()
    lacking, plugin = tmp_path / "plugins", next(Path("/usr/lib").glob("*/slurm*/mpi_pmi2.so"))
    shutil.copytree(plugin.parent, lacking, ignore=shutil.ignore_patterns("mpi_pmi2.so"))
    loaded = f"export LOADEDMODULES={plan['mpi'][0]['module']} MPI_HOME={tmp_path}"
    asks = f"{loaded}; {tmp_path}/bin/mpi-doctor || :"
    mine = f"sed '$aPluginDir={lacking}' $SLURM_CONF > {tmp_path}/slurm.conf"
    lines = f"{asks}; echo ==; {mine}; SLURM_CONF={tmp_path}/slurm.conf; {asks}"
    there, _, gone = beside(lines).partition("==")
    wrong = "WRONG srun has no pmi2: N tasks would be N worlds of one rank"
    assert "srun has no" not in there and "srun does not list" not in there, there
    assert wrong in gone, gone
