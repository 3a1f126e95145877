"""The job of a module's help through a real Kubernetes with Kubeflow's MPI operator.

API server, controllers, scheduler and operator are real; tests/kubernetes/kubelet stands in for
kubelets, runtime and DNS: pods are namespaces of this machine, with addresses and sshds of their
own. The MPI is the one that `mvstack up local` made here, otherwise Debian's. The programs are in
KUBERNETES_PROGRAMS (/opt/kubernetes), where `tests/kubernetes/get /opt/kubernetes` builds them from
the Go module proxy: no distribution has packages of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from checks_tree import mpi_here
from job_script import beside, written
from pytest import MonkeyPatch

from mvstack.model.load import load_policy, load_release, load_system, parse_system
from mvstack.plan.make import make_plan
from mvstack.render.templates import template

pytestmark = pytest.mark.slow

LOOPBACK = Path(__file__).resolve().parents[1] / "kubernetes" / "loopback"
PROGRAMS = Path(os.environ.get("KUBERNETES_PROGRAMS", "/opt/kubernetes"))

MACHINE = """\
name: pods
os: debian12
scheduler: kubernetes
partitions:
  many:
    nodes: 2
    cores: 4
    target: x86_64_v3
    fabric: tcp
    gpu: gaudi
    gpus: 2
    gpu_buffers: staged
    launcher: mpijob
    compiler: {version: "12.2.0"}
  one:
    nodes: 2
    cores: 2
    target: x86_64_v3
    fabric: shm
    launcher: hydra
    compiler: {version: "12.2.0"}
"""
# of each node: what one worker asks for, and room for the launcher
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "20", "habana.ai/gaudi": "2"}
HOSTS = "program-worker-0.program.default.svc:2\nprogram-worker-1.program.default.svc:2\n"
GOOD = {"program-worker-0": [0, 1], "program-worker-1": [2, 3]}


def planned(partition):
    system = parse_system(MACHINE, Path("pods.yaml"))
    return make_plan(system, partition, load_release(), load_policy())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The working folder of the image."""
    return tmp_path_factory.mktemp("image")


@pytest.fixture(scope="module")
def cluster(folder):
    """Start a cluster, and put its kubectl on PATH; end it afterwards."""
    names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    lacking = [one for one in (*names, "mpi-operator") if not (PROGRAMS / "bin" / one).is_file()]
    if lacking:
        pytest.skip(
            f"skipped: unreachable: {PROGRAMS}/bin lacks {', '.join(lacking)}"
            " (tests/kubernetes/get builds them)"
        )
    if os.geteuid() != 0:
        pytest.skip("skipped: pods of their own need root")
    if not Path("/usr/sbin/sshd").is_file():
        pytest.skip("skipped: no sshd for the workers (apt: openssh-server)")
    with TemporaryDirectory(prefix="mvapich-stack-kubernetes-") as made:
        state = Path(made)
        words = [LOOPBACK, PROGRAMS, state, json.dumps(CAPACITY), folder, "cat"]
        ready, log = state / "ready", state / "loopback.log"
        with beside(words, ready, log), MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{state}/bin:{os.environ['PATH']}")
            yield state


@pytest.fixture(scope="module")
def jobs(cluster, folder, tmp_path_factory):
    """The jobs of both partitions by name, for an MPI that is installed here."""
    plan = mpi_here(tmp_path_factory.mktemp("tree"))
    made = {}
    for name in ("many", "one"):
        written(plan, planned(name), folder)
        text = (folder / "job.yaml").read_text()
        made[name] = text.replace("image: IMAGE", "image: this/machine")
    return made


def said(*words):
    return subprocess.run(["kubectl", *words], capture_output=True, text=True, check=False)


def kubectl(*words):
    made = said(*words)
    assert made.returncode == 0, made.stderr
    return made.stdout


def asked(*words):
    return json.loads(kubectl("get", *words, "-o", "json"))


def logs(text):
    """The words for kubectl that stand in the first line of a job."""
    return re.search(r"`kubectl (logs -f [^`]*)`", text)[1].split()


def ended(text, seen):
    """How a job ended: Succeeded, Complete or Failed; "" as soon as its log has ``seen``."""
    kind = re.search(r"^kind: (\w+)", text, re.M)[1]
    until = time.monotonic() + 240
    while time.monotonic() < until:
        for one in asked(kind, "program").get("status", {}).get("conditions", []):
            if one["status"] == "True" and one["type"] in ("Succeeded", "Complete", "Failed"):
                return one["type"]
        if seen and seen in said("logs", logs(text)[-1]).stdout:
            return ""
        time.sleep(0.5)
    return "not at all"


@pytest.fixture
def run(cluster, folder):
    """A function that submits a job as its scheduler's row says, and tells how it ended."""

    def submitted(text, seen=""):
        (folder / "job.yaml").write_text(text)
        first, *words = planned("many").job["submit"].split()
        assert first == "kubectl"
        kubectl(words[0], "--validate=strict", *words[1:-1], str(folder / words[-1]))
        return ended(text, seen)

    yield submitted
    kubectl("delete", "--ignore-not-found", "-f", str(folder / "job.yaml"))
    until = time.monotonic() + 60
    while asked("pods")["items"]:
        assert time.monotonic() < until, "the job's pods are still there"
        time.sleep(0.5)


def where(text):
    """The ranks of one world of 4 by the pod that they ran in."""
    ranks = {}
    for rank, host in sorted(re.findall(r"^rank (\d) of 4 sum 6 on (\S+)$", text, re.M)):
        ranks.setdefault(host, []).append(int(rank))
    return ranks


