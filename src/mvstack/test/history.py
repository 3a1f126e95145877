"""Figures of a run held against the earlier ones of the same machine: what became slower?

A figure with a reference is judged by that. All others have nothing but what the machine did
before, in this release or an earlier one, with the same product and device of any version.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Key = tuple[str, str, str, int | None, str]

#: So many earlier runs say how much a figure varies.
ENOUGH = 5
#: What is within this part of the worst earlier value is no change, however quiet the machine.
MARGIN = 0.10
#: Units of which less is better; of all others (MB/s, Gflop/s, ns/day, GTEPS) more is.
LESS_IS_BETTER = {"us", "ms", "s", "min", "h", "seconds"}


def earlier_runs(tree: Path) -> list[Json]:
    """The results of all checks that ran here before, in this release and others.

    ``tree`` is ``<root>/<release>/<partition>``. Files that are no results are left out.
    """
    found = []
    for path in sorted(tree.parents[1].glob(f"*/{tree.name}/records/results/*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            run = json.loads(path.read_text())
            list(figures(run))
            found.append(run)
    return found


def slower(results: Json, earlier: list[Json]) -> list[dict[str, str]]:
    """Figures without a reference that are worse than all of ``earlier``: what, and why.

    Worse counts from MARGIN beyond the worst earlier value, and from as much more as the earlier
    values differ among themselves: a shared machine's figures swing, those of a node of its own
    do not.
    """
    before: dict[Key, list[float]] = {}
    for key, row, _ in (one for run in earlier for one in figures(run)):
        before.setdefault(key, []).append(row["value"])
    found = []
    for key, row, title in figures(results):
        past, unit = before.get(key, []), row["unit"]
        if row["reference"] is not None or len(past) < ENOUGH:
            continue
        # as times: more is worse
        now, *others = [one if unit in LESS_IS_BETTER else 1 / one for one in (row["value"], *past)]
        if now > max(others) * max(1 + MARGIN, max(others) / min(others)):
            of = "" if row["size"] is None else f" of {row['size']} bytes"
            was = f"{len(past)} earlier runs had {min(past):g} to {max(past):g} {unit}"
            found.append(
                {"what": title, "why": f"{row['name']}{of} is {row['value']:g} {unit}; {was}"}
            )
    return found


def figures(run: Json) -> Iterator[tuple[Key, Json, str]]:
    """Each figure of a check that passed, with what it is like and whose it is."""
    for case in (one for one in run["cases"] if one.get("result") == "pass"):
        build = re.sub(r"/[\d.]+(rc\d*)?", "", case["mpi"])  # mvapich/4.1-ucx: mvapich-ucx
        for row in case["figures"]:
            if row["value"] and math.isfinite(row["value"]) and row["value"] > 0:
                what = f"{case['check']} {case['benchmark']}"
                key = (what, build, row["name"], row["size"], row["unit"])
                yield key, row, f"{case['check']} with {case['mpi']}"
