"""The systems of Azure and AWS and their images: expectations written by hand, image by image."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.policy import image_policy
from mvstack.image.render import drop_in_files
from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan.choose import choose
from mvstack.plan.make import make_plan
from mvstack.plan.targets import target_for
from mvstack.support.errors import InvalidInput, Refused

TOP = Path(__file__).parents[2]
PROVISION = TOP / "images" / "provision"
ALMA8 = "almalinux/almalinux-x86_64/8-gen2/8.10.2025090501"
JAMMY_AZURE = "Canonical/0001-com-ubuntu-server-jammy/22_04-lts-gen2/22.04.202510230"
ROCKY9 = "792107900819/Rocky-9-EC2-Base-9.7-20251123.2.x86_64"
JAMMY_AWS = "099720109477/ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-20251015"


@dataclass(frozen=True)
class Image:
    """What is expected of one image."""

    os: str
    mpi: str
    builder: str
    machine: str
    base: str
    nic_stack: str
    secure_boot: bool
    links: tuple[int, int]
    cores: int
    memory_gb: int
    downloads: tuple[str, ...]
    compiled_for: str


GPU = ("nvidia-driver", "nvidia-fabricmanager", "cuda-toolkit", "gdrcopy", "nccl")
UCX, OFI = "mvapich 4.0 ch4:ucx", "mvapich 4.0 ch4:ofi"
PLUS_UCX, PLUS_OFI = "mvapich-plus 5.0.0 ch4:ucx", "mvapich-plus 5.0.0 ch4:ofi"
# fmt: off
EXPECTED = {
    "azure-hbv3/hpc": Image(
        "ubuntu22.04", UCX, "easybuild", "Standard_HB120rs_v3", JAMMY_AZURE,
        "inbox", True, (1, 200), 120, 448, (), "zen3",
    ),
    "azure-hbv4/hpc": Image(
        "almalinux8", UCX, "easybuild", "Standard_HB176rs_v4", ALMA8,
        "doca", False, (1, 400), 176, 768, ("doca-host",), "zen3",
    ),
    "azure-ndv5/gpu": Image(
        "almalinux8", PLUS_UCX, "spack", "Standard_ND96isr_H100_v5", ALMA8,
        "doca", False, (8, 400), 96, 1900, ("doca-host", *GPU), "sapphirerapids",
    ),
    "aws-c6i/hpc": Image(
        "ubuntu22.04", OFI, "easybuild", "c6i.32xlarge", JAMMY_AWS,
        "efa", False, (1, 50), 64, 256, ("efa-installer",), "icelake",
    ),
    "aws-hpc6a/hpc": Image(
        "rocky9", OFI, "easybuild", "hpc6a.48xlarge", ROCKY9,
        "efa", False, (1, 100), 96, 384, ("efa-installer",), "zen3",
    ),
    "aws-hpc7a/hpc": Image(
        "rocky9", OFI, "easybuild", "hpc7a.96xlarge", ROCKY9,
        "efa", False, (2, 150), 192, 768, ("efa-installer",), "zen3",
    ),
    "aws-p5/gpu": Image(
        "rocky9", PLUS_OFI, "spack", "p5.48xlarge", ROCKY9,
        "efa", False, (32, 100), 96, 2048, ("efa-installer", *GPU), "zen3",
    ),
}
# fmt: on


def image(name: str) -> ImagePlan:
    system, partition = name.split("/")
    loaded = load_system(system)
    plan = make_plan(loaded, partition, load_release(), load_policy())
    return make_image(loaded, plan, image_policy())


def test_every_image_of_the_two_clouds_has_an_expectation_here():
    found = {
        f"{name}/{partition}"
        for name in system_names()
        if name.startswith(("azure-", "aws-"))
        for partition, part in load_system(name).partitions.items()
        if part.image
    }
    assert found == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_image(name):
    wanted, system = EXPECTED[name], load_system(name.split("/")[0])
    part = system.partitions[name.split("/")[1]]
    choice = choose(system, name.split("/")[1], load_release(), load_policy())
    made = image(name)
    found = Image(
        os=made.os,
        mpi=f"{choice.product} {choice.version} {choice.devices[0]}",
        builder=system.builder,
        machine=made.machine,
        base="/".join(made.base.values()),
        nic_stack=made.nic_stack,
        secure_boot=made.secure_boot,
        links=(int(made.hardware["links"]), int(made.hardware["link_gbps"])),
        cores=part.cores,
        memory_gb=part.memory_gb,
        downloads=tuple(row["id"] for row in made.downloads),
        compiled_for=target_for(part.target, part.compiler.name, part.compiler.version),
    )
    assert found == wanted
    assert choice.pmi == "pmi2"


@pytest.mark.parametrize("name", EXPECTED)
def test_secure_boot_is_off_exactly_where_modules_are_built(name):
    made = image(name)
    builds = made.nic_stack in ("doca", "efa") or made.gpu_stack == "nvidia"
    assert made.secure_boot == (not builds)
    assert ("DKMS" in made.secure_boot_why) == builds


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_public_knowledge_of_an_image_is_to_be_confirmed(name):
    system, partition = load_system(name.split("/")[0]), name.split("/")[1]
    word = "version" if name.startswith("azure-") else "name"
    how = system.confirm[f"partitions.{partition}.image.base.{word}"]
    command = "az vm image list" if name.startswith("azure-") else "aws ec2 describe-images"
    assert command in " ".join(how.split())


@pytest.mark.parametrize("name", EXPECTED)
def test_libfabric_is_that_of_the_efa_installer(name):
    """The installer's release notes say which libfabric it brings."""
    brings = {"1.47.0": "2.4.0amzn1.0"}
    made, system = image(name), load_system(name.split("/")[0])
    if made.nic_stack != "efa":
        assert "libfabric" not in system.partitions[name.split("/")[1]].externals
        return
    [installer] = [row for row in made.downloads if row["id"] == "efa-installer"]
    external = system.partitions[name.split("/")[1]].externals["libfabric"]
    assert external.version == brings[installer["version"]]
    assert external.prefix == "/opt/amazon/efa"


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith("/gpu")])
def test_the_parts_of_a_gpu_stack_fit_each_other(name):
    rows = {row["id"]: row["version"] for row in image(name).downloads}
    cuda = load_system(name.split("/")[0]).partitions["gpu"].externals["cuda"]
    assert rows["nvidia-fabricmanager"].rpartition("-")[0] == rows["nvidia-driver"]
    assert cuda.version == rows["cuda-toolkit"]
    assert cuda.prefix == f"/usr/local/cuda-{rows['cuda-toolkit'].rpartition('.')[0]}"
    units = {row["name"] for row in image(name).units}
    assert {"nvidia-persistenced.service", "nvidia-fabricmanager.service"} <= units


