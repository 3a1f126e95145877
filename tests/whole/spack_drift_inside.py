"""Runs inside a stock Spack (`spack python`): do our recipes load, and does its audit pass them?

The word after the file: {"mends": mends.yaml's rows, "specs": […]}. Prints JSON.
"""

import json
import re
import sys
from pathlib import Path

import spack.audit
import spack.concretize
import spack.error
import spack.repo
import spack.spec

OURS = ("mvapich_stack", "mvapich_stack_mends")
asked = json.loads(sys.argv[-1])
BUILTIN = spack.repo.PATH.get_repo("builtin")


def broken(name):
    """Why a recipe of ours does not load, or what it cannot mend; "" when all is well."""
    try:
        recipe = spack.repo.PATH.get_pkg_class(name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    said = [str(message) for rows in recipe.conflicts.values() for _, message in rows]
    return "".join(one for one in said if "cannot mend" in one)


def over(name, row):
    """Whether builtin's recipe has no more what a mend is for."""
    path = Path(BUILTIN.filename_for_package_name(name))
    if not path.is_file():
        return False
    text = path.read_text()
    return bool(
        (row.get("still") and not re.search(row["still"], text))
        or (row.get("without") and re.search(row["without"], text))
    )


def solved(text):
    """The root that a spec becomes; the first line that refuses it."""
    try:
        spec = spack.concretize.concretize_one(spack.spec.Spec(text))
    except spack.error.SpackError as error:
        return {"error": str(error)}
    return {"namespace": spec.namespace, "spec": spec.format("{name}{@version}{variants}")}


names = [
    f"{namespace}.{name}"
    for namespace in OURS
    for name in sorted(spack.repo.PATH.get_repo(namespace).all_package_names())
]
broke = {name: why for name in names if (why := broken(name))}
whole = [name.partition(".")[2] for name in names if name not in broke]
findings = [
    f"{tag}: {error.summary} {error.details}"
    for tag, errors in spack.audit.run_group("packages", pkgs=whole)
    for error in errors
]
print(
    json.dumps(
        {
            "names": names,
            "broke": broke,
            "audit": findings,
            "over": sorted(name for name, row in asked["mends"].items() if over(name, row)),
            "solved": {text: solved(text) for text in asked["specs"]},
        }
    )
)
