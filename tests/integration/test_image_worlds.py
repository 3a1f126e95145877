"""The worlds that image builds are tested in: nothing leaves them, and nothing outlives them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from images.base import base
from images.instance import USER, Instance, make_key
from images.kits import PACKAGES
from images.needs import needs
from images.world import LOOPBACK, World, processes


@pytest.fixture
def world() -> Iterator[World]:
    needs()
    with World() as made:
        yield made


def test_nothing_can_leave_a_world(world: World) -> None:
    code, said = world.run(["ip", "-brief", "link"])
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["lo"]
    for address in ("203.0.113.1", "8.8.8.8", "169.254.169.254"):
        dial = f"exec 3<>/dev/tcp/{address}/443"
        code, said = world.run(["timeout", "20", "bash", "-c", dial])
        assert code == 1 and "Network is unreachable" in said
    assert world.network() != str(Path("/proc/self/ns/net").readlink())


def test_in_the_block_inside_a_thread_is_in_the_world_and_not_after_it(world: World) -> None:
    own = Path("/proc/thread-self/ns/net")
    before = own.readlink()
    with world.inside():
        assert str(own.readlink()) == world.network()
    assert own.readlink() == before


def test_an_instance_is_reached_on_the_loopback_and_ends_with_all_it_started(
    world: World, tmp_path: Path
) -> None:
    key = make_key(tmp_path)
    alone = processes(world.network())
    with Instance(world, base(PACKAGES), key.with_suffix(".pub")) as instance:
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        ssh = ["ssh", *(f"-o{one}" for one in options), "-i", str(key), "-p", str(instance.port)]
        line = (
            "sudo touch /etc/written; nohup setsid sleep 600 >/dev/null 2>&1 </dev/null &"
            " sudo sh -c 'echo 61 > /proc/sys/vm/swappiness'; ls /sys/kernel/notes; hostname"
        )
        code, said = world.run([*ssh, f"{USER}@{LOOPBACK}", line])
        assert code == 0 and "instance" in said
        assert "Read-only file system" in said  # the kernel is this machine's
        assert (instance.root / "etc/written").exists()
        # nohup and setsid become sleep when they may, which can be after ssh has ended
        while not {"sshd", "sleep"} <= _programs(world):
            time.sleep(0.02)
    assert processes(world.network()) == alone
    assert not (base(PACKAGES) / "etc/written").exists()


def test_a_world_ends_when_the_process_that_made_it_is_killed(tmp_path: Path) -> None:
    needs()
    script = (
        "import sys, time; from images.world import World\n"
        "with World() as world:\n"
        "    world.popen(['setsid', 'sleep', '600'], {'PATH': '/usr/bin:/bin'})\n"
        "    print(world.network(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    tests = str(Path(__file__).resolve().parents[1])
    maker = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": tests},
    )
    assert maker.stdout is not None
    network = maker.stdout.readline().strip()
    assert processes(network)
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    while processes(network):  # the test's own limit ends this if they stay
        time.sleep(0.02)


def _programs(world: World) -> set[str]:
    """What runs in the world now."""
    found = set()
    for one in processes(world.network()):
        with contextlib.suppress(FileNotFoundError):  # it ended meanwhile
            found.add(Path(f"/proc/{one}/comm").read_text().strip())
    return found
