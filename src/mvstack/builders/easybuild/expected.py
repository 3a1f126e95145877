"""How long builds are going to take, by how long they took before."""

import json
from collections.abc import Sequence
from pathlib import Path

from mvstack.cache.pack import builds
from mvstack.plan.graph import Node
from mvstack.support.home import DATA
from mvstack.support.units import duration

Times = dict[str, tuple[float, str]]


def times_known(tree: Path) -> Times:
    """Seconds of earlier builds and where: in ``tree`` by easyconfig, else by name and version.

    The others are of easyconfigs/record.jsonl, from a machine of two cores.
    """
    text = (DATA / "easyconfigs" / "record.jsonl").read_text()
    recorded = [row for row in map(json.loads, text.splitlines()) if row["builder"] == "easybuild"]
    times: Times = {
        f"{row['package'].lower()} {row['version']}": (row["seconds"], " on 2 cores")
        for row in recorded
        if row["seconds"]
    }
    return times | {
        key: (row["seconds"], "") for key, row in builds(tree).items() if row.get("seconds")
    }


def expected(nodes: Sequence[Node], times: Times) -> str:
    """How long ``nodes`` take to build, and how many of them nobody has timed."""
    known = [times.get(x.key) or times.get(f"{x.name.lower()} {x.version}") for x in nodes]
    timed = [one for one in known if one]
    if not timed:
        return "not timed before"
    total, where = sum(one[0] for one in timed), max(one[1] for one in timed)
    rest = f", and {len(nodes) - len(timed)} that were not timed" if len(timed) < len(nodes) else ""
    minutes = f"{round(total / 60)} min" if 60 <= total < 3600 else duration(max(10, total))
    return f"about {minutes}{where}{rest}"
