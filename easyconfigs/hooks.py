"""EasyBuild hooks of the stack: a module file appears whole or not at all.

EasyBuild opens a module file under its final name and writes into it. Killed there, it leaves half
a module, which Lmod offers, and which EasyBuild takes for a finished installation ever after. With
``--hooks=<easyconfigs>/hooks.py`` the text goes into a hidden file beside it, everything installed
so far is brought to the disk, and only then the file gets its name, in one step.

And nothing is fetched behind the source mirror's back: for each package with a configure script
EasyBuild tries to download a config.guess, and waits for a host that may not answer. configure
brings its own.

And one easyconfig of a package serves every MPI: those over the other MPI builds are written into a
temporary folder, which EasyBuild looks into last. Where easyconfigs/system is on the robot path,
those over this machine's compiler are written too, and EasyBuild looks there before its own
(over_mpi.py).

And where an MPI for CUDA is built on a machine without its driver, as login nodes are, programs
over it are linked and started there all the same, without GPUs.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from easybuild.easyblocks.generic.configuremake import ConfigureMake
from easybuild.framework import easyblock
from easybuild.tools.config import build_option
from easybuild.tools.run import run_shell_cmd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import over_mpi  # noqa: E402 - EasyBuild loads this file by its path, without its folder
from easyblocks import mvapich_gpu  # noqa: E402

# The function that EasyBuild's easyblocks write files with, as it was before `start_hook`.
_write_file = easyblock.write_file


def start_hook(*_args, **_kwargs):
    """Called by EasyBuild once, before anything else."""
    easyblock.write_file = write_file
    ConfigureMake.obtain_config_guess = no_config_guess
    ConfigureMake.determine_build_and_host_type = build_and_host_as_given
    stand_in_for_driver()
    robot_path = build_option("robot_path")
    if robot_path:
        there = {path.name: path for path in HERE.rglob("*.eb")}
        robot_path.append(write(there, over_mpi.names_over(there, all_toolchains(there))))
        here = [at for at, one in enumerate(robot_path) if Path(one).resolve() == HERE / "system"]
        if here and (versions := of_the_distribution()):
            names = over_mpi.names_at(there, versions)
            robot_path.insert(here[0], write(there, names, versions))


def stand_in_for_driver():
    """Let programs start where the MPI of the tree that is built is for CUDA, and no driver is."""
    file = Path(os.environ.get("MVSTACK_BUILDS_IN", ""), "rendered", "plan.json")
    plan = json.loads(file.read_text()) if file.is_file() else {}
    for mpi in plan.get("mpi", []):
        told = mpi["parameters"]
        if told.get("gpu") == "cuda" and not mvapich_gpu.has_driver("cuda"):
            os.environ.update(mvapich_gpu.without_driver(told.get("gpu_root"), tempfile.mkdtemp()))


def of_the_distribution():
    """The versions of this machine's GCC and libraries; {} where there is no GCC."""
    gcc = ask("gcc -dumpfullversion")
    asked = {name: ask(f"pkg-config --modversion {pc}") for name, pc in over_mpi.LIBRARIES.items()}
    return (
        over_mpi.with_gcc(gcc, **{one: said for one, said in asked.items() if said}) if gcc else {}
    )


def ask(command):
    """What `command` prints; empty when it fails."""
    result = run_shell_cmd(command, fail_on_error=False, hidden=True, in_dry_run=True)
    return result.output.strip() if result.exit_code == 0 else ""


def all_toolchains(there):
    """Those of every MPI product, such as `mpfoss-2026.11-ucx`."""
    return [
        name.removesuffix(".eb")
        for kinds in over_mpi.TOOLCHAINS.values()
        for chain in kinds.values()
        for name in there
        if name.startswith(f"{chain}-")
    ]


def write(there, names, versions=None):
    """Write the easyconfigs `names`, each with its source, into a folder of their own; its path."""
    folder = Path(tempfile.mkdtemp())
    for name, source in names.items():
        text = over_mpi.text_over(there[source].read_text(), source, name, versions)
        (folder / name).write_text(f"# What {source} says, over another MPI or compiler\n{text}")
    return str(folder)


def write_file(path, data, append=False, forced=False, **options):
    """EasyBuild's function of this name; whole or not at all when `path` is a module file."""
    skipped = build_option("extended_dry_run") and not forced
    if append or skipped or not is_module(path):
        return _write_file(path, data, append=append, forced=forced, **options)
    path = Path(path)
    for left_over in path.parent.glob(f".{path.name}.*.new"):
        left_over.unlink(missing_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    _write_file(str(new), data, append=False, forced=forced, **options)
    # The programs and libraries first: after a power cut, a module on the disk means that what it
    # points to is there too.
    os.sync()
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return None


def no_config_guess(self, *_args, **_kwargs):
    """In place of EasyBuild's download of config.guess."""
    return None


def build_and_host_as_given(self):
    """What the easyconfig says for --build and --host; else configure finds out by itself."""
    return self.cfg.get("build_type"), self.cfg.get("host_type")


def is_module(path):
    """Whether the file is a Lua module file (the only kind that this stack writes)."""
    return str(path).endswith(".lua")
