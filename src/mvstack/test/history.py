"""Figures of a run held against the earlier ones of the same machine: what became slower?

A figure with a reference is judged by that. All others have nothing but what the machine did
before, in this release or an earlier one, with the same product and device of any version.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
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
    return list(_read(tree.parents[1].glob(f"*/{tree.name}/records/results/*.json")))


def _read(paths: Iterable[Path]) -> Iterator[Json]:
    for path in sorted(paths):
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and isinstance(found.get("cases"), list):
            yield found


def slower(results: Json, earlier: list[Json]) -> list[dict[str, str]]:
    """Figures without a reference that are worse than all of ``earlier``: what, and why.

    Worse counts from MARGIN beyond the worst earlier value, and from as much more as the earlier
    values differ among themselves: a shared machine's figures swing, those of a node of its own
    do not.
    """
    before: dict[Key, list[float]] = {}
    for run in earlier:
        for key, value, _, _ in _figures(run):
            before.setdefault(key, []).append(value)
    found = []
    for key, value, title, referred in _figures(results):
        past = before.get(key, [])
        if referred or len(past) < ENOUGH:
            continue
        # as times: more is worse
        turned = [one if key[4] in LESS_IS_BETTER else 1 / one for one in (value, *past)]
        now, best, worst = turned[0], min(turned[1:]), max(turned[1:])
        if now > worst * max(1 + MARGIN, worst / best):
            low, high = min(past), max(past)
            name = key[2] if key[3] is None else f"{key[2]} of {key[3]} bytes"
            why = (
                f"{name} is {value:g} {key[4]}; {len(past)} earlier runs had {low:g} to {high:g} "
                f"{key[4]}"
            )
            found.append({"what": title, "why": why})
    return found


def _figures(run: Json) -> Iterator[tuple[Key, float, str, bool]]:
    """Each figure of a check that passed: its key, its value, whose it is, is it referred to?"""
    for case in run["cases"]:
        if not isinstance(case, dict) or case.get("result") != "pass":
            continue
        mpi = str(case.get("mpi", ""))
        build = re.sub(r"/[\d.]+(rc\d*)?", "", mpi)  # mvapich/4.1-ucx: mvapich-ucx
        benchmark = str(case.get("benchmark", ""))
        for row in case.get("figures") or []:
            value = row.get("value")
            if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
                continue
            key = (f"{case.get('check')} {benchmark}", build, row["name"], row["size"], row["unit"])
            yield key, float(value), f"{case.get('check')} with {mpi}", row["reference"] is not None
