"""The site configuration that ReFrame reads, out of a plan."""

from __future__ import annotations

import copy
import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest
from reframe.core.backends import getlauncher, getscheduler
from reframe.core.config import load_config
from reframe.core.exceptions import ConfigError
from reframe.core.schedulers import Job

from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.render.templates import template
from mvstack.support.errors import InvalidInput
from mvstack.test.results import environment_name

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "reframe" / "settings.py"
POLICY = load_policy()
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
        "hosts": "hostname",
        "cores": PLAN["cores"],
        "nodes": 1,
        "per_node": PLAN["cores"],
    }


MACHINE = """\
name: mine
os: rocky9
{scheduler}
partitions:
  cpu:
    nodes: {nodes}
    cores: 64
    memory_gb: 512
    target: zen3
    fabric: infiniband
    launcher: {launcher}
    scheduler_options: [-q debug]
    compiler: {{version: "12.2.0"}}
"""


def planned(launcher, scheduler="", nodes=8):
    """The plan of a partition with this launcher, as settings.py reads it."""
    named = f"scheduler: {scheduler}" if scheduler else ""
    text = MACHINE.format(launcher=launcher, scheduler=named, nodes=nodes)
    system = parse_system(text, Path("mine.yaml"))
    return make_plan(system, "cpu", load_release(), POLICY)


@pytest.mark.parametrize(
    ("launcher", "scheduler", "backend", "starter"),
    [
        ("srun", "slurm", "squeue", "srun"),
        ("srun", "", "squeue", "srun"),
        ("srun", "none", "squeue", "srun"),
        ("hydra", "slurm", "squeue", "mpiexec"),
        ("hydra", "pbs", "pbs", "mpiexec"),
        ("hydra", "torque", "torque", "mpiexec"),
        ("hydra", "lsf", "lsf", "mpiexec"),
        ("jsrun", "lsf", "lsf", "local"),
        ("flux", "flux", "flux", "local"),
        ("flux", "", "flux", "local"),
        ("mpijob", "kubernetes", "local", "mpirun"),
        ("hydra", "none", "local", "mpiexec"),
        ("mpirun_rsh", "slurm", "squeue", "mpirun"),
    ],
)
def test_checks_go_through_the_scheduler_of_the_partition(
    site, tmp_path, launcher, scheduler, backend, starter
):
    if launcher == "jsrun":
        launcher = "jsrun\n    mpi: {product: mvapich2}"
    plan = planned(launcher, scheduler)
    partition = site(plan.as_dict())["systems"][0]["partitions"][0]
    assert (partition["scheduler"], partition["launcher"]) == (backend, starter)
    assert partition["access"] == ["-q debug"]
    assert partition["max_jobs"] == (1 if backend == "local" else 8)
    own = tmp_path / "settings.py"  # which ReFrame would read once only
    own.write_text(SETTINGS.read_text())
    read = load_config(str(own))
    read.validate()
    read.select_subconfig("mine:cpu")
    assert read.get("systems/0/partitions/0/scheduler") == backend


@pytest.mark.parametrize("name", sorted(POLICY.schedulers))
def test_reframe_has_every_backend_and_launcher_of_the_policy(name):
    backend = POLICY.schedulers[name].reframe
    if backend == "flux" and find_spec("flux") is None:
        with pytest.raises(ConfigError, match="no flux Python bindings"):
            getscheduler(backend)
    else:
        assert getscheduler(backend)
    for program in POLICY.programs.values():
        assert getlauncher(program.reframe)


def test_a_header_asks_for_nodes_in_the_words_of_reframes_own(monkeypatch):
    """The job that a module's help shows, and the one that a check becomes."""
    for name in ("pbs", "torque", "lsf"):
        backend = getscheduler(POLICY.schedulers[name].reframe)
        monkeypatch.setattr(backend, "get_option", lambda self, option: None)
        job = Job.create(backend(), getlauncher("local")(), name="a")
        job.num_tasks, job.num_tasks_per_node, job.time_limit = 128, 64, "10m"
        theirs = {line.split(":mpiprocs")[0] for line in job.scheduler.emit_preamble(job)}
        ours = POLICY.schedulers[name].lines([], nodes=2, per_node=64, gpus=0)
        assert ours[0].split(":ncpus")[0] in theirs


