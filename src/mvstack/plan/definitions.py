"""Our code that EasyBuild runs for a node: easyblocks for an MPI, toolchain classes for packages.

Not hooks.py and the naming scheme: they say how modules are written and called, not what is built.
"""

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mvstack.plan.easyconfigs import source_of
from mvstack.plan.graph import Node
from mvstack.support import hashes
from mvstack.support.home import home

# Tables that mvapich.py imports for one product alone (its function options_of).
MPICHS, MVAPICHS = "mpich_options.py", "mvapich_options.py"
TOOLCHAINS = "easybuild.toolchains."
FROM = ast.ImportFrom
EASYBLOCK = re.compile(r"^easyblock\s*=\s*['\"](\w+)", re.M)


def definitions(folder: Path) -> Callable[[Node], str]:
    """The hash of what in ``folder`` (easyconfigs) a node is built by; "" where nothing is.

    A site's easyconfigs and easyblocks stand for those of ``folder``, as they do for EasyBuild.
    """
    places = [folder, *reversed(home().folders("easyconfigs")[:-1])]

    @cache
    def easyblocks(software: str) -> str:
        other = MVAPICHS if software == "MPICH" else MPICHS
        of_mpis = {
            path.name: path
            for place in places
            for path in (place / "easyblocks").glob("*.py")
            if path.name.startswith(("mpich", "mvapich")) and path.name != other
        }
        return hashes.of_files(of_mpis.values())

    @cache
    def classes() -> dict[str, Path]:
        """The easyblocks of ours that packages are built by: class → file."""
        return {
            node.name: path
            for place in places
            for path in sorted((place / "easyblocks").glob("*.py"))
            if not path.name.startswith(("mpich", "mvapich"))
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef)
        }

    @cache
    def files() -> dict[str, Path]:
        return {path.name: path for place in places for path in place.rglob("*.eb")}

    @cache
    def own_easyblock(name: str, easyconfig: str) -> str:
        path = source_of(easyconfig, files()) if classes() else None
        named = EASYBLOCK.findall(path.read_text()) if path else []
        block = classes().get(named[0] if named else f"EB_{name}")
        return hashes.of_files([block]) if block else ""

    @cache
    def toolchain(name: str) -> str:
        found = [one for place in places for one in _closure(place / "toolchains", f"{name}.py")]
        return hashes.of_files(found) if found else ""

    def of(node: Node) -> str:
        if node.kind not in ("mpi", "package"):
            return ""
        code = easyblocks(node.name) if node.kind == "mpi" else toolchain(_toolchain(node))
        block = own_easyblock(node.name, node.key)
        return hashes.of(code, block) if block else code

    return of


def _toolchain(node: Node) -> str:
    """``gmvapich`` of ``HPCC-1.5.0-gmvapich-2026.11-ucx.eb``."""
    return node.key.removeprefix(f"{node.name}-{node.version}-").partition("-")[0]


def _closure(folder: Path, name: str) -> list[Path]:
    """The class's file and those of ours that it imports; [] where EasyBuild has its own."""

    def below(path: Path) -> list[Path]:
        imports = (one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, FROM))
        own = (one.module for one in imports if (one.module or "").startswith(TOOLCHAINS))
        names = (str(one).removeprefix(TOOLCHAINS).replace(".", "/") for one in own)
        return [path for one in names if (path := folder / f"{one}.py").is_file()]

    return sorted(hashes.reached([one for one in [folder / name] if one.is_file()], below))
