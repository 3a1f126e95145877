"""The job for Kubernetes that a module's help, `mvstack show` and the catalogue show."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

from mvstack.model.load import load_policy, load_release, load_system, parse_system
from mvstack.plan.make import make_plan
from mvstack.render.templates import template
from mvstack.report.offers import planned

MACHINE = """\
name: pods
os: debian12
scheduler: kubernetes
partitions:
  node:
    nodes: {nodes}
    cores: 4
    target: x86_64_v3
    fabric: {fabric}
    launcher: {launcher}
    scheduler_options: ["rdma/hca: 1"]
    compiler: {{version: "12.2.0"}}
"""


def job_of(plan):
    """The job of the module's help, read as YAML."""
    said = template("mpi_usage.txt", plan=plan, build=plan.mpi[0])
    _, _, rest = said.partition("job.yaml, for ")
    ranks, _, rest = rest.partition(" ranks:\n\n")
    text = textwrap.dedent(rest.partition("\n\n")[0])
    return int(ranks), yaml.safe_load(text)


def shipped(name):
    system, _, part = name.partition("/")
    return make_plan(load_system(system), part, load_release(), load_policy())


def made(nodes=3, fabric="tcp", launcher="mpijob"):
    text = MACHINE.format(nodes=nodes, fabric=fabric, launcher=launcher)
    return make_plan(parse_system(text, Path("pods.yaml")), "node", load_release(), load_policy())


def test_several_pods_are_an_mpijob_of_mpichs_kind():
    ranks, job = job_of(shipped("voyager/gaudi"))
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    spec = job["spec"]
    assert spec["mpiImplementation"] == "MPICH"  # its host file and its variable are hydra's
    worker, launcher = spec["mpiReplicaSpecs"]["Worker"], spec["mpiReplicaSpecs"]["Launcher"]
    assert ranks == spec["slotsPerWorker"] * worker["replicas"] == 16
    (pod,) = worker["template"]["spec"]["containers"]
    assert pod["resources"]["limits"] == {"cpu": 8, "memory": "8Gi", "habana.ai/gaudi": 8}
    assert "sshd" in pod["command"][-1]
    (pod,) = launcher["template"]["spec"]["containers"]
    assert "habana.ai/gaudi" not in pod["resources"]["limits"]  # it starts ranks, and runs none
    last = pod["command"][-1].splitlines()[-1]
    assert last == "mpirun -n 16 ./program"
    # the operator's own HYDRA_LAUNCH_EXTRA_ARGS is read by no hydra
    assert [one["name"] for one in pod["env"]] == ["HYDRA_LAUNCHER_EXTRA_ARGS"]


@pytest.mark.parametrize("plan", ["pnrp/a100", ""])
def test_one_pod_is_a_job_without_an_operator(plan):
    ranks, job = job_of(shipped(plan) if plan else made(nodes=1))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    (pod,) = job["spec"]["template"]["spec"]["containers"]
    assert f" -n {ranks} ./program" in pod["command"][-1].splitlines()[-1]
    assert not {"ssh", "HYDRA_HOST_FILE"} & set(pod["command"][-1].split())
    wanted = {"nvidia.com/gpu": 8} if plan else {"rdma/hca": 1}
    assert pod["resources"]["limits"].items() >= wanted.items()


def test_options_of_the_site_are_further_limits_of_a_worker():
    _, job = job_of(made())
    (pod,) = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert pod["resources"]["limits"] == {"cpu": 4, "memory": "4Gi", "rdma/hca": 1}


def test_memory_is_no_fabric_between_nodes():
    assert made(fabric="shm", launcher="hydra").job["nodes"] == 1
    assert made(fabric="tcp", launcher="hydra").job["nodes"] == 2


def test_every_gpu_has_a_name_in_kubernetes():
    gpus = load_policy().gpus
    assert {name for name, row in gpus.items() if not row.resource} == {"none"}


def test_show_and_catalogue_have_the_job_of_the_help():
    known = planned()
    for name in ("voyager/gaudi", "pnrp/a100", "expanse/cpu"):
        system, _, part = name.partition("/")
        offer = known.offer(load_system(system), part)
        said = template("mpi_usage.txt", plan=offer.plan, build=offer.plan.mpi[0])
        lines = offer.job(offer.plan.mpi[0])
        assert textwrap.indent("\n".join(lines), "    ") in said
        assert any(line.endswith(offer.starting(offer.plan.mpi[0])) for line in lines)
