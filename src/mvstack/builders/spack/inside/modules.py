"""Inside Spack (`spack -e DIR python modules.py REQUEST ANSWER`): what modules must set.

REQUEST  {"parts": [{"key", "hash", "over": hash of the MPI or "", "transport": package or ""}]}
ANSWER   {key: {"prefix", "homepage", "changes": [[what, name, value, separator], …],
          "transport": [folder, …]}}

A module sets what its own package and those that it runs with need. What the MPI's own module sets
is left out of those over it. ``transport`` are the folders of the transport library's files.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import spack.build_environment
import spack.environment
import spack.util.environment as changes
from spack.context import Context

# What EasyBuild's modules set too, where the folder is there and not empty.
INSPECTED = {
    "": ["CMAKE_PREFIX_PATH"],
    "bin": ["PATH"],
    "include": ["CPATH"],
    "lib": ["LD_LIBRARY_PATH", "LIBRARY_PATH"],
    "lib64": ["LD_LIBRARY_PATH", "LIBRARY_PATH"],
    "lib/pkgconfig": ["PKG_CONFIG_PATH"],
    "lib64/pkgconfig": ["PKG_CONFIG_PATH"],
    "share/pkgconfig": ["PKG_CONFIG_PATH"],
    "share/man": ["MANPATH"],
    "share": ["XDG_DATA_DIRS"],
}
WORDS = {
    "SetEnv": "setenv",
    "UnsetEnv": "unsetenv",
    "PrependPath": "prepend_path",
    "AppendPath": "append_path",
    "RemovePath": "remove_path",
}
IGNORED = ("PruneDuplicatePaths", "DeprioritizeSystemPaths")  # Lmod does this itself


def main(request_file: str, answer_file: str) -> None:
    """Answer one request."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    environment = spack.environment.active_environment()
    by_hash = {spec.dag_hash(): spec for spec in environment.all_specs()}
    answer = {}
    for part in request["parts"]:
        spec = by_hash[part["hash"]]
        mpi = by_hash.get(part["over"])
        below = {one.dag_hash() for one in mpi.traverse()} if mpi else set()
        answer[part["key"]] = {
            "prefix": str(spec.prefix),
            "homepage": str(getattr(spec.package, "homepage", "") or ""),
            "changes": [row(one) for one in modifications(spec, below) if wanted(one)],
            "transport": folders(spec, part["transport"]) if part["transport"] else [],
        }
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def modifications(spec: Any, below: set[str]) -> Any:
    """All changes of the environment for ``spec``, without what the MPI below it does."""
    spack.build_environment.SetupContext(spec, context=Context.RUN).set_all_package_py_globals()
    env = changes.EnvironmentModifications()
    runs = [
        one
        for one in spec.traverse(deptype="run", order="topo")
        if one.dag_hash() not in below and one.name not in ("gcc", "gcc-runtime")
    ]
    if spec not in runs:  # the compiler itself
        runs.insert(0, spec)
    for one in reversed(runs):
        env.extend(changes.inspect_path(one.prefix, INSPECTED, exclude=changes.is_system_path))
        for dependency in one.dependencies(deptype=("link", "run")):
            if dependency.dag_hash() not in below:
                dependency.package.setup_dependent_run_environment(env, one)
        one.package.setup_run_environment(env)
    return env


def wanted(change: Any) -> bool:
    """Whether a module makes this change: not one that puts the system's own folders first.

    A change of a kind that a module cannot make must not be lost silently.
    """
    kind = type(change).__name__
    if kind not in WORDS and kind not in IGNORED:
        raise ValueError(f"a module cannot say {kind} {change.name}")
    paths = WORDS.get(kind, "").endswith("_path")
    return kind in WORDS and not (paths and changes.is_system_path(change.value))


def row(change: Any) -> list[str]:
    """One change as plain data."""
    what, value = WORDS[type(change).__name__], str(getattr(change, "value", ""))
    if what.endswith("_path"):
        value = os.path.normpath(value)
    return [what, change.name, value, getattr(change, "separator", ":")]


def folders(spec: Any, name: str) -> list[str]:
    """The folders with the libraries of the package ``name`` below ``spec``."""
    found = [one for one in spec.traverse(deptype="link", root=False) if one.name == name]
    if not found:
        return []
    try:
        return [str(folder) for folder in found[0].libs.directories]
    except Exception:  # a package whose libraries Spack cannot name: the usual folders
        return [f"{found[0].prefix}/lib64", f"{found[0].prefix}/lib"]


if __name__ == "__main__":
    main(*sys.argv[1:3])
