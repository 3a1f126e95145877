"""Trees for the checks to run on: an installed one, Debian's MPICH dressed as one, or an empty one.

Each function returns a plan as ``mvstack install`` writes it, so that the checks run
as for a user.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[1] / "data" / "validate"
LMOD = Path("/usr/share/lmod/lmod/init/bash")


def plan_of(tree: Path, **mpi: Any) -> dict[str, Any]:
    """A plan for one MPI build in ``tree``."""
    entry = {
        "product": "mpich",
        "version": "4.0.2",
        "device": "ch4:ucx",
        "module": "mpich/4.0.2-ucx",
        "fabric": "shm",
        "gpu": "none",
        "pmi": "simple",
        "launcher": "hydra",
        "launch": "mpiexec -n {ranks} {program}",
        "transport": {"library": "ucx", "provision": "external", "variants": ""},
        "believe": {
            "library_version": r"MPICH Version:\s+4\.0\.2",
            "device": "ch4:ucx",
            "provider": [],
            "soname": "libmpi.so.12",
        },
        "why": "",
        "source": "",
    }
    return {
        "system": "local",
        "partition": "node",
        "release": "2026.11",
        "builder": "easybuild",
        "tree": str(tree),
        "cores": 2,
        "job": {},
        "mpi": [entry | mpi],
        "packages": [],
    }


def _module(tree: Path, name: str, *lines: str) -> None:
    path = tree / "modules" / "Core" / f"{name}.lua"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def empty_tree(tree: Path) -> dict[str, Any]:
    """Modules that can be loaded and bring nothing: for what needs ReFrame and Lmod alone."""
    _module(tree, "mvapich-stack/2026.11")
    _module(tree, "mpich/4.0.2-ucx", 'family("mpi")')
    return plan_of(tree)


def installed_plan() -> dict[str, Any] | None:
    """The plan of the newest tree that `mvstack install` made for this machine, if there is one.

    That below MVSTACK_TEST_ROOT, of whatever system, goes before others.
    """
    places = [
        (os.environ.get("MVSTACK_TEST_ROOT", ""), "*/*"),
        ("/opt/mvapich-stack", "*/local"),
        ("~/.local/share/mvapich-stack", "*/local"),
    ]
    plans = [
        path
        for root, tree in places
        if root
        for path in sorted(Path(root).expanduser().glob(f"{tree}/records/plan.json"))[::-1]
    ]
    for path in plans:
        plan: dict[str, Any] = json.loads(path.read_text())
        # Half-installed trees have a plan too, and no module yet.
        if all(
            list(Path(plan["tree"], "modules").rglob(f"{m['module']}.lua")) for m in plan["mpi"]
        ):
            return plan
    return None


def debian_plan(tree: Path) -> dict[str, Any] | None:
    """Debian's MPICH copied below ``tree`` with modules over it; None where it is not installed."""
    libraries = Path("/usr/lib/x86_64-linux-gnu")
    if not (Path("/usr/bin/mpicc.mpich").exists() and (libraries / "libmpich.so.12").exists()):
        return None
    prefix = tree / "software" / "mpich"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    for name in ("mpicc.mpich", "mpicxx.mpich", "mpifort.mpich", "mpiexec.hydra"):
        shutil.copy(f"/usr/bin/{name}", prefix / "bin" / name.split(".")[0])
    (prefix / "bin" / "mpirun").symlink_to("mpiexec")
    shutil.copy("/usr/bin/hydra_pmi_proxy", prefix / "bin")
    for name in ("libmpich.so.12", "libmpichfort.so.12"):
        shutil.copy(libraries / name, prefix / "lib" / name)
    (prefix / "lib" / "libmpi.so.12").symlink_to("libmpich.so.12")
    said = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True).stdout
    device = next(line.split()[-1] for line in said.splitlines() if "Device" in line)
    # with its own compositions MPICH before 4.2 dies in a reduce in place (pmodels/mpich#6540)
    variable = "MPIR_CVAR_DEVICE_COLLECTIVES"
    _module(tree, "mvapich-stack/2026.11")
    _module(
        tree,
        "mpich/4.0.2-ucx",
        'family("mpi")',
        f'prepend_path("PATH", "{prefix}/bin")',
        f'prepend_path("LD_LIBRARY_PATH", "{prefix}/lib")',
        f'setenv("{variable}", "none")',
    )
    plan = plan_of(tree)
    plan["mpi"][0]["environment"] = {variable: {"value": "none"}}
    plan["mpi"][0]["device"] = plan["mpi"][0]["believe"]["device"] = device
    return plan


def mpi_here(folder: Path) -> dict[str, Any]:
    """The plan of an MPI installed here, otherwise of Debian's in ``folder``; skips without one.

    MVSTACK_TEST_MPI names the module of the MPI to take, where the tree has several.
    """
    if not LMOD.exists():
        pytest.skip("Lmod is not installed (apt: lmod)")
    plan = installed_plan() or debian_plan(folder)
    if plan is None:
        pytest.skip("no MPI: neither an installed tree nor Debian's (apt: mpich libmpich-dev)")
    if module := os.environ.get("MVSTACK_TEST_MPI", ""):
        first = [one for one in plan["mpi"] if one["module"] == module]
        assert first, f"MVSTACK_TEST_MPI={module} is not in {plan['tree']}"
        plan["mpi"] = first + [one for one in plan["mpi"] if one not in first]
    return plan


def over_a_library(plan: dict[str, Any]) -> str:
    """The name of the library beneath the first MPI; skips where that is in libmpi itself."""
    transport = plan["mpi"][0]["transport"]
    if transport.get("provision") == "embedded":
        pytest.skip("the libfabric is in libmpi itself: it cannot be missing, or another")
    return str(transport["library"])


def without_transport(plan: dict[str, Any], prefix: Path, folder: Path) -> dict[str, Any]:
    """The MPI in ``prefix``, copied with its modules, needs a UCX or libfabric that is nowhere."""
    library = over_a_library(plan)
    old, new = plan["tree"], folder / "lacking"
    home = new / prefix.relative_to(old)
    shutil.copytree(prefix, home, symlinks=True)
    shutil.copytree(f"{old}/modules", new / "modules", symlinks=True)
    name = {"ucx": b"libucp.so.0", "libfabric": b"libfabric.so.1"}
    needed = name[library]
    for path in (*new.glob("modules/**/*.lua"), *home.glob("bin/mpi*")):
        if path.read_bytes()[:4] != b"\x7fELF":
            path.write_bytes(path.read_bytes().replace(os.fsencode(old), os.fsencode(new)))
    libmpi = (home / "lib" / plan["mpi"][0]["believe"]["soname"]).resolve()
    held = libmpi.read_bytes()
    libmpi.write_bytes(held.replace(b"\0" + needed + b"\0", b"\0" + needed[:-1] + b"9\0"))
    return plan | {"tree": str(new)}
