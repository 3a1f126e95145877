"""A fabric as a page: each switch with its nodes and its links to others, and what is wrong."""

import re
from typing import Any

from mvstack.fabric.compare import Comparison, Fault
from mvstack.fabric.judge import FaultPolicy
from mvstack.render.templates import template


def page(seen: Comparison, faults: list[Fault], rules: FaultPolicy, title: str) -> str:
    """HTML in one file, without scripts; switches by name, those that have errors first."""
    there, known = set(seen.found.called.values()), seen.switches | seen.nodes
    told: dict[str, list[Fault]] = {}
    for fault in faults:
        for name in set(re.split(r"[\s:]+", fault.place)) & known:
            told.setdefault(name, []).append(fault)
    switches = []
    for name in sorted(seen.switches):
        near = seen.plan.near.get(name, set())
        nodes = [
            {"name": one, "state": "missing" if one not in there else "wrong" * (one in told)}
            for one in sorted(near & seen.nodes)
        ]
        links = []
        for other in sorted(near - seen.nodes):
            one, two = sorted((name, other))
            planned, found = (x.links.get((one, two), ()) for x in (seen.plan, seen.found))
            links.append({"to": other, "planned": len(planned), "found": len(found)})
        row: dict[str, Any] = {"name": name, "nodes": nodes, "links": links}
        below = [one for node in nodes for one in told.get(node["name"], [])]
        row["faults"] = list(dict.fromkeys([*told.get(name, []), *below]))
        row["missing"] = name in seen.missing
        switches.append(row)
    switches.sort(key=lambda row: not row["faults"])
    elsewhere = [x for x in faults if not any(x in row["faults"] for row in switches)]
    return template("fabric/page.html", title=title, seen=seen, switches=switches,
                    faults=faults, elsewhere=elsewhere, rules=rules)  # fmt: skip
