"""A fabric as a page: its racks, each with its switches, its nodes, and what is wrong there."""

import re
from collections import defaultdict

from mvstack.fabric.compare import Comparison, Fault
from mvstack.fabric.judge import FaultPolicy
from mvstack.render.templates import template


def page(seen: Comparison, faults: list[Fault], rules: FaultPolicy, title: str) -> str:
    """HTML in one file, without scripts: by racks, or by switches where no rack is described.

    Those that have errors come first. An error of a link is shown at both ends.
    """
    told = defaultdict[str, list[Fault]](list)
    for fault in faults:
        for name in set(re.split(r"[\s:,]+", fault.place)) & (seen.switches | seen.nodes):
            told[name].append(fault)
    racks, groups = seen.plan.fabric.racks, defaultdict[str, list[str]](list)
    for name in sorted(seen.switches, key=lambda one: (racks.get(one, len(racks)), one)):
        groups[str(racks.get(name, "")) if racks else name].append(name)
    nodes = {name: sorted(seen.plan.near.get(name, set()) & seen.nodes) for name in seen.switches}
    below = {key: [x for one in its for x in nodes[one]] for key, its in groups.items()}
    errors = {
        key: list(dict.fromkeys(x for one in (*its, *below[key]) for x in told.get(one, ())))
        for key, its in groups.items()
    }
    links = {pair: len(seen.found.links.get(pair, ())) for pair in seen.plan.links}
    placed = {one for some in told.values() for one in some}
    return template("fabric/page.html", title=title, seen=seen, faults=faults, rules=rules,
                    racks=racks, groups=groups, nodes=nodes, below=below, errors=errors, told=told,
                    elsewhere=[one for one in faults if one not in placed], links=links,
                    there=set(seen.found.called.values()))  # fmt: skip
