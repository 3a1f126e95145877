"""Looking at a machine: each reader in turn, and what none of them could see."""

from pathlib import Path

from mvstack.discover.capture import TIMED_OUT, Capture, must_be_new, read_capture, write_capture
from mvstack.discover.compilers import TOOLS, read_compilers
from mvstack.discover.cpu import read_cpu
from mvstack.discover.fabric import choose_fabric
from mvstack.discover.gpu import CAPABILITY, read_gpus, stage_buffers
from mvstack.discover.libraries import read_libraries
from mvstack.discover.machine import Machine
from mvstack.discover.ports import read_ports
from mvstack.discover.scheduler import BATCH, read_scheduler
from mvstack.discover.system import note_limits, read_mounts, read_os
from mvstack.discover.view import View
from mvstack.model.load import load_policy

COMMANDS = (
    *("uname -m", "systemd-detect-virt --vm", "nvidia-smi -L", CAPABILITY, "df -Pk /dev/shm"),
    *("sinfo --version", "scontrol show config", "srun --mpi=list", "flux --version"),
    *("fi_info -l", "fi_info -e", "ucx_info -d", "ucx_info -b"),
    *{question for question, *_ in BATCH.values()},
    *(f"{tool} --version" for tool in TOOLS),
)
"""What readers ask of tools, asked at once before them so that one slow tool adds to no other."""


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
    machine = Machine()
    policy = load_policy()
    seen = [row.seen for row in policy.externals.values() if row.seen]
    view.ask_together([*COMMANDS, *(tool for one in seen for tool in one.tools)])
    read_os(view, machine)
    read_cpu(view, machine)
    read_scheduler(view, machine)
    ports = read_ports(view, policy, machine)
    choose_fabric(view, ports, list(policy.fabrics), machine)
    read_gpus(view, machine)
    read_compilers(view, machine)
    read_libraries(view, policy.externals, machine)
    stage_buffers(machine)
    drivers = {one: name for name, row in policy.file_systems.items() for one in row.mounts}
    read_mounts(view, drivers, machine)
    note_limits(view, machine)
    for command, status in sorted(view.seen.failed.items()):
        if status == TIMED_OUT:
            machine.note(f"{command} did not answer in time: what it knows is taken as unknown")
    for path in sorted(view.seen.denied):
        machine.note(f"no permission to read {path}: what it holds is not known")
    return machine
