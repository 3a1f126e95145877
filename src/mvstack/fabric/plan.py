"""The fabric that a system's file describes."""

from collections import Counter, defaultdict
from itertools import product

from mvstack.fabric.links import Device, End, Fabric, Link
from mvstack.fabric.names import written
from mvstack.model.system import System
from mvstack.model.wiring import Torus, Tree, Wiring
from mvstack.render.templates import template
from mvstack.support.errors import InvalidInput, Refused


class _Making:
    """A fabric in the making: a device gets the next GUID, a link the next free ports."""

    def __init__(self, system: System, wiring: Wiring, rails: dict[str, list[int]]) -> None:
        self.system, self.wiring, self.rails = system, wiring, rails
        self.fabric, self.used, self.placed = Fabric(), Counter[str](), Counter[str]()

    def device(self, name: str, switch: bool, rack: int = 0) -> str:
        """A device; its GUID has the bit of those that nobody else assigned. Rack 0 is none."""
        guid = f"02{len(self.fabric.devices) + 1:013x}0"
        device = Device(guid, name, switch, self.wiring.ports if switch else 1)
        self.fabric.devices[guid] = device
        if rack and self.wiring.tree:  # the racks of a torus are its switches
            self.fabric.racks[device.label] = rack
        return guid

    def link(self, one: str, other: str, count: int = 1) -> None:
        up = self.fabric.devices[other].switch
        for _ in range(count):
            self.used.update((one, other))
            ends = (End(one, self.used[one]), End(other, self.used[other]))
            width = self.wiring.width if up else self.wiring.node_width
            self.fabric.links.append(Link(ends, width, self.wiring.speed))

    def nodes(self, leaf: str, rack: int, number: int, leaves: int) -> None:
        """The nodes of a rack's leaf ``number`` (from 0), as far as the partitions have any."""
        slot = 1
        for name, count in self.wiring.nodes.items():
            partition = self.system.partitions[name]
            for place in range(number * count, (number + 1) * count):
                self.placed[name] += 1
                if self.placed[name] <= partition.nodes:
                    host = self.wiring.names.node.format(rack=rack, slot=slot + place)
                    self.fabric.partitions[host] = name
                    for rail in self.rails[name]:
                        hca = [*partition.network.hcas[rail - 1 : rail], f"HCA-{rail}"][0]
                        self.link(leaf, self.device(f"{host} {hca}", False, rack))
            slot += leaves * count


def planned(system: System, rail: int = 1) -> Fabric:
    """The fabric of ``system``, or in a torus that of one rail.

    Raises Refused without a description, InvalidInput where it cannot be so.
    """
    wiring, where = system.wiring, system.at("wiring") or system.name
    if wiring is None:
        todo = "describe it as `wiring:` (docs/fabric.md), or compare with a capture: --like DIR"
        raise Refused("this system's file does not say how its fabric is cabled", where, todo=todo)
    most = {name: system.partitions[name].network.rails or 1 for name in wiring.nodes}
    if rail > max(most.values() if wiring.torus else [1]):
        raise InvalidInput(f"there is no fabric of rail {rail}", where)
    own = {
        name: [x for x in range(1, n + 1) if wiring.tree or x == rail] for name, n in most.items()
    }
    making = _Making(system, wiring, own)
    if wiring.tree:
        _tree(making, wiring.tree)
    elif wiring.torus:
        _torus(making, wiring.torus, rail)
    for name in wiring.nodes:
        if making.placed[name] < system.partitions[name].nodes:
            raise InvalidInput(f"{name} has more nodes than there are places for", where)
    name, times = Counter(one.name for one in making.fabric.devices.values()).most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"{times} devices would be called {name}", system.at("wiring", "names"))
    guid, used = making.used.most_common(1)[0]
    if used > wiring.ports:
        what = f"{making.fabric.devices[guid].name} would need {used} ports"
        raise InvalidInput(what, system.at("wiring", "ports"), allowed=f"{wiring.ports}")
    return making.fabric


def _tree(making: _Making, tree: Tree) -> None:
    names = making.wiring.names
    cores = [making.device(names.core.format(core=n + 1), True) for n in range(tree.cores)]
    for rack in range(1, tree.racks + 1):
        spines, leaves = (
            [
                making.device(name.format(rack=rack, **{of: n}), True, rack)
                for n in range(1, count + 1)
            ]
            for name, of, count in (
                (names.spine, "spine", tree.spines),
                (names.leaf, "leaf", tree.leaves),
            )
        )
        for number, leaf in enumerate(leaves):
            making.nodes(leaf, rack, number, tree.leaves)
            for spine in spines:
                making.link(leaf, spine, tree.up)
        for number, upper in enumerate(spines or leaves):
            for n in range(number * tree.core_links, (number + 1) * tree.core_links):
                making.link(upper, cores[n % tree.cores])


def _torus(making: _Making, torus: Torus, rail: int) -> None:
    at: dict[tuple[int, ...], str] = {}
    for z, y, x in product(*map(range, reversed(torus.size))):
        name = making.wiring.names.leaf.format(rack=len(at) + 1, x=x, y=y, z=z, rail=rail)
        at[x, y, z] = making.device(name, True)
    for number, switch in enumerate(at.values(), 1):
        making.nodes(switch, number, 0, 1)
    for (place, switch), way in product(at.items(), range(3)):
        there = list(place)
        there[way] = (place[way] + 1) % torus.size[way]
        if there[way] > place[way] or torus.size[way] > 2:  # a ring of two has one way
            making.link(switch, at[tuple(there)], torus.links)


def fabric_text(fabric: Fabric) -> str:
    """As ibnetdiscover prints it, which ibsim reads, too."""
    at = defaultdict(list)
    for one, other, link in fabric.ports:
        at[one.guid].append((one, other, link))
    return template("fabric/ibnetdiscover", fabric=fabric, at=at)


def described(wiring: Wiring, fabric: Fabric) -> dict[str, str]:
    """The files of a described fabric, by name; a tree's with Slurm's topology.conf."""
    switches = {guid: one.name for guid, one in fabric.devices.items() if one.switch}
    files = {"ibnetdiscover": fabric_text(fabric), "node-name-map": written(switches)}
    below = defaultdict[str, dict[str, None]](dict)
    for one, other, _ in fabric.ports:
        if other.guid not in switches:
            below[switches[one.guid]][fabric.devices[other.guid].label] = None
    if tree := wiring.tree:
        racks = defaultdict[str, list[str]](list)
        for name in below:
            racks[f"rack-{fabric.racks[name]}"].append(name)
        given = {"below": below, "racks": racks, "tree": tree}
        files["topology.conf"] = template("fabric/topology.conf", **given)
    elif torus := wiring.torus:
        given = {"size": torus.size, "switches": list(switches), "zip": zip}
        most = max(sum(wiring.nodes.values()) + 1, torus.links)  # port 0 is one of the nodes' ports
        files["torus-2QoS.conf"] = template("fabric/torus-2QoS.conf", ports=most, **given)
    return files
