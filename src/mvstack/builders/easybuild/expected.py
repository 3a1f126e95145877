"""How long builds are going to take, by how long they took before."""

import json
from collections.abc import Sequence
from pathlib import Path

from mvstack.plan.graph import Node
from mvstack.support.home import DATA
from mvstack.support.units import duration


def expected(nodes: Sequence[Node], tree: Path) -> str:
    """How long ``nodes`` take to build, and how many of them nobody has timed.

    By the last build in ``tree``, else by easyconfigs/record.jsonl, which is of two cores.
    """
    seen = {}
    for path in (DATA / "easyconfigs" / "record.jsonl", tree / "records" / "builds.jsonl"):
        for line in path.read_text().splitlines() if path.is_file() else ():
            row = json.loads(line)
            ended = row.get("result") == "built" or row.get("builder") == "easybuild"
            if ended and row["seconds"]:
                where = "" if path.parent.name == "records" else " on 2 cores"
                seen[row["package"].lower(), row["version"]] = row["seconds"], where
    known = [seen.get((node.name.lower(), node.version)) for node in nodes]
    timed = [one for one in known if one]
    if not timed:
        return "not timed before"
    total, where = sum(one[0] for one in timed), max(one[1] for one in timed)
    rest = f", and {len(nodes) - len(timed)} that were not timed" if len(timed) < len(nodes) else ""
    minutes = f"{round(total / 60)} min" if 60 <= total < 3600 else duration(max(10, total))
    return f"about {minutes}{where}{rest}"
