"""Runs inside a stock Spack: solves the rows of a table one by one, and holds each to its row.

    spack python tests/whole/spack_strangers_inside.py ROWS.json ANSWERS

ANSWERS gets a line of JSON for each row when it is done: its spec, what is wrong ("" if nothing),
the answer or the refusal, and seconds.
"""

import json
import sys
import time
from pathlib import Path

import spack.concretize
import spack.config
import spack.error
import spack.spec

rows_file, answers_file = (Path(word) for word in sys.argv[-2:])


def first_reason(error):
    """The first line of a refusal that gives a reason: not the one that names what was asked."""
    lines = str(error).splitlines()
    return lines[1].strip() if len(lines) > 1 and lines[0].endswith("reasons:") else lines[0]


def wrong(row, root):
    """What the answer lacks of what the row expects."""
    if "refused" in row:
        return "it was not refused"
    lacks = [] if root.satisfies(row["is"]) else [row["is"]]
    lacks += [
        one
        for one in row.get("has", [])
        if not any(node.satisfies(one) for node in root.traverse(root=False))
    ]
    return f"the answer lacks {lacks}" if lacks else ""


def beside(site):
    """The configuration of a site that has these and lets nobody build them."""
    specs = {one: spack.spec.Spec(one).name for one in site}
    external = {one: {"spec": one, "prefix": f"/opt/{name}"} for one, name in specs.items()}
    packages = {
        name: {"buildable": False, "externals": [external[one]]} for one, name in specs.items()
    }
    return spack.config.override("packages", packages)


with answers_file.open("a") as answers:
    for row in json.loads(rows_file.read_text()):
        begun = time.time()
        try:
            with beside(row.get("site", [])):
                root = spack.concretize.concretize_one(spack.spec.Spec(row["spec"]))
            said = root.format("{namespace}.{name}{@version}{variants}")
            fault = wrong(row, root)
        except spack.error.SpackError as error:
            said = first_reason(error)
            expected = row.get("refused")
            fault = "" if expected and expected in said else f"its first line is: {said}"
        line = {"spec": row["spec"], "wrong": fault, "said": said}
        print(json.dumps({**line, "seconds": round(time.time() - begun)}), file=answers, flush=True)
