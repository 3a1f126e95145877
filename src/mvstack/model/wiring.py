"""How the nodes and switches of a system are cabled: what `mvstack fabric` describes and checks."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mvstack.model.base import EMPTY_LIST, Strict
from mvstack.model.text import Count, Name, Text, matching

LANES = {"SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0}
LANES |= {"HDR": 50.0, "NDR": 100.0, "XDR": 200.0}
"""Data in Gb/s that a lane of each speed carries each way, without its coding."""
_PATTERN = r"(?:[\w.-]|\{(?:rack|slot|leaf|spine|core|rail|x|y|z)(?::0[1-9])?\})+"
Pattern = Annotated[str, matching(_PATTERN, "a name such as n-{rack:02}-{slot:02}")]
Lanes = Literal[1, 2, 4, 8, 12]
Some = Annotated[int, Field(ge=0, le=10_000)]


class Tree(Strict):
    """A fat tree: ``leaves`` and ``spines`` of each rack, and ``cores`` above all racks.

    A leaf has ``up`` links to each spine of its rack. A spine (a leaf, where racks have no spines)
    has ``core_links``, one after the other to each core in turn.
    """

    racks: Count
    leaves: Count
    spines: Some = 0
    up: Some = 0
    cores: Some = 0
    core_links: Some = 0


class Torus(Strict):
    """Rings of switches in three dimensions, each with ``links`` to the next: one torus a rail."""

    size: Annotated[list[Count], Field(min_length=3, max_length=3)]
    links: Count


class Names(Strict):
    """How devices are called; {slot} counts the nodes of a rack, {rack} a torus' switches."""

    node: Pattern
    leaf: Pattern
    spine: Pattern = "spine-{rack:02}-{spine}"
    core: Pattern = "core-{core:02}"


class Wiring(Strict):
    """The links of a fabric: ``width`` lanes of ``speed``, ``node_width`` to each node.

    ``nodes`` are those of each partition on a leaf (a torus' switch), and fill rack by rack.
    ``ports`` are those of a switch. ``others`` are names of what may be anywhere, such as storage;
    ``*`` in them stands for anything. ``assumed`` is what no source says.
    """

    speed: Literal["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"]
    width: Lanes = 4
    node_width: Lanes = 4
    ports: Count
    nodes: Annotated[dict[Name, Count], Field(min_length=1)]
    tree: Tree | None = None
    torus: Torus | None = None
    names: Names
    others: list[Text] = EMPTY_LIST
    source: Text
    assumed: Text = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.tree is None) == (self.torus is None):
            raise ValueError("give either a tree or a torus")
        if self.tree and self.tree.core_links and not self.tree.cores:
            raise ValueError("tree: core_links needs cores")
        leaf = "rack, leaf" if self.tree else "rack, x, y, z, rail"
        known = {"node": "rack, slot", "leaf": leaf, "spine": "rack, spine", "core": "core"}
        for name, said in self.names:
            for field in re.findall(r"\{(\w+)", said):
                if field not in known[name].split(", "):
                    what = f"names: {name}: {{{field}}} is not known here"
                    raise ValueError(f"{what}; use {known[name]}")
        return self
