"""The machine that an emulated cloud is asked to start: QEMU from the emulated disk.

It is started when the emulator is asked for one, lets in whom the request names, and ends when the
emulator is asked to end it. What it is told besides (AWS: user data) it is told.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from mvstack.image import vm

from .emulated_aws import EmulatedAws
from .fake_arm import FakeArm
from .world import LOOPBACK, World


class Started:
    """Two machines at a time; in ``world``, ``user`` logs in at ``port`` of loopback, and the next.

    Use as a context manager.
    """

    def __init__(self, world: World, emulator: Any, raw: Path, folder: Path, user: str) -> None:
        self.world, self.emulator, self.raw, self.folder = world, emulator, raw, folder
        self.user, self.port = user, world.free_port()
        self.told: dict[str, Any] = {}
        self.began = self.ended = 0  # how many machines were started, and ended on request
        self._wires = socket.socketpair()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._plain = vm.arguments

    def __enter__(self) -> Started:
        self.folder.mkdir()
        vm.arguments = self._arguments
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        vm.arguments = self._plain
        for wire in self._wires:
            wire.close()

    def _watch(self) -> None:
        with contextlib.ExitStack() as machine, self.world.inside():
            while not self._over.wait(0.3):
                try:
                    asked, ends = self._requests()
                except ValueError:
                    continue  # the emulator writes its record just now
                if ends >= len(asked) > self.ended:
                    machine.close()
                    self.began = self.ended = len(asked)
                elif len(asked) > self.began:
                    self.told = asked[self.began]
                    machine.enter_context(self._machine())
                    self.began += 1

    def _arguments(self, seed: Path, port: int | str) -> list[list[str]]:
        """One of two machines: reached by ssh through its own card, the other one by another."""
        number = self.began % 2
        guest = f"10.0.2.{15 + number}"
        forward = f"hostfwd=tcp:{LOOPBACK}:{self.port + number}-{guest}:22"
        wire = self._wires[number].fileno()
        words = [row for row in self._plain(seed, port) if row[0] != "-netdev"]
        return [
            *words,
            ["-netdev", f"user,id=user.0,dhcpstart={guest},{forward}"],
            ["-netdev", f"socket,id=lan.0,fd={wire}"],
            ["-device", f"virtio-net-pci,netdev=lan.0,romfile=,mac=52:54:00:4d:57:{number:02x}"],
        ]

    def _machine(self) -> contextlib.AbstractContextManager[vm.Machine]:
        disk = self.folder / "disk.qcow2"
        if not disk.exists():
            command = ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", self.raw, disk]
            subprocess.run(command, check=True)
        name = f"boot-{self.began}"
        # cloud-init's own name for the default user, which each cloud's images set otherwise
        known: dict[str, Any] = {"manage_etc_hosts": "localhost"}  # a cloud has a server of names
        # qemu's router answers for every address, the other machine's as well
        other = f"10.0.2.{16 - self.began % 2}"
        known["bootcmd"] = ["ip link set eth1 up", f"ip route replace {other}/32 dev eth1"]
        data = json.dumps({**self.told, **known, "user": {"name": self.user}})
        files = {
            "meta-data": json.dumps({"instance-id": name, "local-hostname": name}) + "\n",
            "user-data": f"#cloud-config\n{data}\n",
        }
        folder = self.folder / name
        seed = vm.seed_of(folder, files)
        sockets = [wire.fileno() for wire in self._wires]
        guest = vm.Guest(self.user, folder / "none", seed, 2, 3072, (), sockets)
        return vm.launched(disk, folder, guest)

    def _requests(self) -> tuple[list[dict[str, Any]], int]:
        """What each machine that was asked for is told, and how many were to be ended."""
        if isinstance(self.emulator, FakeArm):
            rows = self.emulator.requests()
            made = [one for one in rows if one.method == "PUT" and "/deployments/boot" in one.path]
            keys = [one.body["properties"]["parameters"]["key"]["value"] for one in made]
            gone = [r.path.partition("?")[0].lower() for r in rows if r.method == "DELETE"]
            ends = sum(
                one.path.lower().startswith(tuple(f"{group}/" for group in gone)) for one in made
            )
            return [{"ssh_authorized_keys": [key]} for key in keys], ends
        assert isinstance(self.emulator, EmulatedAws)
        found: list[dict[str, Any]] = []
        ends: set[str] = set()
        for form in self.emulator.requests():
            text = base64.b64decode(form.get("UserData", "")).decode()
            if form["Action"] == "RunInstances" and "ssh_authorized_keys" in text:
                found += [json.loads(text.partition("\n")[2])] * int(form["MaxCount"])
            if found and form["Action"] == "TerminateInstances":
                ends |= {one for key, one in form.items() if key.startswith("InstanceId.")}
        return found, len(ends)
