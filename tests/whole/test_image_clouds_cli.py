"""`mvstack image` as a site gives it, from a signed cache to an image that is published, on clouds.

Of the clouds there are emulators, and of the instance a stand-in without a kernel of its own
(images/instance.py); GRUB is a stand-in that hands its line to extlinux. Real are the release,
which comes from a signed cache, the provisioning, Slurm, which starts the ranks, the disk, which is
audited, and the two machines that are started from it, tested, started again and tested with Slurm,
each alone and as two nodes of one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from images.base import LATER, base
from images.cloud_disk import CloudDisk
from images.emulated_aws import REGION, EmulatedAws
from images.fake_arm import FakeArm
from images.instance import USER, Instance, make_key
from images.needs import needs
from images.release import PARTITION, ROOT, SYSTEM, installed
from images.started import Started
from images.world import LOOPBACK, World

from mvstack.image.base import PACKAGES as STARTS
from mvstack.image.flow import Asked
from mvstack.model.load import load_system
from mvstack.support.home import DATA

VERSION, NAME, MORE = "2026.11.0", "slurm-deb12", "ap-south-1"
IMAGE, DISK_GB = f"{NAME}-{PARTITION}", 6
SIZES = {"aws": "c6i.32xlarge", "azure": "Standard_D2s_v5"}
USERS = {"aws": "admin", "azure": "azureuser"}
CLOUDS = {
    "aws": "{owner: '136693071363', name: debian-12-amd64-20251112-2294}",
    "azure": "{publisher: Debian, offer: debian-12, sku: 12-gen2, version: 0.20251112.2294}",
}
SLURM = "launcher: srun\n    externals:\n      slurm: {version: 22.05.8, prefix: /usr, mpi: [pmi2]}"
SRUN = """#!/bin/bash
exec /usr/bin/srun "${@/--mpi=*/--mpi=none}"
"""
UPDATE_GRUB = """#!/bin/bash
GRUB_CMDLINE_LINUX_DEFAULT=''
for file in /etc/default/grub.d/*.cfg; do source "$file"; done
sed -i "s/ quiet.*/ quiet $GRUB_CMDLINE_LINUX_DEFAULT/" /boot/extlinux/extlinux.conf
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5000)]  # the first builds an MPI


class Emulator(Protocol):
    """What both emulators have."""

    def environment(self) -> dict[str, str]: ...
    def variables(self) -> dict[str, Any]: ...


@pytest.fixture(scope="module", params=sorted(CLOUDS))
def cloud(request: pytest.FixtureRequest) -> str:
    needs("moto", "flask", "boto3", "azure.identity")
    installed()
    return str(request.param)


