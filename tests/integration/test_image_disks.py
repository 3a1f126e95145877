"""Disks that are mounted through a loop device, and what a killed process leaves of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mvstack.image import nodes
from mvstack.image.audit import audit
from mvstack.image.disks import mounted
from mvstack.support.errors import BuildFailed, CheckFailed, Missing
from mvstack.support.home import DATA


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root: loop devices are mounted")
    path = tmp_path / "raw"
    try:
        partitioned(path, "label: dos\nstart=1MiB, type=83\n", 16)
        subprocess.run(["mkfs.ext4", "-q", "-E", "offset=1048576", path, "14M"], check=True)
        with mounted(path) as place:
            (place / "file").write_text("kept")
    except (FileNotFoundError, Missing) as error:
        pytest.skip(" ".join(str(error).split()))
    return path


def partitioned(disk: Path, table: str, size: int) -> None:
    with disk.open("wb") as stream:
        stream.truncate(size << 20)
    subprocess.run(["/usr/sbin/sfdisk", "--quiet", disk], input=table, text=True, check=True)


def mounts(disk: Path) -> list[str]:
    """Where this disk is mounted: others' disks may be as well, for other tests run beside this."""
    words = ["/usr/sbin/losetup", "--noheadings", "--output", "NAME", "--associated", str(disk)]
    devices = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    lines = map(str.split, Path("/proc/self/mounts").read_text().splitlines())
    return [line[1] for line in lines if line[0] in devices]


def test_what_is_written_is_there_and_nothing_stays_mounted(disk: Path) -> None:
    with mounted(disk, read_only=True) as place:
        assert (place / "file").read_text() == "kept"
        with pytest.raises(OSError, match="Read-only"):
            (place / "other").touch()
    assert not mounts(disk) and not place.exists()


def test_an_error_in_the_block_unmounts(disk: Path) -> None:
    with pytest.raises(ZeroDivisionError), mounted(disk):
        raise ZeroDivisionError
    assert not mounts(disk)


def test_a_disk_that_is_in_use_is_not_called_whole(disk: Path) -> None:
    with pytest.raises(BuildFailed, match="could not be unmounted"), mounted(disk) as place:
        holding = (place / "file").open()
    holding.close()
    assert not mounts(disk), "it is let go once nobody uses it"