@pytest.mark.parametrize("name", EXPECTED)
def test_every_download_that_a_step_wants_is_in_the_table_once(name):
    made = image(name)
    rows = [row["id"] for row in made.downloads]
    assert len(rows) == len(set(rows))
    wanted = set()
    for step in made.steps:
        text = (PROVISION / step["script"]).read_text()
        wanted |= set(re.findall(r"\$\((?:fetch|version_of) ([a-z0-9-]+)\)", text))
    assert wanted == set(rows)


def test_no_url_of_a_download_moves():
    for row in image_policy().downloads:
        assert not re.search(r"latest|master|main|refs/heads", row.url)
        assert row.version.split("-")[0] in row.url


def test_every_step_has_its_script():
    for row in image_policy().steps:
        assert (PROVISION / row.script).is_file()


def test_a_partition_without_an_image_names_one_that_serves_its_machines():
    named = 0
    for name in system_names():
        for part in load_system(name).partitions.values():
            if not part.image_from:
                continue
            named += 1
            assert part.image is None
            there = image(part.image_from)
            mine = {"cores": str(part.cores), "memory_gb": str(part.memory_gb)}
            sizes = [there.of_size(size).hardware for size in there.serves]
            assert any(mine.items() <= size.items() for size in sizes), name
            other = load_system(part.image_from.split("/")[0])
            that = other.partitions[part.image_from.split("/")[1]]
            same = ("os", "fabric", "nic", "launcher", "gpu", "target", "compiler", "externals")
            assert [getattr(part, one) for one in same] == [getattr(that, one) for one in same]
    assert named


def test_another_size_of_an_image_has_its_own_figures():
    there = image("azure-hbv4/hpc")
    small = there.of_size("Standard_HX176-24rs")
    assert (small.machine, small.hardware["cores"], small.hardware["memory_gb"]) == (
        *("Standard_HX176-24rs", "24", "1408"),
    )
    assert there.of_size("") is there and there.of_size(there.machine) is there
    with pytest.raises(InvalidInput, match="does not serve Standard_HX176-24"):
        there.of_size("Standard_HX176-24")
    text = drop_in_files(there)["/etc/mvapich-stack/expected"]
    assert text.endswith("machine=Standard_HX176-24rs\ncores=24\nmemory_gb=1408\n")


def test_the_refusal_names_the_image_that_serves():
    with pytest.raises(Refused) as caught:
        image("azure-hx/hpc")
    assert "name azure-hbv4/hpc, whose image serves" in str(caught.value.problems[0].todo)
