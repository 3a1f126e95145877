"""A cluster of virtual machines on this one: started from an image for QEMU, used, and ended."""

import base64
import contextlib
import io
import json
import os
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mvstack.image import tools, vm
from mvstack.image.cluster import MUNGE_MARK, Cluster, address, cluster_files
from mvstack.image.plan import distribution_of
from mvstack.image.vm import Machine
from mvstack.support import locks
from mvstack.support.errors import BuildFailed, InvalidInput, Locked, Missing
from mvstack.support.processes import follow
from mvstack.support.progress import Progress

MOST = 16  # machines of 2 GB on one
PATIENCE = 900.0  # seconds until Slurm has all nodes; two emulated machines took 60 on a quiet one
# what the job says is shown while it runs
_FIRST = (
    "cd first && : > job.out && { sbatch --wait --output=job.out first-job.sh & } && "
    "tail --pid=$! -n +1 -f job.out && wait $!"
)


def can_run(cluster: Cluster) -> None:
    """Raise InvalidInput or Missing for what this machine cannot start."""
    image = cluster.image
    if image.cloud != "qemu":
        raise InvalidInput(
            f"an image of {image.cloud} is not started here",
            cluster.of,
            todo=f"mvstack cluster render {cluster.of} --to DIR",
        )
    if cluster.nodes > MOST:
        raise InvalidInput(f"{cluster.nodes} machines", cluster.of, allowed=f"at most {MOST}")
    tools.need(tools.FOR_TEST, "starting machines")
    wanted = cluster.nodes * int(image.hardware["memory_gb"])
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if wanted > there:
        raise Missing(
            f"{cluster.nodes} machines need {wanted} GB of memory",
            found=f"{there:.0f} GB",
            todo="start fewer: --nodes N",
        )


def run_cluster(
    cluster: Cluster, disk: Path, folder: Path, use: Callable[[Machine], int], progress: Progress
) -> int:
    """Start the cluster on layers over ``disk``, have ``use`` use it, and end it; what it returned.

    ``folder`` keeps the machines' consoles. Raises Locked when it is in use, BuildFailed when a
    machine or Slurm does not come up.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(folder / ".lock", wait=False))
        except locks.Held as held:
            raise Locked("this cluster runs already", str(folder), found=held.holder) from None
        with progress.step("cluster", f"{cluster.nodes} machines") as step:
            machines = stack.enter_context(_started(cluster, disk, folder))
            for name, machine in zip(cluster.names, machines, strict=True):
                machine.reach(lambda said, name=name: step.note(f"{name}: {said}"))  # type: ignore[misc]
        with progress.step("cluster", "Slurm on all of them") as step:
            _wait(cluster, machines, step.note)
        return use(machines[0])


@contextlib.contextmanager
def _started(cluster: Cluster, disk: Path, folder: Path) -> Iterator[list[Machine]]:
    """The machines, each told who it is; they share a network that nobody else is in."""
    image = cluster.image
    key = vm.make_key(folder)
    secret = base64.b64encode(os.urandom(96)).decode()
    told = cluster_files(cluster)["cloud-config.yaml"].replace(MUNGE_MARK, secret)
    public = key.with_suffix(".pub").read_text().strip()
    told += f"ssh_authorized_keys: {json.dumps([public])}\n"
    run = f"{os.getpid()}-{time.time_ns()}"
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in cluster.names[1:]]
        for one, other in pairs:
            stack.callback(one.close)
            stack.callback(other.close)
        machines = []
        for number, name in enumerate(cluster.names, start=1):
            ends = [one for one, _ in pairs] if number == 1 else [pairs[number - 2][1]]
            sockets = [end.fileno() for end in ends]
            here = folder / name
            here.mkdir(parents=True, exist_ok=True)
            meta = {"instance-id": f"{name}-{run}", "local-hostname": name}
            cards = {"eth0": {"dhcp4": True}, "eth1": {"addresses": [f"{address(number)}/20"]}}
            network = {"version": 2, "ethernets": cards}
            seed = vm.seed_of(
                here,
                {
                    "meta-data": json.dumps(meta) + "\n",
                    "user-data": told,
                    "network-config": json.dumps(network) + "\n",
                },
            )
            guest = vm.Guest(
                distribution_of(image.os),
                key,
                seed,
                int(image.hardware["cores"]),
                int(image.hardware["memory_gb"]) * 1024,
                _network(number, sockets),
                sockets,
            )
            machines.append(stack.enter_context(vm.launched(disk, here, guest)))
        yield machines


def _network(number: int, sockets: Sequence[int]) -> list[str]:
    """qemu's words for the second card: a wire to the head, which joins all wires."""
    words = ["-netdev", "hubport,id=lan.0,hubid=0"]
    for count, fd in enumerate(sockets):
        words += ["-netdev", f"socket,id=wire.{count},fd={fd}"]
        words += ["-netdev", f"hubport,id=port.{count},hubid=0,netdev=wire.{count}"]
    card = "virtio-net-pci,netdev=lan.0,romfile=,"
    return [*words, "-device", f"{card}mac=52:54:00:4d:56:{number:02x}"]


def _wait(cluster: Cluster, machines: Sequence[Machine], note: Callable[[str], None]) -> None:
    """Wait until Slurm has every node. Raises BuildFailed with what the machines said."""
    begin = time.monotonic()
    said = ""
    while time.monotonic() - begin < PATIENCE:
        done = machines[0].run("sinfo --noheader --format='%D %T'", limit=120)
        said = " ".join((done.text or done.errors).split())
        if done.ok and said == f"{cluster.nodes} idle":
            return
        note(said if done.ok else "slurmctld does not answer yet")
        time.sleep(3)
    lines = []
    for name, machine in zip(cluster.names, machines, strict=True):
        look = "sudo tail -n 5 /var/log/cloud-init-output.log /var/log/slurm/*.log"
        lines.append(f"{name}: {machine.run(look, limit=120).text.strip()[-800:]}")
    raise BuildFailed(
        f"Slurm did not have its {cluster.nodes} nodes within {PATIENCE:.0f} s",
        cluster.of,
        found=f"sinfo: {said}\n" + "\n".join(lines),
    )


def first_job(cluster: Cluster, line: Callable[[str], object]) -> Callable[[Machine], int]:
    """Submit first-job.sh and hand what it said to ``line``; its exit status."""

    def use(head: Machine) -> int:
        files = cluster_files(cluster)
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name in ("first-job.sh", "world.c", "collectives.c"):
                info = tarfile.TarInfo(name)
                info.size = len(files[name].encode())
                tar.addfile(info, io.BytesIO(files[name].encode()))
        done = head.run("mkdir -p first && tar -C first -xf -", data=stream.getvalue())
        if not done.ok:
            raise BuildFailed("the job could not be copied there", found=done.said)
        return follow(head.ssh(_FIRST), os.environ, line=line)

    return use


def command(words: Sequence[str], line: Callable[[str], object]) -> Callable[[Machine], int]:
    """Run a command on the head, its output to ``line``; without words a shell of the user's."""

    def use(head: Machine) -> int:
        if words:
            return follow(head.ssh(*words), os.environ, line=line)
        return subprocess.run(["ssh", "-t", *head.ssh("exec bash -l")[1:]], check=False).returncode

    return use
