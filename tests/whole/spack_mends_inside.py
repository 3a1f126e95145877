"""Runs inside Spack (`spack python`): do our recipes load where builtin's changed? Prints JSON.

Each change is made to builtin's module in this process, then our recipe is loaded anew.
"""

import importlib
import json
import re
import sys
import types
from pathlib import Path

import spack.repo
from spack.spec import Spec
from spack_repo.builtin.build_systems.generic import Package

MENDS = spack.repo.PATH.get_repo("mvapich_stack_mends")
STACK = spack.repo.PATH.get_repo("mvapich_stack")
BUILTIN = spack.repo.PATH.get_repo("builtin")


def base_of(name):
    """The module of builtin's recipe of ``name``, and the name of its class."""
    word = spack.repo.PATH.get_pkg_class(f"mvapich_stack_mends.{name}").__name__
    return importlib.import_module(f"spack_repo.builtin.packages.{folder(name)}.package"), word


def folder(name):
    return name.replace("-", "_")


def changes(module, word):
    """Modules in the place of builtin's: nothing that loads, another class, a bare one."""

    def like(**changed):
        made = types.ModuleType(module.__name__)
        kept = {key: value for key, value in vars(module).items() if key != word}
        vars(made).update({**kept, **changed})
        return made

    yield "gone", None
    yield "renamed", like(Renamed=getattr(module, word))
    bare = type(word, (Package,), {"__module__": module.__name__, "__doc__": "bare"})
    yield "bare", like(**{word: bare})
    without = {key: None for key in vars(module) if key.endswith("Builder")}
    made = like(**{word: getattr(module, word)})
    for key in without:
        delattr(made, key)
    yield "without builders", made


def loaded(name, word):
    """How our recipe loads now: "" and the refusals that it brings, or the error."""
    ours = f"spack_repo.mvapich_stack_mends.packages.{folder(name)}.package"
    sys.modules.pop(ours, None)
    try:
        found = getattr(importlib.import_module(ours), word)
        said = [str(m) for rows in found.conflicts.values() for _, m in rows]
        return {"error": "", "said": [one for one in said if "cannot mend" in one]}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}", "said": []}


def fuzzed(name):
    module, word = base_of(name)
    found = {"as it is": loaded(name, word)}
    for what, changed in changes(module, word):
        sys.modules[module.__name__] = changed
        found[what] = loaded(name, word)
    sys.modules[module.__name__] = module
    # What the mends themselves take of builtin beside its recipes.
    rocm, mend = "spack_repo.builtin.build_systems.rocm", "mvapich_stack_mends.build_systems.mend"
    kept, bare = sys.modules[rocm], types.ModuleType(rocm)
    bare.ROCmPackage = type("ROCmPackage", (Package,), {"__module__": rocm})
    for what, changed in (("rocm gone", None), ("rocm bare", bare)):
        sys.modules[rocm] = changed
        sys.modules.pop(f"spack_repo.{mend}", None)
        found[what] = loaded(name, word)
    sys.modules[rocm] = kept
    sys.modules.pop(f"spack_repo.{mend}", None)
    loaded(name, word)
    return found


def text_of(name):
    """Builtin's recipe of ``name`` in words."""
    return Path(BUILTIN.filename_for_package_name(name)).read_text()


def hashes(name):
    """The hash that goes into a spec before and after an edit of builtin's recipe."""
    recipe = spack.repo.PATH.get_pkg_class(f"mvapich_stack_mends.{name}")
    package = recipe(Spec(f"mvapich_stack_mends.{name}"))
    base = sys.modules[f"spack_repo.builtin.packages.{folder(name)}.package"]
    kept = base.__file__
    before = package.content_hash()
    base.__file__ = __file__  # other bytes
    after = package.content_hash()
    base.__file__ = kept
    return [before, after]


asked = json.loads(sys.argv[-1])
names = sorted(MENDS.all_package_names())
print(
    json.dumps(
        {
            "mends": names,
            "stack": sorted(STACK.all_package_names()),
            "shadowed": [one for one in STACK.all_package_names() if BUILTIN.exists(one)],
            "fuzzed": {one: fuzzed(one) for one in names if one not in asked["own"]},
            "hashes": {one: hashes(one) for one in ("petsc", "esmf")},
            "over": [
                name
                for name, row in asked["mends"].items()
                if (row.get("still") and not re.search(row["still"], text_of(name)))
                or (row.get("without") and re.search(row["without"], text_of(name)))
            ],
        }
    )
)
