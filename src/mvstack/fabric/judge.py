"""Counters of ports: which are faults (environments/policy/faults.yaml); metrics; jobs."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from mvstack.fabric.compare import Comparison, Fault
from mvstack.fabric.links import End
from mvstack.model.base import Reasoned, Strict, validated
from mvstack.model.text import Name, Text, Variable
from mvstack.model.yamlfile import read_yaml
from mvstack.render.templates import template
from mvstack.support.home import home


class Threshold(Reasoned):
    """A value above ``above`` is a fault; ``todo`` is what to do then."""

    above: Annotated[int, Field(ge=0)]
    todo: Text


class FaultPolicy(Strict):
    """faults.yaml: counters, the use of a link in percent, what to do about other faults.

    ``anywhere`` are names of what every fabric may have.
    """

    counters: dict[Variable, Threshold]
    use: Threshold
    kinds: dict[Name, Text]
    anywhere: list[Text]

    def todo(self, kind: str) -> str:
        """What to do about a fault."""
        rule = self.use if kind == "use" else self.counters.get(kind)
        return rule.todo if rule else self.kinds[kind]


def fault_policy() -> FaultPolicy:
    """environments/policy/faults.yaml; InvalidInput with every error of it."""
    return validated(FaultPolicy, read_yaml(home().file("policy", "faults.yaml")))


def count_faults(
    seen: Comparison, before: dict[End, dict[str, int]], seconds: float, rules: FaultPolicy
) -> Iterator[Fault]:
    """Counters above their thresholds by what came since ``before``, ``seconds`` ago if not 0."""
    for link in seen.found.fabric.links:
        nodes, place = seen.meeting(seen.found.pair(link)), seen.found.say(link)
        for end in link.ends:
            then, words = before.get(end, {}), 0
            for name, value in seen.found.fabric.counters.get(end, {}).items():
                came = value - then.get(name, 0)
                came = value if came < 0 else came  # somebody cleared it
                rule = rules.counters.get(name)
                if rule and came > rule.above:
                    where = "{} port {}".format(*seen.found.at(end))
                    says = f"{name} of {where} is {came}, above {rule.above}: {rule.why}"
                    yield Fault(name, place, says, nodes)
                if name in ("PortXmitData", "PortRcvData"):  # in words of four bytes
                    words = max(words, came)
            use = 3.2e-6 * words / seconds / link.gbps if seconds and link.gbps else 0
            if use > rules.use.above:
                says = f"{use:.0f} % is used, above {rules.use.above}: {rules.use.why}"
                yield Fault("use", place, says, nodes)


def metrics(seen: Comparison, faults: list[Fault]) -> str:
    """Prometheus' text format, for the textfile collector of node_exporter."""
    ports = seen.found.fabric.ports
    return template("fabric/metrics.prom", seen=seen, faults=faults, ports=ports)


def jobs_by_node(text: str) -> dict[str, set[str]]:
    """The jobs on each node, of lines that `squeue -h -t R -o "%i %u %N"` prints."""
    found: dict[str, set[str]] = {}
    for job, user, nodes in re.findall(r"^(\S+) (\S+) (\S+)$", text, re.M):
        for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
            for node in expanded(part):
                found.setdefault(node, set()).add(f"{job} ({user})")
    return found


def expanded(part: str) -> Iterator[str]:
    """n[01-03,5] of Slurm's in full."""
    found = re.fullmatch(r"([^\[]*)\[([\d,-]+)\](.*)", part)
    if not found:
        yield part
        return
    for one in found[2].split(","):
        first, _, last = one.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield from expanded(f"{found[1]}{number:0{len(first)}}{found[3]}")