_MOUNTS = """
import pathlib, sys, time
from mvstack.image.disks import mounted
with mounted(pathlib.Path(sys.argv[1]), read_only=True):
    print("mounted", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_mounted_is_let_go_by_the_next(disk: Path) -> None:
    command = [sys.executable, "-c", _MOUNTS, str(disk)]
    environment = {**os.environ, "PYTHONPATH": str(DATA / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as killed:
        assert killed.stdout is not None and killed.stdout.readline() == b"mounted\n"
        (left,) = mounts(disk)
        with mounted(disk, read_only=True):
            assert left in mounts(disk), "it lives: it is left alone"
        killed.send_signal(signal.SIGKILL)
    assert left in mounts(disk)
    with mounted(disk, read_only=True):
        assert left not in mounts(disk)
    assert not mounts(disk) and not Path(left).exists()


def test_a_test_that_falls_silent_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "SILENCE", 1.0)
    marker = tmp_path / "alive"
    script = f"echo begun; (sleep 30; touch {marker}) & sleep 30"
    with pytest.raises(CheckFailed, match="said nothing"):
        nodes.followed(["bash", "-c", script], os.environ, tmp_path / "log", lambda _: None)
    assert (tmp_path / "log").read_text() == "begun\n"
    time.sleep(0.1)
    assert not marker.exists()


_BOOTSTRAPS = """
import pathlib, sys
from mvstack.image import base
root = pathlib.Path(sys.argv[1])
base._bootstrap(root, base.Base("bookworm", 1), root.parent / "log", print)
"""
# Stands for mmdebstrap as long as it works in its root: that takes minutes, and mounts the same.
_MOUNTS_IN_ROOT = """#!/bin/sh
for root; do :; done
mkdir -p "$root/proc" && mount -t proc proc "$root/proc" && touch "$root/../mounted" && sleep 600
"""


def test_what_a_killed_bootstrap_mounted_is_gone_with_it(disk: Path, tmp_path: Path) -> None:
    """Else whoever removes its half-made root removes through the mounts."""
    tool, root = tmp_path / "bin" / "mmdebstrap", tmp_path / "base" / "root"
    tool.parent.mkdir()
    tool.write_text(_MOUNTS_IN_ROOT)
    tool.chmod(0o755)
    root.mkdir(parents=True)
    environment = {
        **os.environ,
        "PATH": f"{tool.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(DATA / "src"),
    }
    command = [sys.executable, "-c", _BOOTSTRAPS, str(root)]
    with subprocess.Popen(command, env=environment, start_new_session=True) as killed:
        deadline = time.monotonic() + 60
        while not (root.parent / "mounted").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        here = Path("/proc/self/mounts").read_text()
        os.killpg(killed.pid, signal.SIGKILL)
    subprocess.run(["umount", str(root / "proc")], stderr=subprocess.DEVNULL, check=False)
    assert (root.parent / "mounted").exists()
    assert str(root) not in here
    assert not list((root / "proc").iterdir())


ROOT_ID, BOOT_ID = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def cloud_disk(disk: Path, tmp_path: Path) -> Path:
    """As a cloud's: GPT, /boot before / and named in its fstab, and room that holds nothing."""
    place = tmp_path / "cloud"
    rows = "start=1MiB,size=1MiB\nstart=2MiB,size=8MiB\nstart=10MiB,size=16MiB\n"
    partitioned(place, f"label: gpt\n{rows}", 32)
    for start, size, name in ((2, 8, BOOT_ID), (10, 16, ROOT_ID)):
        tree = tmp_path / name
        (tree / ("etc" if name == ROOT_ID else "loader")).mkdir(parents=True)
        if name == ROOT_ID:
            (tree / "boot").mkdir()
            lines = f"# comment\nUUID={name} / ext4 defaults 0 1\nUUID={BOOT_ID} /boot ext4\n"
            (tree / "etc/fstab").write_text(lines)
        else:
            (tree / "loader/random-seed").write_text("seed")
        words = ["-E", f"offset={start << 20}", "-U", name, "-d", tree, place, f"{size}M"]
        subprocess.run(["mkfs.ext4", "-q", "-F", *words], check=True)
    return place


def test_a_partition_beside_the_root_is_seen_by_the_audit(cloud_disk: Path) -> None:
    with mounted(cloud_disk, read_only=True) as place:
        assert (place / "etc/fstab").is_file()
        (found,) = audit(place)
        assert found.path == "/boot/loader/random-seed" and found.fails
        with pytest.raises(OSError, match="Read-only"):
            (place / "boot/other").touch()
    assert not mounts(cloud_disk)


@pytest.mark.parametrize(
    ("start", "magic", "words"),
    [
        (26, (4086, b"SWAPSPACE2"), "holds swap, which cannot be looked into"),
        (26, None, "holds ext4, and /etc/fstab does not say where"),
    ],
)
def test_a_partition_that_nobody_can_look_into_is_no_clean_one(
    cloud_disk: Path, start: int, magic: tuple[int, bytes] | None, words: str
) -> None:
    add = ["/usr/sbin/sfdisk", "--quiet", "--append", "--no-reread", cloud_disk]
    subprocess.run(add, input=f"start={start}MiB,size=5MiB\n", text=True, check=True)
    if magic:
        with cloud_disk.open("r+b") as stream:
            stream.seek((start << 20) + 1024)
            stream.write((1).to_bytes(4, "little") + (1000).to_bytes(4, "little"))
            stream.seek((start << 20) + magic[0])
            stream.write(magic[1])
    else:
        words_ = ["-E", f"offset={start << 20}", cloud_disk, "5M"]
        subprocess.run(["mkfs.ext4", "-q", "-F", *words_], check=True)
    with pytest.raises(CheckFailed, match=words), mounted(cloud_disk, read_only=True):
        raise AssertionError("nothing of it may be called looked at")
    assert not mounts(cloud_disk)
