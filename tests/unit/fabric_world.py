"""Fabrics to compare, and faults to plant in them: each with what must be said of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from mvstack.fabric.compare import Fault
from mvstack.fabric.links import Device, End, Fabric, Link
from mvstack.model.load import load_system
from mvstack.model.system import System
from mvstack.model.wiring import Wiring

# adapters, switches and links that the systems' files describe
DESCRIBED = {"comet": (1944, 207, 4374), "expanse": (784, 43, 1204), "gordon": (1024, 64, 1600)}


def tree_system(nodes: int, **tree: int) -> System:
    """A system like Comet whose fabric is the tree, with this many nodes on a leaf."""
    comet = load_system("comet")
    names = {
        "node": "n{rack:02}-{slot:03}",
        "leaf": "l{rack:02}-{leaf}",
        "spine": "s{rack:02}-{spine}",
    }
    wiring = {"speed": "HDR", "ports": 80, "nodes": {"cpu": nodes}, "tree": tree, "names": names}
    given = Wiring.model_validate({**wiring, "source": "none"})
    cpu = comet.partitions["cpu"]
    count = tree["racks"] * tree["leaves"] * nodes
    parts = {"cpu": cpu.model_copy(update={"nodes": count})}
    return comet.model_copy(update={"wiring": given, "partitions": parts})


class Planter:
    """Plants faults in a fabric, none that meets another; ``told`` is what must be said of each.

    Each of ``told`` is a fault's kind and words that must be in its place or its message.
    """

    def __init__(self, fabric: Fabric, seed: int) -> None:
        self.fabric, self.random = fabric, random.Random(seed)
        self.told: list[tuple[str, tuple[str, ...]]] = []
        self.touched: set[str] = set()
        self.kinds: dict[str, Callable[[], bool]] = {
            "slow": self.slow,
            "narrow": self.narrow,
            "node": self.node,
            "link": self.link,
            "switch": self.switch,
            "renamed": self.renamed,
            "twin": self.twin,
            "unnamed switch": self.unnamed_switch,
            "swapped nodes": self.swapped_nodes,
            "swapped uplinks": self.swapped_uplinks,
            "stranger": self.stranger,
            "count": self.count,
            "state": self.state,
        }

    def name(self, guid: str) -> str:
        return self.fabric.devices[guid].label

    def links(self, *, node: bool | None = None) -> list[Link]:
        """Links of which nobody touched either end: to a node, between switches, or all."""
        found = [
            link
            for link in self.fabric.links
            if node in (None, any(not self.fabric.devices[end.guid].switch for end in link.ends))
            and not self.touched & {self.name(end.guid) for end in link.ends}
        ]
        self.random.shuffle(found)
        return found

    def touch(self, *links: Link) -> None:
        self.touched |= {self.name(end.guid) for link in links for end in link.ends}

    def ports(self, link: Link) -> tuple[str, ...]:
        return tuple(f"{self.name(end.guid)} port {end.port}" for end in link.ends)

    def replace(self, link: Link, *new: Link) -> None:
        self.fabric.links.remove(link)
        self.fabric.links += new

    def plant(self, kind: str) -> bool:
        """Whether there was room for one."""
        return self.kinds[kind]()

    def _changed(self, **fields: object) -> bool:
        for link in self.links()[:1]:
            changed = link._replace(**fields)  # type: ignore[arg-type]
            self.touch(link)
            self.replace(link, changed)
            self.told.append(("slow", (*self.ports(link), changed.rate, link.rate)))
            return True
        return False

    def slow(self) -> bool:
        return self._changed(speed="SDR")

    def narrow(self) -> bool:
        return self._changed(width=1)

    def drop(self, device: Device) -> None:
        del self.fabric.devices[device.guid]
        self.fabric.links = [
            x for x in self.fabric.links if device.guid not in (end.guid for end in x.ends)
        ]

    def node(self) -> bool:
        for link in self.links(node=True)[:1]:
            self.touch(link)
            self.told.append(("node", self.ports(link)))
            for end in link.ends:
                if not (device := self.fabric.devices[end.guid]).switch:
                    self.drop(device)
            return True
        return False

    def link(self) -> bool:
        for link in self.links(node=False)[:1]:
            self.touch(link)
            self.told.append(("link", self.ports(link)))
            self.fabric.links.remove(link)
            return True
        return False

    def switch(self) -> bool:
        """A switch without power, and its nodes with it; none whose links are all nodes' way."""
        for device in self.random.sample(
            list(self.fabric.devices.values()), len(self.fabric.devices)
        ):
            around = [x for x in self.fabric.links if device.guid in (e.guid for e in x.ends)]
            names = {self.name(end.guid) for x in around for end in x.ends}
            if not device.switch or self.touched & names or not around:
                continue
            nodes = [
                e.guid for x in around for e in x.ends if not self.fabric.devices[e.guid].switch
            ]
            self.touched |= names
            self.told.append(("switch", (device.label,)))
            for guid in nodes:
                self.drop(self.fabric.devices[guid])
            self.drop(device)
            return True
        return False

    def _rename(self, name: str, *words: str) -> bool:
        for link in self.links(node=True)[:1]:
            self.touch(link)
            guid = next(e.guid for e in link.ends if not self.fabric.devices[e.guid].switch)
            self.touched.add(name.partition(" ")[0])
            self.told.append(("name", (*words, *self.ports(link)[:1], self.name(guid))))
            self.fabric.devices[guid] = self.fabric.devices[guid]._replace(name=name)
            return True
        return False

    def renamed(self) -> bool:
        name = f"localhost{len(self.told)}"
        return self._rename(f"{name} mlx5_0", name)

    def twin(self) -> bool:
        for link in self.links(node=True)[:1]:
            name = next(x for e in link.ends if not (x := self.fabric.devices[e.guid]).switch).name
            self.touch(link)
            return self._rename(name, name.partition(" ")[0], "another")
        return False

    def unnamed_switch(self) -> bool:
        """A leaf, which its nodes tell."""
        for link in self.links(node=True)[:1]:
            self.touch(link)
            guid = next(e.guid for e in link.ends if self.fabric.devices[e.guid].switch)
            self.told.append(("name", (self.name(guid), guid)))
            name = "MF0;switch-928eee:SX6036/U1"
            self.touched.add(name)
            self.fabric.devices[guid] = self.fabric.devices[guid]._replace(name=name)
            return True
        return False

    def _swap(self, node: bool) -> bool:
        links = self.links(node=node)
        for one in links[:1]:
            ends = {end.guid for end in one.ends}
            pairs = {frozenset(e.guid for e in x.ends) for x in self.fabric.links}
            for other in links[1:]:
                (a, b), (c, d) = one.ends, other.ends
                new = ({a.guid, d.guid}, {c.guid, b.guid})
                if ends & {c.guid, d.guid} or (not node and any(x in pairs for x in new)):
                    continue
                self.touch(one, other)
                self.replace(one, one._replace(ends=(a, d)))
                self.replace(other, other._replace(ends=(c, b)))
                for first, second in ((a, d), (c, b)):
                    words = (f"{self.name(first.guid)} port {first.port}",)
                    self.told.append(
                        ("cable", (*words, f"{self.name(second.guid)} port {second.port}"))
                    )
                return True
        return False

    def swapped_nodes(self) -> bool:
        return self._swap(node=True)

    def swapped_uplinks(self) -> bool:
        return self._swap(node=False)

    def stranger(self) -> bool:
        """A node that nobody planned, in a free port."""
        used = {end for link in self.fabric.links for end in link.ends}
        for device in self.random.sample(
            list(self.fabric.devices.values()), len(self.fabric.devices)
        ):
            free = [n for n in range(1, device.ports + 1) if End(device.guid, n) not in used]
            if device.switch and free and device.label not in self.touched:
                guid = f"0f{len(self.told) + 1:013x}0"
                name = f"stranger{len(self.told)}"
                self.fabric.devices[guid] = Device(guid, f"{name} HCA-1", False, 1)
                link = Link((End(device.guid, free[0]), End(guid, 1)), 4, "FDR")
                self.fabric.links.append(link)
                self.touch(link)
                self.told.append(("unknown", (name, f"{device.label} port {free[0]}")))
                return True
        return False

    def count(self) -> bool:
        for link in self.links()[:1]:
            self.touch(link)
            end = self.random.choice(link.ends)
            name, least = self.random.choice(
                [("SymbolErrorCounter", 51), ("LinkDownedCounter", 11), ("PortXmitDiscards", 101)]
            )
            self.fabric.counters[end] = {name: least + self.random.randrange(100)}
            said = f"{name} of {self.name(end.guid)} port {end.port}"
            self.told.append((name, (said, *self.ports(link))))
            return True
        return False

    def state(self) -> bool:
        """A port that the subnet manager did not bring up: its link is there and idle."""
        for link in self.links()[:1]:
            self.touch(link)
            odd = self.random.choice(["Init/LinkUp", "Armed/LinkUp"])
            self.fabric.states[self.random.choice(link.ends)] = odd
            self.told.append(("state", (odd, *self.ports(link))))
            return True
        return False


KINDS = sorted(Planter(Fabric(), 0).kinds)


def unlike(told: list[tuple[str, tuple[str, ...]]], found: list[Fault]) -> list[object]:
    """What was told and not found, then what was found and not told."""
    left: list[object] = []
    rest = list(found)
    for kind, words in told:
        for one in rest:
            inside = f"{one.place} {one.says} {' '.join(one.nodes)}"
            if one.kind == kind and all(re.search(rf"{re.escape(x)}\b", inside) for x in words):
                rest.remove(one)
                break
        else:
            left.append((kind, words))
    return [*left, *rest]