@pytest.fixture(scope="module")
def folder(cloud: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp(cloud)
    yield place
    shutil.rmtree(place, ignore_errors=True)  # gigabytes, which pytest would keep


@pytest.fixture(scope="module")
def world(cloud: str) -> Iterator[World]:
    with World(("management.azure.com", "login.microsoftonline.com")) as made:
        yield made


@pytest.fixture(scope="module")
def emulator(cloud: str, world: World, folder: Path) -> Iterator[Emulator]:
    if cloud == "aws":
        with EmulatedAws(world, folder) as aws:
            aws.reset()
            yield aws
    else:
        with FakeArm(world, folder) as arm:
            arm.site(IMAGE)
            yield arm


@pytest.fixture(scope="module")
def system(cloud: str, folder: Path) -> Path:
    """The system of QEMU's image, described as an image of a cloud whose jobs srun starts."""
    text = (DATA / "environments" / "systems" / f"{SYSTEM}.yaml").read_text()
    text = text.replace(f"name: {SYSTEM}", f"name: {NAME}")
    text = text.replace("cloud: qemu", f"cloud: {cloud}").replace("launcher: hydra", SLURM)
    text = text.replace("fabric: shm", "fabric: tcp")
    text = text.replace("base: {suite: bookworm}", f"base: {CLOUDS[cloud]}")
    text = text.replace("machine: 2 virtual processors, 4 GB", f"machine: {SIZES[cloud]}")
    text = text.replace("os: debian12\n", "os: debian12\nscheduler: slurm\n")
    path = folder / f"{NAME}.yaml"
    path.write_text(text)
    load_system(str(path))
    return path


@pytest.fixture(scope="module")
def instance(world: World, system: Path, folder: Path) -> Iterator[Instance]:
    key = make_key(folder)
    _, image = Asked(f"{system}/{PARTITION}", root=ROOT).plan("build")
    # the instance reaches no mirror: what would be installed there is there, Slurm in a mirror of
    # its own, since it comes for the test and goes again
    packages = {*STARTS, *image.packages}
    if image.cloud == "azure":
        # Debian's kernel for clouds has no InfiniBand
        packages = packages - {"linux-image-cloud-amd64"} | {"waagent", "linux-image-amd64"}
    root = base(sorted(packages), image.test_packages)
    with Instance(world, root, key.with_suffix(".pub")) as made:
        (made.disk / "etc/apt/sources.list").write_text(LATER)
        grub = made.disk / "usr/sbin/update-grub"
        grub.write_text(UPDATE_GRUB)
        grub.chmod(0o755)
        yield made


@pytest.fixture(scope="module")
def disk(instance: Instance, folder: Path) -> Iterator[CloudDisk]:
    with CloudDisk(instance.disk, folder, DISK_GB) as made:
        yield made


@pytest.fixture(scope="module")
def site(emulator: Emulator, instance: Instance, folder: Path) -> Path:
    """The site's file; the address is always the instance's own on loopback."""
    variables = {
        **emulator.variables(),
        "user": USER,
        "ssh_host": LOOPBACK,
        "ssh_port": instance.port,
        "ssh_private_key_file": str(next(folder.glob("*.pub")).with_suffix("")),
    }
    path = folder / "site.json"
    path.write_text(json.dumps(variables))
    return path


@pytest.fixture(scope="module")
def mvstack(world: World, emulator: Emulator, folder: Path) -> Iterator[Any]:
    home = Path(tempfile.mkdtemp(prefix="mvs-gpg-", dir="/tmp"))  # a socket's path must be short
    environment = {
        **os.environ,
        **emulator.environment(),
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "NO_PROXY": "*",
        "MVSTACK_IMAGES": str(folder / "images"),
        "MVSTACK_GNUPGHOME": str(home),
        "MVSTACK_CACHES": str(folder / "cache"),
        "PYTHONPATH": str(DATA / "src"),
    }

    def run(*words: str | Path | int) -> tuple[int, str]:
        command = [sys.executable, str(DATA / "tests/images/cli.py"), *map(str, words)]
        return world.run(command, **environment)

    assert run("cache", "keys", "create", "Image tests")[0] == 0
    code, said = run("cache", "push", f"{SYSTEM}/{PARTITION}", "--to", folder / "cache",
                     "--root", ROOT)  # fmt: skip
    assert code == 0, said
    yield run
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


def test_a_site_builds_audits_starts_tests_and_publishes(
    mvstack: Any,
    cloud: str,
    system: Path,
    site: Path,
    folder: Path,
    instance: Instance,
    disk: CloudDisk,
    world: World,
    emulator: Emulator,
) -> None:
    name = f"{system}/{PARTITION}"
    build = ("image", "build", name, "--settings", site, "--root", ROOT, "--yes")
    place = folder / "images" / "2026.11" / IMAGE / VERSION

    # so does an srun that says another PMI, and a key that is left on the disk
    srun = instance.disk / "usr/local/bin/srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    code, said = mvstack(*build)
    assert code == 6 and "of them see a world of 2" in said, said
    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert code == 0 and "candidate" not in said
    srun.unlink()
    disk.left = {"root/backup/id": "-----BEGIN OPENSSH PRIVATE KEY-----\n"}
    code, said = mvstack(*build)
    assert code == 1 and f"{IMAGE}:/root/backup/id: private key" in said, said
    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert code == 0 and "candidate" not in said
    log = (place / "packer.log").read_text()
    assert "changed: 0 (" in log, "the second provisioning changes nothing"
    assert "ranks see each other, 705 collectives are right, by srun" in log

    disk.left = {}
    disk.forget()
    code, said = mvstack(*build)
    assert code == 0 and f"{IMAGE} {VERSION}: candidate" in said, said
    papers = {path.name for path in place.iterdir()}
    assert {"manifest.txt", "audit.json", "packages.txt", "sbom.cdx.json"} <= papers
    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert code == 0 and f"{IMAGE} {VERSION}: candidate" in said
    code, said = mvstack(
        "image", "clean", "--cloud", cloud, "--settings", site, "--older-than", "0"
    )
    assert code == 0 and "nothing to clean" in said

    region = REGION if cloud == "aws" else "westeurope"
    publish = ("image", "publish", name, "--settings", site, "--region", region, "--root", ROOT)
    unknown = (*publish, "--vulnerabilities-unknown")
    code, said = mvstack(*unknown)
    assert code == 4 and "was not tested" in said and "--host NAME" in said

    boot = ("image", "boot-test", name, "--root", ROOT, "--minutes", "60")
    code, said = mvstack(*boot, "--settings", site, "--budget", "5")
    assert code == 4 and "prices" in said and "Nothing was started" in said
    priced = folder / "priced.json"
    with Started(world, emulator, disk.raw, folder / "machine", USERS[cloud]) as started:
        priced.write_text(json.dumps(json.loads(site.read_text()) | network(emulator) | {
            "prices": {SIZES[cloud]: 2}, "ssh_port": started.port,
        }))  # fmt: skip
        code, said = mvstack(*boot, "--settings", priced, "--budget", "4.99")
        assert code == 4 and "cost 5.00" in said and "Nothing was started" in said
        # machines whose kernel is not there are given up and ended, and are not tested
        kernel_gone(disk.raw, folder / "machine" / "disk.qcow2")
        code, said = mvstack(*boot[:-1], "4", "--settings", priced, "--budget", "5")
        assert code == 1 and "4 minutes" in said, said
        ended(started, 2)
        assert mvstack(*unknown)[0] == 4
        (folder / "machine" / "disk.qcow2").unlink()

        code, said = mvstack(*boot, "--settings", priced, "--budget", "5")
        assert code == 0 and f"{IMAGE} {VERSION}: tested" in said, said
        ended(started, 4)
    code, said = mvstack("image", "clean", "--cloud", cloud, "--settings", site, "--older-than", 0)
    assert code == 0 and "nothing to clean" in said
    report = json.loads((place / "tests.json").read_text())
    cases = {case["name"]: case["result"] for case in [*report["machine"], *report["checks"]]}
    assert cases["smoke"] == "pass" and cases["second start"] == "pass"
    assert cases["smoke among 2 machines"] == "pass"
    assert any("test_kernel_is_the_one" in name for name in cases)

    code, said = mvstack(*publish)
    assert code == 4 and "vulnerabilities" in said
    code, said = mvstack(*unknown)
    assert code == 0 and "published to" in said, said
    assert mvstack("image", "verify", place)[0] == 0
    code, said = mvstack(*unknown)
    assert code == 4 and "published already" in said
    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert f"{IMAGE} {VERSION}: published" in said

    of = (name, "--version", VERSION, "--settings", site)
    code, said = mvstack("image", "replicate", *of, "northeurope" if cloud == "azure" else MORE)
    assert code == 0 and ("northeurope" if cloud == "azure" else MORE) in said, said
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    code, said = mvstack("image", "deprecate", *of, "--last", today)
    assert code == 0 and f"to be used until {today}" in said, said
    for where in ((), ("--cloud", cloud, "--settings", site)):
        code, said = mvstack("image", "list", *where)
        assert f"{IMAGE} {VERSION}: published;" in said and f"end {today}" in said
    code, said = mvstack("image", "delete", *of)
    assert code == 4 and "may still be used" in said


def ended(started: Started, count: int) -> None:
    """That ``count`` machines were started in all, and each was ended."""
    deadline = time.monotonic() + 60
    while started.ended < count and time.monotonic() < deadline:
        time.sleep(0.5)
    assert (started.began, started.ended) == (count, count)


def kernel_gone(raw: Path, disk: Path) -> None:
    """Make ``disk`` of ``raw``, without the kernel that it would start."""
    broken = disk.with_suffix(".raw")
    shutil.copyfile(raw, broken)
    said = subprocess.run(["sfdisk", "--json", broken], check=True, capture_output=True).stdout
    start = json.loads(said)["partitiontable"]["partitions"][-1]["start"] * 512
    within = f"{broken}?offset={start}"
    names = subprocess.run(["debugfs", "-R", "ls -p /boot", within], check=True,
                           capture_output=True, text=True).stdout  # fmt: skip
    kernels = [word for word in names.split("/") if word.startswith("vmlinuz")]
    assert kernels, names
    for name in kernels:
        subprocess.run(["debugfs", "-w", "-R", f"rm /boot/{name}", within], check=True)
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", broken, disk], check=True)
    broken.unlink()


def network(emulator: Emulator) -> dict[str, str]:
    """What a site names for machines that are tested."""
    if isinstance(emulator, FakeArm):
        net = "/subscriptions/x/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v"
        return {"azure_subnet": f"{net}/subnets/s"}
    assert isinstance(emulator, EmulatedAws)
    with emulator.world.inside():
        ec2 = emulator.ec2()
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        (group,) = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    return {"aws_subnet": subnet, "aws_security_group": group["GroupId"]}
