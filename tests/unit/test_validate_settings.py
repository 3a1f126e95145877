"""The site configuration that ReFrame reads, out of a plan."""

from __future__ import annotations

import copy
import json
import runpy
from pathlib import Path

import pytest
from reframe.core.config import load_config

from mvstack.test.results import environment_name

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "reframe" / "settings.py"
MPI = {
    "product": "mvapich",
    "version": "4.1",
    "device": "ch4:ucx",
    "module": "mvapich/4.1-ucx",
    "fabric": "infiniband",
    "gpu": "none",
    "pmi": "pmi2",
    "launcher": "srun",
    "launch": "srun --mpi=pmi2 -n {ranks} {program}",
    "believe": {"library_version": r"MVAPICH Version:\s+4\.1", "soname": "libmpi.so.0"},
    "why": 'it\'s the "one" that\nfits',
    "source": "",
}
PLAN = {
    "system": "expanse",
    "partition": "cpu",
    "release": "2026.11",
    "builder": "spack",
    "tree": "/apps/mvapich-stack/2026.11/expanse-cpu",
    "cores": 128,
    "mpi": [MPI, MPI | {"module": "mvapich2/2.3.7", "version": "2.3.7"}],
    "packages": [{"name": "HPCC", "version": "1.5.0", "module": "hpcc/1.5.0"}],
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Read the settings over a plan, as ReFrame does."""
    lmod = tmp_path / "lmod"
    (lmod / "init").mkdir(parents=True)
    (lmod / "init" / "bash").write_text("")
    monkeypatch.setenv("LMOD_PKG", str(lmod))
    monkeypatch.setenv("LMOD_CMD", "")
    monkeypatch.setenv("MODULEPATH", "")

    def read(plan):
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan))
        monkeypatch.setenv("MVSTACK_PLAN", str(path))
        return runpy.run_path(str(SETTINGS))["site_configuration"]

    return read


def test_one_environment_for_each_mpi_build(site):
    found = site(PLAN)
    names = [environment_name(mpi["module"]) for mpi in PLAN["mpi"]]
    assert [env["name"] for env in found["environments"]] == names
    assert found["systems"][0]["partitions"][0]["environs"] == names
    first = found["environments"][0]
    assert first["modules"] == ["mvapich-stack/2026.11", "mvapich/4.1-ucx"]
    assert first["extras"] == {
        "tree": PLAN["tree"],
        "mpi": PLAN["mpi"][0],
        "packages": PLAN["packages"],
    }


def test_srun_goes_through_slurm_and_hydra_runs_here(site):
    partition = site(PLAN)["systems"][0]["partitions"][0]
    assert (partition["scheduler"], partition["launcher"]) == ("squeue", "srun")
    plan = copy.deepcopy(PLAN)
    for mpi in plan["mpi"]:
        mpi["launcher"] = "hydra"
    partition = site(plan)["systems"][0]["partitions"][0]
    assert (partition["scheduler"], partition["launcher"]) == ("local", "mpiexec")
    assert partition["max_jobs"] == 1
    plan["scheduler"] = "slurm"
    assert site(plan)["systems"][0]["partitions"][0]["scheduler"] == "slurm"


def test_a_failing_line_ends_the_job_script_with_and_without_slurm(site):
    found = site(PLAN)
    assert "trap 'exit 1' ERR" in found["systems"][0]["partitions"][0]["prepare_cmds"]
    assert found["general"][0]["trap_job_errors"] is False
    found = site(PLAN | {"scheduler": "local"})
    assert found["general"][0]["trap_job_errors"] is True


def test_gpu_and_fabric_are_features(site):
    plan = copy.deepcopy(PLAN)
    plan["mpi"][0]["gpu"] = "cuda"
    found = site(plan)
    assert found["systems"][0]["partitions"][0]["features"] == ["gpu", "fabric-infiniband"]
    features = [set(one["features"]) for one in found["environments"]]
    assert {"mpi", "gpu-cuda"} <= features[0] and "gpu-cuda" not in features[1]


def test_packages_are_features_of_the_mpi_that_they_stand_on(site):
    plan = copy.deepcopy(PLAN)
    one, other = (build["module"] for build in plan["mpi"][:2])
    plan["packages"] = [
        {"name": "FFTW.MPI", "mpi": one},
        {"name": "FFTW", "mpi": ""},
        {"name": "HPCC", "mpi": other},
        {"name": "Old"},
    ]
    features = [found["features"] for found in site(plan)["environments"][:2]]
    assert features[0] == ["mpi", "package-fftw-mpi", "package-fftw", "package-old"]
    assert features[1] == ["mpi", "package-fftw", "package-hpcc", "package-old"]


def test_without_lmod_it_says_what_to_do(site, tmp_path, monkeypatch):
    path = tmp_path / "settings.py"
    path.write_text(SETTINGS.read_text().replace("/usr/share/lmod/lmod", "/nowhere"))
    site(PLAN)
    monkeypatch.delenv("LMOD_PKG")
    with pytest.raises(SystemExit, match="apt-get install lmod"):
        runpy.run_path(str(path))


def test_reframe_accepts_it(site):
    site(PLAN)
    read = load_config(str(SETTINGS))
    read.validate()
    read.select_subconfig("expanse:cpu")


def test_without_a_plan_it_says_how_to_name_one(site, tmp_path, monkeypatch):
    monkeypatch.delenv("MVSTACK_PLAN", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="Set MVSTACK_PLAN"):
        runpy.run_path(str(SETTINGS))
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    found = runpy.run_path(str(SETTINGS))["site_configuration"]
    assert found["systems"][0]["name"] == PLAN["system"]


def test_the_plans_of_this_repository_are_read(site):
    plans = sorted((ROOT.parent / "environments" / "rendered").glob("*/*/plan.json"))
    for plan in [json.loads(path.read_text()) for path in plans]:
        found = site(plan)["environments"]
        assert [one["extras"]["mpi"] for one in found] == plan["mpi"]
