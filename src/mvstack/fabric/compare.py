"""What differs between the planned fabric and the one that was found: each fault once."""

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from mvstack.fabric.links import Device, End, Fabric, Link
from mvstack.support.words import few

Pair = tuple[str, str]


class Fault(NamedTuple):
    """``kind`` is one of faults.yaml; ``place`` is a device, as a rule with its port.

    ``nodes`` are those whose messages meet it: of its link, or below the switches that it joins.
    """

    kind: str
    place: str
    says: str
    nodes: tuple[str, ...] = ()


class Named:
    """A fabric by names: links by the two nodes or switches that they join."""

    def __init__(self, fabric: Fabric, called: dict[str, str]) -> None:
        self.fabric, self.called = fabric, called
        self.links: dict[Pair, list[Link]] = defaultdict(list)
        self.near: dict[str, set[str]] = defaultdict(set)
        for link in fabric.links:
            one, other = pair = self.pair(link)
            self.links[pair].append(link)
            self.near[one].add(other)
            self.near[other].add(one)

    def pair(self, link: Link) -> Pair:
        """What it joins, in order."""
        one, other = sorted(self.called.get(end.guid, end.guid) for end in link.ends)
        return one, other

    def at(self, end: End) -> tuple[str, int]:
        """A port by its device's name."""
        return self.called.get(end.guid, end.guid), end.port

    def say(self, link: Link) -> str:
        """Both ports in words, a switch's before a node's."""
        devices = self.fabric.devices
        ends = sorted(
            link.ends, key=lambda end: end.guid in devices and not devices[end.guid].switch
        )
        return " to ".join("{} port {}".format(*self.at(end)) for end in ends)