def test_ranks_run_in_the_pods_that_the_operator_made(jobs, run):
    how = run(jobs["many"])
    printed = kubectl(*logs(jobs["many"]))
    assert how == "Succeeded" and where(printed) == GOOD, printed
    # what hydra was given
    assert asked("configmap", "program-config")["data"]["hostfile"] == HOSTS
    (job,) = asked("jobs")["items"]
    (launcher,) = job["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one.get("value", "") for one in launcher["env"]}
    assert given["HYDRA_HOST_FILE"] == "/etc/mpi/hostfile"
    assert {"/etc/mpi", "/root/.ssh"} <= {one["mountPath"] for one in launcher["volumeMounts"]}


def test_the_sshds_of_the_workers_end_with_the_job(jobs, run):
    run(jobs["many"])
    until, left = time.monotonic() + 60, []
    while left != ["program-launcher"] and time.monotonic() < until:
        left = [one["spec"]["hostname"] for one in asked("pods")["items"]]
        time.sleep(0.5)
    assert left == ["program-launcher"]


def test_each_worker_has_a_node_with_its_gpus(jobs, run):
    run(jobs["many"].replace("mpirun -n", "echo there; sleep 600; mpirun -n"), "there")
    pods = {one["spec"]["hostname"]: one["spec"] for one in asked("pods")["items"]}
    limits = {name: one["containers"][0]["resources"]["limits"] for name, one in pods.items()}
    worker = {"cpu": "2", "memory": "2Gi", "habana.ai/gaudi": "2"}
    assert limits.pop("program-launcher") == {"cpu": "1", "memory": "1Gi"}
    assert limits == {"program-worker-0": worker, "program-worker-1": worker}
    assert {pods[name]["nodeName"] for name in limits} == {"n1", "n2"}


def test_one_pod_needs_no_operator(jobs, run):
    how = run(jobs["one"])
    printed = kubectl(*logs(jobs["one"]))
    assert how == "Complete", printed
    ranks = re.findall(r"^rank (\d) of 2 sum 1 on (\S+)$", printed, re.M)
    assert {rank for rank, _ in ranks} == {"0", "1"} and len({host for _, host in ranks}) == 1


def test_a_program_that_fails_is_started_once(jobs, run):
    how = run(jobs["many"].replace("./program", "sh -c 'echo begun; exit 3'"))
    assert how == "Failed"
    assert kubectl(*logs(jobs["many"])).count("begun") in range(1, 5)
    launchers = [one for one in asked("pods")["items"] if "launcher" in one["spec"]["hostname"]]
    assert len(launchers) == 1


# What is changed, what it becomes, and what is seen then: in the log, or where the ranks ran. hydra
# does not end where its ssh fails, so the log decides.
BROKEN = {
    "too many slots": ("Worker: 2", "Worker: 4", {"program-worker-0": [0, 1, 2, 3]}),
    "too few slots": (
        *("Worker: 2", "Worker: 1"),
        {"program-worker-0": [0, 2], "program-worker-1": [1, 3]},
    ),
    "Open MPI's host file": (
        "mpirun -n",
        "sed 's/:/ slots=/' $HYDRA_HOST_FILE >/tmp/hosts; HYDRA_HOST_FILE=/tmp/hosts mpirun -n",
        "token slots not supported",
    ),
    "the operator's variable alone": ("HYDRA_LAUNCHER_", "NOT_", "Host key verification failed"),
    "a strict sshd": (" -o StrictModes=no", "", "Permission denied"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_seen(jobs, run, what):
    old, new, seen = BROKEN[what]
    assert old in jobs["many"]
    run(jobs["many"].replace(old, new), seen if isinstance(seen, str) else "")
    printed = said("logs", logs(jobs["many"])[-1]).stdout
    if isinstance(seen, str):
        assert seen in printed and where(printed) == {}
    else:
        assert where(printed) == seen != GOOD, printed


def test_another_implementation_writes_hosts_that_no_hydra_reads(jobs, run):
    run(jobs["many"].replace("MPICH", "OpenMPI"), "program-worker-0.program")
    assert asked("configmap", "program-config")["data"]["hostfile"] == HOSTS.replace(":", " slots=")
    (job,) = asked("jobs")["items"]
    (launcher,) = job["spec"]["template"]["spec"]["containers"]
    assert "HYDRA_HOST_FILE" not in {one["name"] for one in launcher["env"]}


@pytest.mark.parametrize("name", ["voyager/gaudi", "pnrp/a100"])
def test_the_jobs_of_our_systems_are_accepted(cluster, folder, name):
    system, _, part = name.partition("/")
    plan = make_plan(load_system(system), part, load_release(), load_policy())
    job = template(plan.job["script"], plan=plan, build=plan.mpi[0])
    (folder / "ours.yaml").write_text(job)
    words = ("--dry-run=server", "--validate=strict", "-f", str(folder / "ours.yaml"))
    assert "created (server dry run)" in kubectl("apply", *words)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("slotsPerWorker", "slotPerWorker", 'unknown field "spec.slotPerWorker"'),
        ("MPICH", "mpich", 'supported values: "OpenMPI", "Intel", "MPICH"'),
        ("emptyDir", "emptyDirectory", "unknown field"),
    ],
)
def test_a_word_that_is_wrong_is_refused(jobs, cluster, folder, old, new, why):
    assert old in jobs["many"]
    (folder / "wrong.yaml").write_text(jobs["many"].replace(old, new))
    made = said("apply", "--validate=strict", "-f", str(folder / "wrong.yaml"))
    assert made.returncode != 0 and why in made.stderr
