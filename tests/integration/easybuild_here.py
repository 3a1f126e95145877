"""EasyBuild as the tests run it: the real `eb` with this repository's files, into a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
EASYCONFIGS = TOP / "easyconfigs"
# those over an MPI that a site has are complete in a plan alone, which writes the MPI's easyconfig
OF_A_SITE = ("gmvplus", "mvpfoss")
RECIPES = sorted(one for one in EASYCONFIGS.rglob("*.eb") if not one.name.startswith(OF_A_SITE))
LMOD = Path("/usr/share/lmod/lmod/init/bash")


def needs() -> None:
    """Skip, with the reason, where the real programs are not installed."""
    missing = [name for name in ("gcc", "g++", "gfortran") if not shutil.which(name)]
    if not (Path(sys.prefix) / "bin" / "eb").exists():
        missing.append("eb in the Python environment")
    if not LMOD.exists():
        missing.append(f"Lmod ({LMOD})")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    version = subprocess.run(
        ["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True
    )
    if version.stdout.strip() != "12.2.0":
        pytest.skip(f"the system's GCC is {version.stdout.strip()}, the easyconfigs are for 12.2.0")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`line` run by a bash that has `module`; the interpreter's folder is first on PATH."""
    foreign = ("EASYBUILD_", "LMOD", "MODULE", "PYTHON")
    env = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    env["PATH"] = f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    env["EB_PYTHON"] = sys.executable
    return subprocess.run(
        ["bash", "-c", f"source {LMOD}; {line}"],
        env=env | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )


def eb(root: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real `eb`, installing below `root`, with the options that the stack gives it."""
    options = [
        f"--prefix={root}",
        f"--installpath={root}",
        f"--buildpath={root}/build",
        f"--sourcepath={root}/sources",
        f"--robot={EASYCONFIGS / 'system'}:{EASYCONFIGS}",
        f"--include-easyblocks={EASYCONFIGS}/easyblocks/*.py",
        f"--include-toolchains={EASYCONFIGS}/toolchains/*.py,{EASYCONFIGS}/toolchains/*/*.py",
        f"--include-module-naming-schemes={EASYCONFIGS}/naming/*.py",
        "--module-naming-scheme=MvapichStackMNS",
        "--modules-tool=Lmod",
        "--module-syntax=Lua",
        "--suffix-modules-path=",
        "--disable-rpath",
        f"--hooks={EASYCONFIGS}/hooks.py",
        "--allow-use-as-root-and-accept-consequences",
    ]
    words = " ".join(f"'{word}'" for word in [*options, *map(str, arguments)])
    return shell(f"exec eb {words}", **environment)
