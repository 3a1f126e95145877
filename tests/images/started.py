"""The machine that an emulated cloud is asked to start: QEMU from the emulated disk.

It is started when the emulator is asked for one, lets in whom the request names, and ends when the
emulator is asked to end it. What it is told besides (AWS: user data) it is told.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from mvstack.image import vm

from .emulated_aws import EmulatedAws
from .fake_arm import FakeArm
from .world import World


class Started:
    """Use as a context manager. In ``world``, behind ``port`` of its loopback, ``user`` logs in."""

    def __init__(self, world: World, emulator: Any, raw: Path, folder: Path, user: str) -> None:
        self.world, self.emulator, self.raw, self.folder = world, emulator, raw, folder
        self.user, self.port = user, world.free_port()
        self.told: dict[str, Any] = {}
        self.began = self.ended = 0  # how many machines were started, and ended on request
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._free_port = vm.free_port

    def __enter__(self) -> Started:
        self.folder.mkdir()
        vm.free_port = lambda: self.port
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        vm.free_port = self._free_port

    def _watch(self) -> None:
        with contextlib.ExitStack() as machine, self.world.inside():
            while not self._over.wait(0.3):
                try:
                    asked, ends = self._requests()
                except ValueError:
                    continue  # the emulator writes its record just now
                if len(asked) > self.began:
                    self.told = asked[-1]
                    machine.enter_context(self._machine())
                    self.began += 1
                elif self.began > self.ended and ends >= self.began:
                    machine.close()
                    self.ended += 1

    def _machine(self) -> contextlib.AbstractContextManager[vm.Machine]:
        disk = self.folder / "disk.qcow2"
        if not disk.exists():
            command = ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", self.raw, disk]
            subprocess.run(command, check=True)
        # cloud-init's own name for the default user, which each cloud's images set otherwise
        data = json.dumps({**self.told, "user": {"name": self.user}})
        files = {
            "meta-data": json.dumps({"instance-id": f"boot-{self.began}"}) + "\n",
            "user-data": f"#cloud-config\n{data}\n",
        }
        seed = vm.seed_of(self.folder, files)
        guest = vm.Guest(self.user, self.folder / "none", seed, 2, 4096)
        return vm.launched(disk, self.folder, guest)

    def _requests(self) -> tuple[list[dict[str, Any]], int]:
        """What each machine that was asked for is told, and how many were to be ended."""
        if isinstance(self.emulator, FakeArm):
            rows = self.emulator.requests()
            made = [one for one in rows if one.method == "PUT" and "/deployments/boot" in one.path]
            keys = [one.body["properties"]["parameters"]["key"]["value"] for one in made]
            gone = [r for r in rows if r.method == "DELETE" and "/mvapich-stack-boot-" in r.path]
            return [{"ssh_authorized_keys": [key]} for key in keys], len(gone)
        assert isinstance(self.emulator, EmulatedAws)
        found, ends = [], 0
        for form in self.emulator.requests():
            text = base64.b64decode(form.get("UserData", "")).decode()
            if form["Action"] == "RunInstances" and "ssh_authorized_keys" in text:
                found.append(json.loads(text.partition("\n")[2]))
            ends += bool(found) and form["Action"] == "TerminateInstances"
        return found, ends
