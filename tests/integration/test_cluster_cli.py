"""`mvstack cluster plan` and `render`: what a person gets for each cloud, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from mvstack.cli import main as cli

AMI = ["--image", "ami-0123456789abcdef0", "--region", "us-east-2"]
NET = ["--subnet", "subnet-0123456789abcdef0", "--key-name", 'a "key": mine']
GALLERY = "/subscriptions/0/resourceGroups/g/providers/Microsoft.Compute/galleries/g/images/i"


Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """``mvstack cluster WORD…`` in this process: its exit code and what it printed."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mvstack", "cluster", *words])
        code: object = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        return int(str(code)), " ".join("".join(capsys.readouterr()).split())

    return run


def read(path: Path) -> dict[str, object]:
    found: dict[str, object] = YAML(typ="safe").load(path.read_text())
    return found


def test_files_for_aws(ask: Ask, tmp_path: Path) -> None:
    to = tmp_path / "mine"
    code, said = ask("render", "aws-hpc6a/hpc", "--nodes", "8", "--to", str(to), *AMI, *NET)
    assert code == 0, said
    cluster = YAML(typ="safe").load((to / "cluster.yaml").read_text())
    (queue,) = cluster["Scheduling"]["SlurmQueues"]
    (nodes,) = queue["ComputeResources"]
    assert nodes == {
        "Name": "hpc6a-48xlarge",
        "InstanceType": "hpc6a.48xlarge",
        "MinCount": 0,
        "MaxCount": 8,
        "Efa": {"Enabled": True},
    }
    assert cluster["HeadNode"]["Ssh"]["KeyName"] == 'a "key": mine'
    assert read(to / "image.yaml")["Build"] == {
        "InstanceType": "m6a.4xlarge",
        "ParentImage": "ami-0123456789abcdef0",
        "UpdateOsPackages": {"Enabled": False},
    }
    # where a core has two threads, one of them is ours
    to = tmp_path / "threads"
    assert ask("render", "aws-c6i/hpc", "--to", str(to), *AMI, *NET)[0] == 0
    assert "DisableSimultaneousMultithreading: true" in (to / "cluster.yaml").read_text()


@pytest.mark.parametrize("system", ["azure-hbv4/hpc", "azure-hbv3/hpc"])
def test_files_for_azure(ask: Ask, system: str, tmp_path: Path) -> None:
    to = tmp_path / "mine"
    image = f"{GALLERY}/versions/2026.11.0"
    code, said = ask("render", system, "--nodes", "4", "--to", str(to), "--image", image)
    assert code == 0, said
    bicep = (to / "main.bicep").read_text()
    assert f"var image = '{image}'" in bicep
    assert bicep.count("range(1, 4)") == 2
    config = read(to / "cloud-config.yaml")
    files = {one["path"]: one["content"] for one in config["write_files"]}  # type: ignore[attr-defined]
    assert "NodeName=node-[1-4] " in files["/etc/mvapich-stack/slurm.conf"]
    # the key is a parameter of the deployment, and in no file
    assert files["/etc/mvapich-stack/munge.key"] == "@MUNGE_KEY@\n"
    assert "'@MUNGE_KEY@', mungeKey" in bicep
    facts = files["/etc/mvapich-stack/cluster"]
    line = f"set -euo pipefail; {facts}\n" + 'echo "${#PACKAGES[@]} $HEAD $COMPUTES"'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    count, head, computes = done.stdout.split()
    assert (int(count) > 5, head, computes) == (True, "head", "no")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["aws-hpc6a/hpc", *AMI], 3, "a cluster in aws needs --subnet"),
        (["aws-hpc6a/hpc", *NET, *AMI[2:], "--image", "ami-x y"], 3, "as ami-0123456789abcdef0"),
        (["azure-hbv4/hpc", "--image", f"{GALLERY}'/versions/1.2.3"], 3, "needs --image"),
        (["azure-hbv4/hpc", "--nodes", "1"], 3, "2 to 4000"),
        (["qemu-debian12/mpich"], 4, "e.g. qemu-debian12/cluster"),
        (["expanse/cpu"], 4, "expanse/cpu has no image"),
    ],
)
def test_refusals(ask: Ask, words: list[str], code: int, why: str, tmp_path: Path) -> None:
    found, said = ask("render", *words, "--to", str(tmp_path / "mine"))
    assert why in said
    assert found == code
    assert not (tmp_path / "mine").exists()


def test_a_folder_that_is_there_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    _, said = ask("render", "qemu-debian12/cluster", "--to", str(tmp_path))
    assert "this folder is there already" in said
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_plan_tells_machines_and_launch_line(ask: Ask) -> None:
    code, said = ask("plan", "aws-hpc6a/hpc", "--nodes", "8")
    assert code == 0
    assert "8 of hpc6a.48xlarge, efa" in said
    assert "ranks 768" in said
    assert "srun --mpi=pmi2 -n N ./a.out" in said
    assert "node-1, which computes too" in ask("plan", "qemu-debian12/cluster")[1]


def test_a_clouds_image_is_not_started_here(ask: Ask) -> None:
    assert "an image of aws is not started here" in ask("run", "aws-hpc6a/hpc")[1]
    assert "at most 16" in ask("run", "qemu-debian12/cluster", "--nodes", "17")[1]
