"""Runs inside Spack (`spack python`): asks the recipe of mvapich2, without the solver; prints JSON.

The words after the file: a folder with a file attrutil.c, and programs that answer as mpichversion.
"""

import json
import os
import sys
import types
from pathlib import Path

import spack.repo
from spack.spec import Spec
from spack.util.environment import EnvironmentModifications

folder, *programs = sys.argv[-3:]
recipe = spack.repo.PATH.get_pkg_class("mvapich2")


def refusal(text):
    """The messages of all conflicts that refuse a spec."""
    spec = Spec(text)
    said = []
    for when, conflicts in recipe.conflicts.items():
        if spec.satisfies(when):
            said += [message for refused, message in conflicts if spec.satisfies(refused)]
    return said


def with_gcc(version, name):
    """What flag_handler adds with one gcc."""
    number = int(version)

    def satisfies(text):
        # Of the form %c=gcc@14:, or of another compiler
        return "gcc" in text and number >= int(text.rpartition("@")[2].rstrip(":"))

    spec = types.SimpleNamespace(satisfies=satisfies)
    package = types.SimpleNamespace(spec=spec, optimisation="O2")
    return recipe.flag_handler(package, name, ["-g"])[0]


def build_environment(version):
    """Variables that the build has with one gcc."""
    spec = Spec("mvapich2@=2.3.7")
    spec._mark_concrete()
    package = recipe(spec)
    package.spec = types.SimpleNamespace(
        satisfies=lambda text: int(version) >= int(text.rpartition("@")[2].rstrip(":"))
    )
    env = EnvironmentModifications()
    package.setup_build_environment(env)
    made = {"F90": "set", "F90FLAGS": "set"}
    env.apply_modifications(made)
    return made


def patched():
    """attrutil.c as the recipe changes it."""
    code = Path(folder, "src", "mpi", "attr", "attrutil.c")
    code.parent.mkdir(parents=True)
    Path(folder, "attrutil.c").replace(code)
    os.chdir(folder)
    spec = types.SimpleNamespace(satisfies=lambda text: False)  # nemesis has its own files
    recipe.patch(types.SimpleNamespace(spec=spec))
    return code.read_text()


print(
    json.dumps(
        {
            "namespace": recipe.namespace,
            "versions": sorted(str(version) for version in recipe.versions),
            "provides": [str(spec) for specs in recipe.provided.values() for spec in specs],
            "refusals": {
                text: refusal(text)
                for text in (
                    "mvapich2 fabrics=sock +cuda",
                    "mvapich2 fabrics=psm2 +cuda",
                    "mvapich2 fabrics=mrail +multi_subnet ~rdma_cm",
                    "mvapich2 fabrics=mrail +cuda +multi_subnet +rdma_cm",
                )
            },
            "cflags": {version: with_gcc(version, "cflags") for version in ("10", "14", "15")},
            "fflags": with_gcc("15", "fflags"),
            "environment": {version: build_environment(version) for version in ("9", "12", "14")},
            "patched": patched(),
            "found": [
                [
                    recipe.determine_version(program),
                    recipe.determine_variants([program], recipe.determine_version(program)),
                ]
                for program in programs
            ],
            "tests": sorted(name for name in dir(recipe) if name.startswith("test_")),
        }
    )
)
