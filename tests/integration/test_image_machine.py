"""A machine of an image: told from another's, started once more, given up when it stays away."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from mvstack.image import publish, store, testing, tools, vm
from mvstack.image.flow import Asked
from mvstack.image.flow import test_image as whole_test
from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.policy import image_policy
from mvstack.image.vm import Machine
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.plan.make import make_plan
from mvstack.support.errors import BuildFailed, Refused
from mvstack.support.progress import Progress

# ssh [OPTION]… HOST COMMAND, of a machine whose state is in the folder of this program
SSH = r"""#!/bin/bash
cd "${0%/*}" || exit
command=${*: -1}
case $command in
    *boot_id) [[ ! -e dead ]] && cat boot_id ;;
    *reboot)
        [[ ! -e bad-kernel ]] || touch dead
        echo second >boot_id
        exit 255
        ;;
    *image.json) cat image.json ;;
    *is-system-running*) cat state ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name, text in (("ssh", SSH), ("boot_id", "first\n"), ("state", "running\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(vm, "PATIENCE", 3)
    return Machine("node")


@pytest.fixture
def image() -> ImagePlan:
    system = load_system("azure-hbv4")
    plan = make_plan(system, "hpc", load_release(), load_policy())
    return make_image(system, plan, image_policy())


@pytest.fixture
def version(tmp_path: Path, image: ImagePlan) -> store.Version:
    made = store.begin(tmp_path / "images", "2026.11", image.name, "inputs", None, {})
    made.set(state="candidate", release_sha256="0" * 64)
    return made


def test_a_machine_that_comes_back_was_started_once_more(machine: Machine) -> None:
    machine.reach(lambda _: None)
    machine.reboot(lambda _: None)
    assert machine.run("cat boot_id").text == "second\n"
    assert testing._up(machine)["result"] == "pass"


def test_a_kernel_that_does_not_start_stops_the_test(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "bad-kernel").touch()
    machine.reach(lambda _: None)
    with pytest.raises(BuildFailed, match="of being started again"):
        machine.reboot(lambda _: None)


def test_a_disk_that_does_not_start_stops_the_test_of_a_qemu_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With qemu itself: what is on the disk is no kernel, nor what starts one."""
    if not all(map(shutil.which, tools.FOR_TEST)):
        pytest.skip("what starts an image is not installed")
    made = store.begin(tmp_path, "2026.11", "qemu-debian12-mpich", "inputs", None, {})
    made.set(state="tested", release_sha256="0" * 64, signed="F")
    disk = made.folder / "disk.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", disk, "16M"], check=True)
    monkeypatch.setattr(vm, "PATIENCE", 3)
    asked = Asked("qemu-debian12/mpich", images=tmp_path)
    with pytest.raises(BuildFailed, match="could not be reached by ssh"):
        whole_test(asked, None, Progress(0, mode="quiet"))
    (left,) = store.versions(tmp_path)
    assert left.state == "candidate" and not left.data["signed"]


def test_a_unit_that_failed_at_the_second_start_is_told(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("degraded\nopenibd.service loaded failed failed\n")
    found = testing._up(machine)
    assert found["result"] == "fail" and "openibd.service" in found["why"]


def test_a_machine_of_another_image_is_refused(
    machine: Machine, version: store.Version, tmp_path: Path
) -> None:
    right = {"image": "azure-hbv4-hpc", "version": "2026.11.0", "release_sha256": "0" * 64}
    (tmp_path / "image.json").write_text(json.dumps(right | {"commit": "any"}))
    testing._is_of(machine, version)
    for wrong in ({"version": "2026.11.1"}, {"release_sha256": "1" * 64}):
        (tmp_path / "image.json").write_text(json.dumps(right | wrong))
        with pytest.raises(Refused, match="was not started from azure-hbv4-hpc"):
            testing._is_of(machine, version)
    (tmp_path / "image.json").unlink()
    with pytest.raises(Refused, match="not there"):
        testing._is_of(machine, version)


def test_which_images_are_tested_on_which_machine(image: ImagePlan, machine: Machine) -> None:
    with pytest.raises(Refused, match="Standard_HB176rs_v4 from it, and name it: --host NAME"):
        testing.ready("azure-hbv4-hpc 2026.11.0", image)
    with pytest.raises(Refused, match="leave --host out"):
        testing.ready("x", dataclasses.replace(image, cloud="qemu"), [machine])


@pytest.mark.parametrize("state", ["building", "candidate"])
def test_no_image_of_a_cloud_is_published_untested(
    image: ImagePlan, version: store.Version, state: str
) -> None:
    version.set(state=state)
    with pytest.raises(Refused, match="was not tested"):
        publish._may_be_published(version, image, unknown_is_fine=True)
