"""Looking at a machine: each reader in turn, and what none of them could see."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mvstack.discover import compilers, libraries, scheduler, site
from mvstack.discover.capture import TIMED_OUT, Capture, must_be_new, read_capture, write_capture
from mvstack.discover.cpu import read_cpu
from mvstack.discover.fabric import choose_fabric
from mvstack.discover.gpu import read_gpus
from mvstack.discover.machine import Findings, Machine
from mvstack.discover.ports import read_ports
from mvstack.discover.system import read_os
from mvstack.discover.view import View
from mvstack.model.load import load_policy
from mvstack.model.policy import Policy
from mvstack.model.vocabulary import policy_folders

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("uname", "-m"),
    ("systemd-detect-virt", "--vm"),
    ("nvidia-smi", "-L"),
    *scheduler.COMMANDS,
    *libraries.COMMANDS,
    *compilers.COMMANDS,
    *site.COMMANDS,
)
"""Every question asked of a tool."""


def look(machine: Path | Capture = Path("/")) -> Machine:
    """What the machine is that is this one (``/``), a capture, or files below a folder.

    Tools are run on this machine only, side by side, each for 5 s at the most. Raises InvalidInput
    for a file that is no capture, and nothing for what a machine holds.
    """
    if isinstance(machine, Path) and machine.is_file():
        machine = read_capture(machine)
    return examine(View(machine))


def capture(file: Path) -> None:
    """Write all that ``look()`` sees to a new file. Raises InvalidInput when it cannot."""
    must_be_new(file)
    view = View(Path("/"))
    examine(view)
    write_capture(view.seen, file)


def examine(view: View) -> Machine:
    """``look`` through a view, which then knows all that was looked at."""
    findings = Findings()
    view.ask_together(COMMANDS)
    system = read_os(view, findings)
    node = read_cpu(view, findings)
    launch = scheduler.read_scheduler(view, findings)
    policy = _policy(tuple(policy_folders()))
    ports = read_ports(view, policy.fabrics, findings)
    order = list(policy.fabrics)
    choice = choose_fabric(view, ports, order, launch.scheduler, system.hypervisor, findings)
    gpus = read_gpus(view, findings)
    compiler, all_compilers = compilers.read_compilers(view, findings)
    externals = libraries.read_libraries(view, view.say("uname", "-m").strip(), launch, findings)
    drivers = {one: name for name, row in policy.file_systems.items() for one in row.mounts}
    file_systems = site.read_mounts(view, drivers, findings)
    site.note_limits(view, choice.fabric, findings)
    _say_unanswered(view, findings)
    return Machine(
        hostname=system.hostname,
        os=system.name,
        scheduler=launch.scheduler,
        cores=node.cores,
        memory_gb=node.memory_gb,
        target=node.target,
        fabric=choice.fabric,
        nic=choice.nic,
        gpu=gpus.gpu,
        gpus=gpus.count,
        launcher=launch.launcher,
        pmi=launch.pmi,
        file_systems=file_systems,
        compiler=compiler,
        externals=externals,
        os_title=system.title,
        hypervisor=system.hypervisor,
        cpu=node.title,
        accelerators=gpus.accelerators,
        compilers=all_compilers,
        notes=findings.notes,
        how=findings.how,
    )


@cache
def _policy(_: tuple[Path, ...]) -> Policy:
    return load_policy()


def _say_unanswered(view: View, findings: Findings) -> None:
    for command, status in sorted(view.seen.failed.items()):
        if status == TIMED_OUT:
            findings.note(f"{command} did not answer in time: what it knows is taken as unknown")
    for path in sorted(view.seen.denied):
        findings.note(f"no permission to read {path}: what it holds is not known")
