"""Kernel settings and limits are as the policy says, on the running machine."""

from __future__ import annotations

import pytest
from conftest import FACTS, rows


@rows("sysctl", "name")
def test_sysctl(host, row):
    found = host.file("/proc/sys/" + row["name"].replace(".", "/")).content_string
    assert found.strip() == row["value"], row["why"]


FLAGS = {"memlock": "-l", "stack": "-s", "nofile": "-n", "nproc": "-u", "core": "-c"}


@pytest.mark.parametrize("kind", ["-S", "-H"])
@rows("limits", "item")
def test_limit_of_a_login(host, row, kind):
    found = host.run(f"bash -c 'ulimit {kind} {FLAGS[row['item']]}'")
    assert found.stdout.strip() == row["value"], row["why"]


@rows("limits", "item")
def test_limit_of_a_service(host, row):
    """What systemd starts does not pass PAM: slurmd and its ranks are started so."""
    with host.sudo():
        line = f"systemd-run --quiet --pipe --wait bash -c 'ulimit {FLAGS[row['item']]}'"
        found = host.run(line)
    assert found.stdout.strip() == row["value"], row["why"]


@rows("kernel_files", "path")
def test_kernel_file(host, row):
    found = host.run(f"cat {row['path']}").stdout.strip()
    # files with a choice show the chosen word in brackets
    assert found == row["value"] or f"[{row['value']}]" in found, row["why"]


@rows("module_options", "option")
def test_module_option(host, row):
    with host.sudo():
        found = host.run("modprobe --showconfig").stdout
    assert f"options {row['module']} {row['option']}={row['value']}" in found.splitlines()


@rows("drop_ins", "path")
def test_drop_in(host, row):
    found = host.file(row["path"])
    assert found.user == "root" and found.mode == 0o644
    assert found.content_string.endswith(row["text"])


@pytest.mark.skipif(not FACTS["modules"], reason="this image loads no kernel module of its own")
def test_modules_are_loaded_at_start(host):
    said = host.file("/etc/modules-load.d/90-mvapich-stack.conf").content_string.splitlines()
    assert [line for line in said if not line.startswith("#")] == [
        row["name"] for row in FACTS["modules"]
    ]


@pytest.mark.parametrize("name", FACTS["packages"])
def test_package(host, name):
    assert host.package(name).is_installed
