"""The compilers of the machine."""

import re

from mvstack.discover.machine import Compiler, Machine
from mvstack.discover.view import View

SUFFIXES = ("", *(f"-{n}" for n in range(20, 6, -1)))
"""gcc, gcc-20 … gcc-7: the names under which distributions install GCC side by side."""

OTHERS = {
    "clang": "clang",
    "amdclang": "amdclang",
    "oneapi": "icx",
    "nvhpc": "nvc",
    "cuda": "nvcc",
    "hip": "hipcc",
}
"""Name of a compiler, and its command."""

TOOLS = [f"{base}{suffix}" for base in ("gcc", "g++", "gfortran") for suffix in SUFFIXES]
TOOLS += OTHERS.values()


def read_compilers(view: View, machine: Machine) -> None:
    """The GCC to build with (None: there is none that is known) and all compilers found."""
    if not view.tools_known:
        machine.found("compiler", "no tool's output is known for this root")
        return
    gccs = [gcc for gcc in (_gcc(view, suffix, machine) for suffix in SUFFIXES) if gcc]
    best = next((gcc for gcc in gccs if gcc.complete), gccs[0] if gccs else None)
    # A toolset off PATH is told of, never taken: its exact version is not known here.
    others = [other for other in (_other(view, *row) for row in OTHERS.items()) if other]
    others = [*_toolsets(view), *others]
    without = "; ".join(["no gcc on PATH", *(f"{one.path} is {one.name}" for one in others)])
    machine.found("compiler", f"{best.path} --version" if best else without, best)
    if best is not None:
        for what, path in (("C++ (g++)", best.cxx), ("Fortran (gfortran)", best.fortran)):
            if not path:
                machine.note(f"gcc {best.version} at {best.path} comes without {what}")
        if not best.path.endswith("gcc"):
            machine.note(
                f"{best.path} is taken, and builders call gcc, g++ and gfortran: link these to it "
                "in DIR/bin, give `prefix: DIR` to the compiler, and put DIR/bin first on PATH"
            )
        if gccs[0] is not best:
            machine.note(
                f"{gccs[0].path} ({gccs[0].version}) has no C++ or no Fortran beside it: "
                f"{best.path} ({best.version}) was taken"
            )
    machine.compilers = [*gccs, *others]


def _gcc(view: View, suffix: str, machine: Machine) -> Compiler | None:
    version = _gnu_version(view, f"gcc{suffix}")
    if not version:
        if view.ask(f"gcc{suffix} --version") is not None:
            machine.note(f"gcc{suffix} is here and is no GNU compiler that tells its version")
        return None
    companions = {}
    for tool in ("g++", "gfortran"):
        other = _gnu_version(view, f"{tool}{suffix}")
        companions[tool] = _path(view, f"{tool}{suffix}") if other == version else ""
        if other and other != version:
            machine.note(f"{tool}{suffix} is {other}, gcc{suffix} is {version}: not of one set")
    return Compiler(
        name="gcc",
        version=version,
        path=_path(view, f"gcc{suffix}"),
        cxx=companions["g++"],
        fortran=companions["gfortran"],
    )


def _gnu_version(view: View, tool: str) -> str:
    """The version in ``gcc (Debian 12.2.0-14) 12.2.0``: what follows the brackets."""
    said = view.say(f"{tool} --version")
    match = re.match(r"(?:\S*gcc|\S*g\+\+|GNU Fortran)\S* \(.*\) ([0-9]+(?:\.[0-9]+){1,3})", said)
    return match[1] if match else ""


def _path(view: View, tool: str) -> str:
    """The tool's path; its bare name in a captured root that does not say."""
    return view.which(tool) or tool


def _toolsets(view: View) -> list[Compiler]:
    """Red Hat's gcc-toolset-N, which are off PATH; the folder names the major version."""
    return [
        Compiler(name="gcc", version=match[1], path=path)
        for name in reversed(view.names("/opt/rh"))
        if (match := re.fullmatch(r"(?:gcc-toolset|devtoolset)-([0-9]{1,3})", name))
        and view.exists(path := f"/opt/rh/{name}/root/usr/bin/gcc")
    ]


def _other(view: View, name: str, command: str) -> Compiler | None:
    text = view.say(f"{command} --version")
    match = re.search(r"(?:V|[Vv]ersion:?\s+|release\s+|\s)([0-9]+\.[0-9][0-9.]*)", text)
    if match is None:
        return None
    return Compiler(name=name, version=match[1].rstrip("."), path=_path(view, command))
