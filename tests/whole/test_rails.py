"""The check Rails on two nodes with two links each: network namespaces, shaped by the kernel.

Debian's MPICH over UCX sends by TCP, over the links that the policy's own variables name. A link of
a tenth of the rate, one that is down, and settings that leave one unused must each be caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mvstack.model.load import load_policy, load_system
from mvstack.model.system import Network
from mvstack.plan.choose import facts_of, replace
from mvstack.plan.rails import rail_settings, rails
from mvstack.test.run import run_checks

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from checks_tree import LMOD, debian_plan

pytestmark = pytest.mark.slow

NODES = ("mvstack-a", "mvstack-b")
LINKS = ("rail0", "rail1", "admin")
RATE = 200  # Mbit/s of a link
START = """#!/bin/sh
exec ip netns exec {0} unshare --uts sh -c 'hostname {0}; exec "$@"' sh \\
    mpiexec -launcher ssh -launcher-exec {1}/remote -iface admin -hosts {0},{2} "$@"
"""
REMOTE = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$1; shift
exec ip netns exec "$node" unshare --uts sh -c "hostname $node; $*"
"""


def said(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True)


def shape(rate: int, link: str = "rail1") -> None:
    """Give a link of both nodes a rate in Mbit/s."""
    for node in NODES:
        subprocess.run(
            f"tc -n {node} qdisc replace dev {link} root tbf rate {rate}mbit burst 256kb "
            "latency 100ms",
            shell=True,
            check=True,
        )


def connect(number: int) -> None:
    """Make the namespace of a node anew, and links from the second to the first."""
    node = NODES[number]
    said("ip", "netns", "del", node)
    commands = [f"ip netns add {node}", f"ip -n {node} link set lo up"]
    for network, link in enumerate(LINKS if number else ()):
        peer = f"peer name {link} netns {NODES[1]}"
        commands.append(f"ip -n {NODES[0]} link add {link} type veth {peer}")
        for last, one in enumerate(NODES, 1):
            commands.append(f"ip -n {one} addr add 10.77.{network}.{last}/24 dev {link}")
            commands.append(f"ip -n {one} link set {link} up")
    for command in commands:
        subprocess.run(command.split(), check=True)


def listed(node: str) -> list[str]:
    """The links of a node in the order in which its kernel lists them."""
    found = said("ip", "netns", "exec", node, "ls", "-U", "/sys/class/net").stdout.split()
    return [one for one in found if one in LINKS]


@pytest.fixture
def nodes():
    """Two namespaces with two shaped links between them, and a third one for the launcher."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "unshare"))):
        pytest.skip("skipped: unreachable: namespaces need root, ip and tc (apt: iproute2)")
    first = said("ip", "netns", "add", NODES[0])
    if first.returncode and "exists" not in first.stderr:
        pytest.skip(f"skipped: unreachable: no network namespaces here: {first.stderr.strip()}")
    try:
        # UCX 1.13 pairs the interfaces of two nodes in the order in which the kernel lists them,
        # and sends all over one if these differ. It is the order of a hash of name and namespace.
        for _ in range(50):
            connect(0)
            connect(1)
            orders = [listed(node) for node in NODES]
            if orders[0] == orders[1]:
                break
        else:
            pytest.fail("in 50 tries no two namespaces listed their interfaces in the same order")
        shape(RATE, "rail0")
        shape(RATE, "rail1")
        yield
    finally:
        for node in NODES:
            said("ip", "netns", "del", node)


@pytest.fixture
def plan(nodes, tmp_path):
    """Debian's MPICH started over both nodes, with what the policy says of two links over UCX."""
    made = debian_plan(tmp_path / "tree") if LMOD.exists() else None
    if made is None or made["mpi"][0]["device"] != "ch4:ucx":
        pytest.skip("skipped: no Debian MPICH over UCX, or no Lmod (apt: mpich libmpich-dev lmod)")
    system = load_system("ethernet-lab")
    network = Network(rails=2, hcas=["rail0", "rail1"])
    part = system.partitions["cpu"].model_copy(update={"network": network})
    system = system.model_copy(update={"partitions": {"cpu": part}})
    facts, policy = replace(facts_of(system, "cpu"), device="ch4:ucx"), load_policy()
    settings = {name: one.value for name, one in rail_settings(part, facts, policy).items()}
    assert settings == {"UCX_NET_DEVICES": "rail0,rail1"}
    for name, text in {
        "start": START.format(NODES[0], tmp_path, NODES[1]),
        "remote": REMOTE,
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    module = next((tmp_path / "tree/modules").rglob("4.0.2-ucx.lua"))
    # one kernel: without UCX_TLS the ranks would talk through its memory
    lines = [f'setenv("{name}", "{value}")' for name, value in (settings | TCP).items()]
    module.write_text("\n".join([module.read_text(), *lines]) + "\n")
    launch = f"{tmp_path}/start -ppn {{ranks_per_node}} -n {{ranks}} {{program}}"
    made["mpi"][0] |= {"launch": launch, "rails": rails(part, facts, policy), "fabric": "tcp"}
    return made


TCP = {"UCX_TLS": "tcp,self"}


@pytest.fixture
def check(plan, tmp_path):
    """Run the check Rails alone and give its case."""
    checks = tmp_path / "checks"
    shutil.copytree(Path(__file__).parents[1] / "reframe", checks)
    for path in checks.glob("*.py"):
        if "simple_test" in path.read_text() and path.stem != "rails":
            path.unlink()
    shutil.rmtree(checks / "apps")

    def run(**changes):
        plan["mpi"][0] |= changes
        (case,) = run_checks(plan, tmp_path / "out", [], checks=checks)["cases"]
        return case

    return run


def test_two_links_carry_twice_what_one_does_and_each_fault_is_named(check, plan, tmp_path):
    case = check()
    assert case["result"] == "pass", case["why"]
    speed = {figure["name"]: figure["value"] for figure in case["figures"]}
    one = RATE / 8  # MB/s, less the headers of TCP, IP and Ethernet
    assert 0.8 * one < speed["bandwidth_rail0"] < one and 0.8 * one < speed["bandwidth_rail1"] < one
    assert 1.8 < speed["bandwidth_all"] / speed["bandwidth_rail0"] < 2.2

    shape(RATE // 10)
    assert check()["why"].startswith("rail1 is slow: alone the links give rail0 ")
    shape(RATE)

    for node in NODES:
        said("ip", "-n", node, "link", "set", "rail1", "down")
    assert check()["why"].startswith("rail1 carries nothing: no program ran over it alone")
    for node in NODES:
        said("ip", "-n", node, "link", "set", "rail1", "up")

    module = next((tmp_path / "tree/modules").rglob("4.0.2-ucx.lua"))
    text = module.read_text()
    module.write_text(text.replace('"rail0,rail1"', '"rail0"'))
    case = check()
    assert case["why"].startswith("rail1 carries too little: all 2 links together give "), case
    assert "of the bytes rail0 100%, rail1 0%" in case["why"]

    module.write_text(text.replace("tcp,self", "all"))
    assert "messages take another way than the fabric" in check()["why"]
    module.write_text(text)

    one_node = plan["mpi"][0]["launch"].replace("-ppn {ranks_per_node}", "-ppn 2")
    case = check(launch=one_node)
    assert (case["result"], case["why"]) == (
        "skip",
        "all ranks ran on one node, and links are between two",
    )
