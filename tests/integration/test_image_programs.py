"""Images, held against the programs that read what we write: bash, dpkg and rpm."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from image_tree import put, rpm_family
from test_image_plan import everything, planned
from test_image_vulnerabilities import asked, database, entry

from mvstack.image import osv, packages
from mvstack.image.audit import audit
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import ImagePlan
from mvstack.image.render import provision_env

PROVISION = TEMPLATES / "provision"


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not installed")
def test_packages_of_rpm_and_their_setuid_files(tmp_path: Path) -> None:
    root = rpm_family(tmp_path / "root", tmp_path / "work")
    before = sorted(path.name for path in (root / "var/lib/rpm").iterdir())
    found = {one.name: one for one in packages.installed(root)}
    assert sorted(found) == ["mvtest", "mvtest-libs"]
    assert found["mvtest-libs"].version == "2:1.2-3.el9"
    assert found["mvtest-libs"].sources == (("mvtest", "2:1.2-3.el9"),)
    assert audit(root) == []
    put(root, "/usr/bin/other", "x", 0o4755)
    assert [one.path for one in audit(root)] == ["/usr/bin/other"]
    assert sorted(path.name for path in (root / "var/lib/rpm").iterdir()) == before


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not installed")
def test_rpm_is_asked_by_binary_and_by_source_package(tmp_path: Path) -> None:
    root = rpm_family(tmp_path / "root", tmp_path / "work")
    path = database(
        tmp_path / "osv",
        entry("ALSA-1", "mvtest-libs", {"fixed": "2:1.2-4.el9"}, ecosystem="AlmaLinux:9"),
        entry("ALSA-2", "mvtest-libs", {"fixed": "0:1.3-1.el9"}, ecosystem="AlmaLinux:9"),
        entry("ALSA-3", "mvtest", {"fixed": "2:1.10-1.el9"}, ecosystem="AlmaLinux:9"),
    )
    found = asked(root, path)
    assert [(one.id, one.installed, one.binaries) for one in found.vulnerabilities] == [
        ("ALSA-1", "2:1.2-3.el9", ["mvtest-libs"]),
        ("ALSA-3", "2:1.2-3.el9", ["mvtest"]),
    ]


VERSIONS = st.from_regex(r"([0-2]:)?[0-9][0-9a-b.+~]{0,6}(-[0-9a-b.+~]{1,4})?", fullmatch=True)


@pytest.mark.skipif(not shutil.which("dpkg"), reason="dpkg is not installed")
@settings(max_examples=60)
@given(VERSIONS, VERSIONS)
def test_debian_versions_are_ordered_as_dpkg_orders_them(one: str, other: str) -> None:
    words = {-1: "lt", 0: "eq", 1: "gt"}
    word = words[osv.compare("dpkg", one, other)]
    assert not subprocess.run(["dpkg", "--compare-versions", one, word, other]).returncode


RPM = st.from_regex(r"([0-2]:)?[0-9a-b.~^]{1,6}-[0-9a-b.~^]{1,4}", fullmatch=True)


@pytest.mark.skipif(not shutil.which("rpm"), reason="rpm is not installed")
@settings(max_examples=10)
@given(st.lists(st.tuples(RPM, RPM), min_size=20, max_size=60))
def test_rpm_versions_are_ordered_as_rpm_orders_them(pairs: list[tuple[str, str]]) -> None:
    lines = "".join(f'print(rpm.vercmp("{one}", "{other}") .. " ")\n' for one, other in pairs)
    command = ["rpm", "--eval", f"%{{lua: {lines}}}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert [osv.compare("rpm", *pair) for pair in pairs] == [int(word) for word in said]


@pytest.mark.parametrize(("name", "partition"), everything())
def test_bash_reads_back_what_was_written_for_it(name: str, partition: str, tmp_path: Path) -> None:
    _, image = planned(name, partition)
    path = tmp_path / "provision.env"
    path.write_text(provision_env(image))
    line = 'source "$1"; printf "%s\\n" "$FAMILY" "$MACHINE" "${#PACKAGES[@]}" "${UNITS[@]}"'
    said = subprocess.run(
        ["bash", "-euc", line, "bash", str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[:3] == [image.family, image.machine, str(len(image.packages))]
    assert said[3:] == [f"{unit['name']} {unit['state']}" for unit in image.units]


@given(st.text(st.characters(blacklist_characters="\0\r", blacklist_categories=("Cs",))))
def test_no_machine_name_can_become_a_command(text: str) -> None:
    _, image = planned("qemu-debian12", "mpich")
    odd = ImagePlan(**{**image.as_dict(), "machine": text})
    script = provision_env(odd) + 'printf "%s" "$MACHINE"'
    said = subprocess.run(["bash", "-euc", script], capture_output=True, check=True)
    assert said.stdout.decode() == text


@pytest.mark.parametrize("script", sorted(path.name for path in PROVISION.glob("*.sh")))
def test_a_provisioning_script_is_bash(script):
    done = subprocess.run(["bash", "-n", PROVISION / script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "ours"),
    [
        ("/lib/modules/{k}/extra/mlnx-ofa_kernel/drivers/mlx5_core.ko.xz", True),
        ("/lib/modules/{k}/updates/dkms/mlx5_core.ko", True),
        ("/lib/modules/{k}/weak-updates/mlnx-ofa_kernel/drivers/mlx5_core.ko", True),
        ("/lib/modules/{k}/kernel/drivers/net/ethernet/mellanox/mlx5_core.ko.xz", False),
        ("", False),
    ],
)
def test_the_module_that_the_image_will_load_must_be_the_one_that_was_built(tmp_path, file, ours):
    """need_module asks modinfo about the kernel that the image starts, not the one that runs."""
    kernel = "5.14.0-611.el9_7.x86_64"
    tools = tmp_path / "bin"
    tools.mkdir()
    says = file.format(k=kernel)
    (tools / "modinfo").write_text(
        f'#!/bin/sh\n[ "$*" = "-k {kernel} -F filename mlx5_core" ] || exit 1\n'
        f'[ -n "{says}" ] && echo "{says}"\n'
    )
    (tools / "modinfo").chmod(0o755)
    script = (
        f"set -euo pipefail; CHANGES={tmp_path}/changes; KERNEL={kernel}; DOWNLOADS=()\n"
        f"source {PROVISION}/lib.sh; source {PROVISION}/kernel-modules.sh\n"
        "need_module mlx5_core ours; echo loaded\n"
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{tools}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0, "loaded" in done.stdout) == (ours, ours)
    assert ours or "REFUSED: kernel 5.14.0-611.el9_7.x86_64" in done.stderr


WAAGENT = """\
# Enable RDMA management and set up, should only be used in HPC images
# OS.EnableRDMA=y
Provisioning.Enabled=n
ResourceDisk.EnableSwap = y
"""


def test_the_agents_settings_are_changed_once(tmp_path):
    """50-azure.sh on a waagent.conf: what was there stays, and a second run changes nothing."""
    conf, scratch = tmp_path / "waagent.conf", tmp_path / "scratch"
    conf.write_text(WAAGENT)
    conf.chmod(0o600)
    scratch.mkdir()
    text = (PROVISION / "50-azure.sh").read_text()
    [settings] = re.findall(r"^settings\(\) \{.*?^\}", text, re.S | re.M)
    script = (
        f"set -euo pipefail; CHANGES={scratch}/changes; : >$CHANGES\nsource {PROVISION}/lib.sh\n"
        + settings.replace("/etc/waagent.conf", str(conf))
        + "\nfor i in 1 2; do settings OS.EnableRDMA y ResourceDisk.EnableSwap n A.Period 300; "
        "wc -l <$CHANGES; done\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.split() if line.isdigit()] == ["1", "1"]
    assert conf.read_text() == (
        "# Enable RDMA management and set up, should only be used in HPC images\n"
        "OS.EnableRDMA=y\nProvisioning.Enabled=n\nResourceDisk.EnableSwap=n\nA.Period=300\n"
    )
    assert conf.stat().st_mode & 0o777 == 0o600
