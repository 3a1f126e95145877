"""The module that opens a tree, and the one line that makes `module` work in any bash."""

import os
import platform
import re
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

from mvstack.plan.types import Plan
from mvstack.render.templates import template
from mvstack.support.errors import Missing
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA
from mvstack.support.processes import run

#: Where Debian, EPEL and SUSE put it.
DISTRIBUTIONS_LMOD = "/usr/share/lmod/lmod/libexec/lmod"
OLDEST_LMOD = 8

#: What users look with at a node of theirs, and what that stands on.
DOCTOR = (
    "modulefiles/mpi_doctor.py",
    "tests/reframe/fabric.py",
    "tests/reframe/src/identity.c",
)


def publish(plan: Plan) -> None:
    """Write the Core modules, ``init/bash`` and mpi-doctor, each whole or not at all.

    Raises Missing.
    """
    tree, lmod = Path(plan.tree), Path(lmod_command(plan.root)).parents[1]
    install_doctor(tree)
    install_guard(plan)
    write_atomically(core_file(tree, plan.release), template("mvapich-stack.lua", plan=plan))
    write_atomically(tree / "init" / "bash", template("init.bash", tree=tree, lmod=lmod))


def install_doctor(tree: Path) -> None:
    """Put the command mpi-doctor into ``bin`` of ``tree``, and what it needs beside it."""
    for source in (DATA / name for name in DOCTOR):
        text = source.read_text()
        place = tree / "share" / "mpi-doctor" / source.name
        write_atomically(place, text, 0o755 if text.startswith("#!") else 0o644)
        if text.startswith("#!"):
            command = tree / "bin" / source.stem.replace("_", "-")
            command.parent.mkdir(exist_ok=True)
            with suppress(FileExistsError):
                command.symlink_to(os.path.relpath(place, command.parent))


def install_guard(plan: Plan) -> None:
    """Compile the library of the module launch-guard and write the module.

    Where this machine has no compiler (all came from a cache) there is no such module.
    """
    tree, compiler = Path(plan.tree), shutil.which("cc") or shutil.which("gcc")
    library, source = tree / "lib" / "launch-guard.so", DATA / "modulefiles" / "launch_guard.c"
    library.parent.mkdir(exist_ok=True)
    partial = library.with_suffix(".partial")
    if compiler and run([compiler, "-O2", "-shared", "-fPIC", "-o", partial, source, "-ldl"]).ok:
        partial.replace(library)
        # not below modules/: what stands there has a node of the plan, and goes with it
        module = tree / "init" / "modules" / "launch-guard" / f"{plan.release}.lua"
        write_atomically(module, template("launch-guard.lua", plan=plan, guard=str(library)))


def core_file(tree: Path, release: str) -> Path:
    """The module that opens a tree; it is there when an installation has come to its end."""
    return tree / "modules" / "Core" / "mvapich-stack" / f"{release}.lua"


def withdraw(*files: Path) -> None:
    """Take modules away before what they name is built anew, so that nobody loads it meanwhile."""
    for file in files:
        file.unlink(missing_ok=True)


def own_lmod(root: Path | str) -> Path:
    """Where `mvstack install` builds Lmod for this kind of processor; a root may serve several."""
    return Path(root) / "lmod" / platform.machine()


def lmod_here(root: Path | str) -> str:
    """Lmod's command: that below ``root``, the shell's, the distribution's; "" without one.

    Older ones than EasyBuild takes are none: Debian 11 has 6.6.
    """
    own = own_lmod(root) / "lmod" / "lmod" / "libexec" / "lmod"
    places = (str(own), os.environ.get("LMOD_CMD", ""), DISTRIBUTIONS_LMOD)
    there = (one for one in places if one and Path(one).is_file())
    return next((one for one in there if _major(one) >= OLDEST_LMOD), "")


@cache
def _major(lmod: str) -> int:
    """The first number of an Lmod's version; 0 where it does not run, or does not say."""
    try:
        said = run([lmod, "bash", "--version"], limit=30)
    except OSError:
        return 0
    found = re.search(r"Version (\d+)\.", said.errors + said.text)
    return int(found[1]) if found else 0


def lmod_command(root: Path | str) -> str:
    """The same. Raises Missing where there is none."""
    if found := lmod_here(root):
        return found
    raise Missing(
        f"there is no Lmod {OLDEST_LMOD} or newer, or LMOD_CMD does not name it",
        todo="install it (`apt-get install lmod`; Lmod of EPEL; lua-lmod of SUSE), or load your "
        "site's Lmod first; `mvstack install` builds one if need be",
    )