@pytest.mark.parametrize(
    ("launcher", "scheduler", "lines", "submit"),
    [
        ("srun", "slurm", ["#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=64"], "sbatch job.sh"),
        ("hydra", "pbs", ["#PBS -l select=2:ncpus=64:mpiprocs=64"], "qsub job.sh"),
        ("hydra", "lsf", ["#BSUB -nnodes 2"], "bsub < job.sh"),
        ("flux", "flux", ["# flux: --nodes=2"], "flux batch job.sh"),
    ],
)
def test_the_help_of_a_module_shows_a_job(launcher, scheduler, lines, submit):
    plan = planned(launcher, scheduler)
    said = template("mpi_usage.txt", plan=plan, build=plan.mpi[0])
    assert all(f"    {line}\n" in said for line in [*lines, "#!/bin/bash"])
    assert f"`{submit}` submits a job" in said and "-q debug\n" in said
    assert "128 ./program" in said and "#SBATCH --gpus" not in said
    alone = planned("hydra", "none")
    assert "submits" not in template("mpi_usage.txt", plan=alone, build=alone.mpi[0])


@pytest.mark.parametrize(
    ("scheduler", "hosts"),
    [
        ("slurm", "scontrol show hostnames"),
        ("torque", "sort -u $PBS_NODEFILE"),
        ("pbs", "sort -u $PBS_NODEFILE"),
        ("lsf", "sort -u $LSB_DJOB_HOSTFILE"),
    ],
)
def test_a_launcher_that_asks_no_scheduler_is_told_the_nodes(site, scheduler, hosts):
    plan = planned("mpirun_rsh", scheduler)
    said = template("mpi_usage.txt", plan=plan, build=plan.mpi[0])
    assert (
        f"    {hosts} > hosts\n    mpirun_rsh -export -np 128 -hostfile hosts ./program\n" in said
    )
    assert site(plan.as_dict())["environments"][0]["extras"]["hosts"] == hosts
    other = planned("hydra", scheduler)
    assert "> hosts" not in template("mpi_usage.txt", plan=other, build=other.mpi[0])


def test_many_nodes_without_a_scheduler_are_refused_unless_that_is_said():
    with pytest.raises(InvalidInput) as caught:
        planned("hydra")
    (problem,) = caught.value.problems
    assert problem.where == "mine.yaml:6" and "8 nodes, and no scheduler" in problem.message
    assert "never on two" in problem.because and "pbs" in problem.allowed
    assert planned("hydra", "none").scheduler == "local"
    assert planned("hydra", nodes=1).scheduler == "local"


def test_a_partition_may_have_a_scheduler_of_its_own():
    assert planned("hydra\n    scheduler: pbs", "slurm").scheduler == "pbs"


def test_a_failing_line_ends_the_job_script_with_and_without_slurm(site):
    found = site(PLAN)
    assert "trap 'exit 1' ERR" in found["systems"][0]["partitions"][0]["prepare_cmds"]
    assert found["general"][0]["trap_job_errors"] is False
    found = site(PLAN | {"scheduler": "local"})
    assert found["general"][0]["trap_job_errors"] is True


def test_gpu_fabric_and_builder_are_features(site):
    plan = copy.deepcopy(PLAN)
    plan["mpi"][0]["gpu"] = "cuda"
    found = site(plan)
    there = found["systems"][0]["partitions"][0]["features"]
    assert there == ["gpu", "fabric-infiniband", f"built-by-{plan['builder']}"]
    features = [set(one["features"]) for one in found["environments"]]
    assert {"mpi", "gpu"} <= features[0] and "gpu" not in features[1]


def test_tuned_is_a_feature_where_the_module_sets_what_was_tuned(site, monkeypatch):
    plan = copy.deepcopy(PLAN)
    plan["mpi"][0]["tuning"] = {"UCX_RNDV_THRESH": "16384"}
    assert "tuned" in site(plan)["environments"][0]["features"]
    assert "tuned" not in site(plan)["environments"][1]["features"]
    monkeypatch.setenv("MVAPICH_STACK_UNTUNED", "1")
    assert "tuned" not in site(plan)["environments"][0]["features"]


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