class Comparison:
    """``faults`` are what was found; ``others`` are names that may be anywhere."""

    def __init__(self, plan: Fabric, found: Fabric, others: list[str]) -> None:
        self.faults = list[Fault]()
        self.anywhere = {
            one.label
            for one in found.devices.values()
            for pattern in others
            if fnmatchcase(one.name, pattern) or fnmatchcase(one.label, pattern)
        }
        self.plan = Named(plan, {one.guid: one.label for one in plan.devices.values()})
        self.switches = {one.label for one in plan.devices.values() if one.switch}
        self.nodes = {one.label for one in plan.devices.values() if not one.switch}
        self.found = Named(found, self._identified(found))
        self.missing = self.switches - set(self.found.called.values())
        self.faults += [*self._whole(), *self._moved(), *self._rates()]

    def meeting(self, link: Pair) -> tuple[str, ...]:
        """The planned nodes that it joins, or those below its switches."""
        one, other = (self.plan.near.get(name, set()) for name in link)
        return tuple(sorted(self.nodes & set(link) or self.nodes & (one | other)))

    def _identified(self, found: Fabric) -> dict[str, str]:
        """What each device is, by GUID: by its name, or by its links if no such name is planned."""
        called = {one.guid: one.label for one in found.devices.values()}
        near, same = defaultdict[str, set[str]](set), defaultdict[str, list[Device]](list)
        for link in found.links:
            for one, other in (link.ends, link.ends[::-1]):
                near[one.guid].add(called.get(other.guid, ""))
        for device in found.devices.values():
            if device.switch and device.name not in self.anywhere:
                same[device.name].append(device)
        free = self.switches - set(same)
        for name, devices in same.items():
            devices.sort(key=lambda one: -len(near[one.guid] & self.plan.near.get(name, set())))
            for device in devices[name in self.switches :]:
                fits = ((len(near[device.guid] & self.plan.near[one]), one) for one in free)
                *_, second, best = [(0, ""), (0, ""), *sorted(fits)]
                kind, what = "unknown", "a switch that is not planned"
                called[device.guid] = place = f"{name} (0x{device.guid})"
                if best[0] > second[0]:
                    kind, what, place = "name", f"the switch that calls itself {name}", best[1]
                    called[device.guid] = best[1]
                    free.remove(best[1])
                self.faults.append(Fault(kind, place, f"{what}, with GUID 0x{device.guid}"))
        return called

    def _whole(self) -> Iterator[Fault]:
        """Lines that cannot be read, switches that are missing."""
        for number, line in self.found.fabric.unread.items():
            yield Fault("unread", f"ibnetdiscover, line {number}", f"cannot be read: {line}")
        for name in sorted(self.missing):
            below = self.meeting((name, name))
            tail = f", and nothing is known of {few(below)}" if below else ""
            yield Fault("switch", name, f"this switch is missing{tail}", below)

    def _moved(self) -> Iterator[Fault]:
        """Links that are missing, that nobody planned, or that are in the place of another."""
        plan, found = self.plan, self.found
        ours = {frozenset(map(plan.at, link.ends)) for link in plan.fabric.links}
        used = {found.at(end) for link in found.fabric.links for end in link.ends}
        extra, lost = list[tuple[Pair, str]](), list[tuple[Pair, str]]()
        for pair in sorted({*plan.links, *found.links}):
            want, have = plan.links.get(pair, []), found.links.get(pair, [])
            if len(want) > len(have):
                free = [x for x in want if not used & set(map(plan.at, x.ends))]
                odd, here = [plan.say(x) + self._state(x) for x in free], lost
            else:
                new = [x for x in have if frozenset(map(found.at, x.ends)) not in ours]
                odd, here = [found.say(x) for x in new], extra
            if len(odd) != (count := abs(len(want) - len(have))):
                # the site's ports are others than the description's: no single cable can be named
                odd = [f"{' to '.join(pair)}, {len(have)} of {len(want)} links"] * count
            here += [(pair, place) for place in odd]
        extra.sort(key=lambda one: not self._lost(one[0], lost))  # who is elsewhere comes first
        for pair, place in extra:
            if not self._foreign(pair):
                yield self._instead(pair, place, lost)
        for pair, place in lost:
            node = next(iter(self.nodes & set(pair)), "")
            gone = node and node not in found.near
            what = f"{node} is missing" if gone else f"a link of {' and '.join(pair)} is missing"
            if not self.missing & set(pair):
                yield Fault("node" if gone else "link", place, what, self.meeting(pair))

    def _state(self, link: Link) -> str:
        """The state of a port that has no link, if it is known."""
        guids = {name: guid for guid, name in self.found.called.items()}
        ends = (End(guids.get(name, ""), port) for name, port in map(self.plan.at, link.ends))
        said = [self.found.fabric.states[end] for end in ends if end in self.found.fabric.states]
        return f" ({said[0]})" if said else ""

    def _foreign(self, pair: Pair) -> bool:
        """Whether a link leads to what may be anywhere, or to what was told as unknown."""
        switches = self.switches & set(pair)
        rest = [one for one in pair if one not in self.switches | self.nodes]
        return not switches or any(one in self.anywhere or " (0x" in one for one in rest)

    def _lost(self, pair: Pair, lost: list[tuple[Pair, str]]) -> list[tuple[Pair, str]]:
        """The missing links of the same node."""
        return [one for one in lost if self.nodes & set(pair) & set(one[0])]

    def _instead(self, pair: Pair, place: str, lost: list[tuple[Pair, str]]) -> Fault:
        """The fault of a link that is not planned; one of ``lost`` that explains it is taken."""
        name = next((one for one in pair if one not in self.switches), "")
        switch = pair[pair[0] == name]
        same = [one for one in lost if set(one[0]) & set(pair)]
        same = [one for one in same if bool(name) == bool(self.nodes & set(one[0]))]
        same.sort(
            key=lambda one: (
                one not in self._lost(pair, lost),
                one[1].split(" to ")[0] not in place,
            )
        )
        if same:
            lost.remove(same[0])
            there = same[0][0]
            if not name or name in there:
                says = f"this cable joins {' and '.join(pair)}; planned is {' and '.join(there)}"
                return Fault("cable", place, says, self.meeting(pair))
            node = next(iter(self.nodes & set(there)))
            twin = ", as another does," if name in self.nodes else ""
            says = f"a node calls itself {name}{twin} where {node} is planned"
            return Fault("name", place, says, (node,))
        if name in self.nodes:
            return Fault("name", place, f"another node calls itself {name}, too", (name,))
        if name:
            return Fault("unknown", place, f"{name} on {switch} is not planned", (name,))
        says = f"this cable joins {' and '.join(pair)}, and is not planned"
        return Fault("cable", place, says, self.meeting(pair))

    def _rates(self) -> Iterator[Fault]:
        """Links that are slower than planned, or up and not in use."""
        own = {
            one: links[0]
            for pair, links in self.plan.links.items()
            for one in self.nodes & set(pair)
        }
        for link in self.found.fabric.links:
            pair = self.found.pair(link)
            node = next(iter(self.nodes & set(pair)), "")
            want = own.get(node) or next(iter(self.plan.links.get(pair, [])), None)
            if want and 0 < link.gbps < want.gbps:
                says = f"the link is {link.rate}, and {want.rate} is planned"
                yield Fault("slow", self.found.say(link), says, self.meeting(pair))
            states = {self.found.fabric.states.get(end, "Active/LinkUp") for end in link.ends}
            if odd := states - {"Active/LinkUp"}:
                says = f"the link is up and in state {odd.pop()}"
                yield Fault("state", self.found.say(link), says, self.meeting(pair))
