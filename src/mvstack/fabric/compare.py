"""What differs between the planned fabric and the one that was found: each fault once."""

import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import translate
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


class Gap(NamedTuple):
    """A link that is planned and missing, or there and not planned."""

    pair: Pair
    place: str

    @property
    def port(self) -> str:
        """The port of its switch."""
        return self.place.partition(" to ")[0]


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
        nodes = [end for end in link.ends if not self.fabric.devices[end.guid].switch]
        ends = sorted(link.ends, key=nodes.__contains__)
        return " to ".join("{} port {}".format(*self.at(end)) for end in ends)


class Comparison:
    """``faults`` are what was found; ``others`` are names that may be anywhere."""

    def __init__(self, plan: Fabric, found: Fabric, others: list[str]) -> None:
        self.faults = list[Fault]()
        patterns = re.compile("|".join(map(translate, others)) or r"\Z.")
        every = found.devices.values()
        self.anywhere = {x.label for x in every if any(map(patterns.match, (x.name, x.label)))}
        self.plan = Named(plan, {one.guid: one.label for one in plan.devices.values()})
        self.switches = {one.label for one in plan.devices.values() if one.switch}
        self.nodes = {one.label for one in plan.devices.values() if not one.switch}
        self.found = Named(found, self._identified(found))
        self.guids = {name: guid for guid, name in self.found.called.items()}
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
        for place, what in self.found.fabric.unread.items():
            yield Fault("unread", place, what)
        for name in sorted(self.missing):
            below = self.meeting((name, name))
            tail = f", and nothing is known of {few(below)}" if below else ""
            yield Fault("switch", name, f"this switch is missing{tail}", below)

    def _moved(self) -> Iterator[Fault]:
        """Links that are missing, that nobody planned, or that are in the place of another."""
        plan, found, extra, lost = (
            self.plan,
            self.found,
            list[Gap](),
            defaultdict[str, list[Gap]](list),
        )
        ours = {frozenset(map(plan.at, link.ends)) for link in plan.fabric.links}
        used = {found.at(end) for link in found.fabric.links for end in link.ends}
        for pair in sorted({*plan.links, *found.links}):
            want, have = plan.links.get(pair, []), found.links.get(pair, [])
            new = [found.say(x) for x in have if frozenset(map(found.at, x.ends)) not in ours]
            free = [self._free(x) for x in want if not used & set(map(plan.at, x.ends))]
            odd = new if len(have) > len(want) else free
            if len(odd) != (many := abs(len(want) - len(have))):
                # the site's ports are others than the description's: no single cable can be named
                odd = [f"{' to '.join(pair)}, {len(have)} of {len(want)} links"] * many
            for place in odd:
                if len(have) > len(want) and self._judged(pair):
                    extra.append(Gap(pair, place))
                for name in pair if len(have) < len(want) else ():
                    lost[name].append(Gap(pair, place))
        # a node that is elsewhere explains more than one in its place does
        extra.sort(key=lambda gap: not any(lost.get(x) for x in self.nodes & set(gap.pair)))
        yield from [self._instead(gap, lost) for gap in extra]
        left = sorted(x for name, gaps in lost.items() for x in gaps if name == x.pair[0])
        for pair, place in left:
            node = next(iter(self.nodes & set(pair)), "")
            kind, what = "link", f"a link of {' and '.join(pair)}"
            if node and node not in found.near:
                kind, what = "node", node
            if not self.missing & set(pair):
                yield Fault(kind, place, f"{what} is missing", self.meeting(pair))

    def _free(self, link: Link) -> str:
        """A planned link in words, with the state of a port that has none, if it is known."""
        ends = (End(self.guids.get(x, ""), port) for x, port in map(self.plan.at, link.ends))
        said = [f" ({x})" for end in ends if (x := self.found.fabric.states.get(end))]
        return self.plan.say(link) + "".join(said[:1])

    def _judged(self, pair: Pair) -> bool:
        """Whether a link leads neither to what may be anywhere, nor to what was told as unknown."""
        rest = set(pair) - self.switches - self.nodes
        return len(rest) < 2 and not any(x in self.anywhere or " (0x" in x for x in rest)

    def _instead(self, gap: Gap, lost: dict[str, list[Gap]]) -> Fault:
        """The fault of a link that is not planned; one of ``lost`` that explains it is taken."""
        (pair, place), joins = gap, " and ".join(gap.pair)
        name = next((one for one in pair if one not in self.switches), "")
        same = [x for one in pair for x in lost.get(one, ())]
        same = [x for x in same if bool(name) == bool(self.nodes & set(x.pair))]
        same.sort(key=lambda x: (name not in x.pair, x.port != gap.port))
        for one in same[0].pair if same else ():
            lost[one].remove(same[0])
        if same and name and name not in same[0].pair:
            node = next(iter(self.nodes & set(same[0].pair)))
            twin = ", as another does," if name in self.nodes else ""
            says = f"a node calls itself {name}{twin} where {node} is planned"
            return Fault("name", place, says, (node,))
        if name in self.nodes and not same:
            return Fault("name", place, f"another node calls itself {name}, too", (name,))
        if name and not same:
            return Fault("unknown", place, f"{joins} are joined: {name} is not planned", (name,))
        says = f"planned are {' and '.join(same[0].pair)}" if same else "nothing such is planned"
        return Fault("cable", place, f"{joins} are joined; {says}", self.meeting(pair))

    def _rates(self) -> Iterator[Fault]:
        """Links that are slower than planned, or up and not in use."""
        own = {
            x: links[0] for pair, links in self.plan.links.items() for x in self.nodes & set(pair)
        }
        for link in self.found.fabric.links:
            pair, place = self.found.pair(link), self.found.say(link)
            node = next(iter(self.nodes & set(pair)), "")
            want = own.get(node) or next(iter(self.plan.links.get(pair, [])), None)
            if want and 0 < link.gbps < want.gbps:
                says = f"the link is {link.rate}, and {want.rate} is planned"
                yield Fault("slow", place, says, self.meeting(pair))
            states = {self.found.fabric.states.get(end, "Active/LinkUp") for end in link.ends}
            if odd := states - {"Active/LinkUp"}:
                yield Fault("state", place, f"its state is {odd.pop()}", self.meeting(pair))
