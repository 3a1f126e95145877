"""Put nodes into groups that one job each builds, where that costs no time. Pure.

Fewer jobs have fewer starts; but who needs a part of a job waits for all of it. So first groups
become one that lengthen no chain of jobs; then those through which the longest chain still ends
before a deadline: chains that are shorter than the longest have time to spare, and there groups
grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

NEAR = 12
"""How many groups that neither stand on a group nor below it are tried beside it."""


@dataclass
class _Group:
    """``members``, ``below`` and ``above`` are sets of nodes as bits: its own, and all others that
    it stands on or that stand on it. ``needs`` and ``used`` are numbers of groups beside it.

    ``begin`` is when it can begin, ``rest`` what it and the longest chain above it take then, and
    ``most`` is its longest node.
    """

    members: int
    cost: float
    most: float
    needs: set[int]
    used: set[int] = field(default_factory=set)
    below: int = 0
    above: int = 0
    begin: float = 0.0
    rest: float = 0.0


class Grouping:
    """Groups of the nodes ``keys`` (in build order), each of which ``needs`` others of them.

    A group takes ``start`` seconds and the ``seconds`` of its nodes.
    """

    def __init__(
        self,
        keys: Sequence[str],
        needs: Mapping[str, Sequence[str]],
        seconds: Mapping[str, float],
        start: float,
    ) -> None:
        self._keys = keys
        self._start = start
        index = {key: number for number, key in enumerate(keys)}
        self._groups: dict[int, _Group] = {}
        for number, key in enumerate(keys):
            direct = {index[one] for one in needs[key]}
            group = _Group(1 << number, seconds[key], seconds[key], direct)
            for one in direct:
                group.below |= self._groups[one].below
            # what is needed by way of another one says nothing more
            group.needs = {one for one in direct if not group.below >> one & 1}
            for one in group.needs:
                group.below |= 1 << one
                self._groups[one].used.add(number)
            self._groups[number] = group
        for group in reversed(self._groups.values()):
            for one in group.needs:
                self._groups[one].above |= group.above | group.members
        self._time(self._in_order())
        self._alone = self.longest

    def __len__(self) -> int:
        return len(self._groups)

    def merge(self, worth: float, stretch: float) -> None:
        """Merge groups shorter than ``worth`` seconds with others.

        First what lengthens no chain; then the longest chain may become one start longer, but not
        longer than with every node alone, and ``stretch`` times that. To a node that takes longer
        than ``worth`` only what takes less than a start is added: a long build that went well
        should not fail with a short one.
        """
        self._sweep(worth, 0.0)
        self._sweep(worth, min(self.longest + self._start, self._alone) * stretch)

    @property
    def longest(self) -> float:
        """Seconds of the longest chain of groups."""
        return max((one.begin + one.rest for one in self._groups.values()), default=0.0)

    def _sweep(self, worth: float, deadline: float) -> None:
        merged = True
        while merged:
            merged = False
            for number in sorted(self._groups, key=lambda one: (self._groups[one].cost, one)):
                group = self._groups.get(number)
                if group is not None and group.cost < worth:
                    partner = self._partner(number, group, worth, deadline)
                    if partner is not None:
                        self._join(*sorted((number, partner)))
                        merged = True

    def groups(self) -> list[list[str]]:
        """The keys of each group, in build order; what a group stands on comes before it."""
        return [
            [self._keys[one] for one in _bits(self._groups[number].members)]
            for number in self._in_order()
        ]

    def _partner(self, number: int, group: _Group, worth: float, deadline: float) -> int | None:
        """The group that ``number`` lengthens its chain least with, before the deadline."""
        best: tuple[float, bool, int] | None = None
        for other, linked in self._candidates(number, group):
            one = self._groups[other]
            cost = group.cost + one.cost
            most = max(group.most, one.most)
            if cost > worth and (not linked or cost - most > self._start):
                continue
            if (group.above & one.below) or (one.above & group.below):
                continue  # one between them would stand on the two and below them
            begin, rest = self._together(group, one)
            whole = begin + rest
            longer = whole - max(group.begin + group.rest, one.begin + one.rest)
            if longer > 0 and whole > deadline:
                continue
            choice = (longer, not linked, other)
            if best is None or choice < best:
                best = choice
        return best[2] if best else None

    def _together(self, group: _Group, one: _Group) -> tuple[float, float]:
        """When both as one can begin, and what it takes from then to the end of all above."""
        groups = self._groups
        below = [groups[n] for n in group.needs | one.needs]
        above = [groups[n] for n in group.used | one.used]
        begin = max((self._end(g) for g in below if g is not group and g is not one), default=0.0)
        rest = max((g.rest for g in above if g is not group and g is not one), default=0.0)
        return begin, self._start + group.cost + one.cost + rest

    def _end(self, group: _Group) -> float:
        return group.begin + self._start + group.cost

    def _candidates(self, number: int, group: _Group) -> Iterator[tuple[int, bool]]:
        for one in group.needs | group.used:
            yield one, True
        related = group.above | group.below | group.members
        beside = [one for one, other in self._groups.items() if not other.members & related]
        beside.sort(key=lambda one: (abs(self._groups[one].begin - group.begin), one))
        for one in beside[:NEAR]:
            yield one, False

    def _join(self, number: int, other: int) -> None:
        """Make ``other`` a part of ``number``."""
        one, two = self._groups[number], self._groups.pop(other)
        one.members |= two.members
        one.cost += two.cost
        one.most = max(one.most, two.most)
        for neighbour in two.needs:
            self._groups[neighbour].used -= {other}
            self._groups[neighbour].used |= {number}
        for neighbour in two.used:
            self._groups[neighbour].needs -= {other}
            self._groups[neighbour].needs |= {number}
        one.needs = (one.needs | two.needs) - {number, other}
        one.used = (one.used | two.used) - {number, other}
        one.below = (one.below | two.below) & ~one.members
        one.above = (one.above | two.above) & ~one.members
        down, up = one.below | one.members, one.above | one.members
        for group in self._groups.values():
            if group.members & one.above:
                group.below |= down
            elif group.members & one.below:
                group.above |= up
        self._time(self._in_order())

    def _in_order(self) -> list[int]:
        """Each group after all that it stands on, for that has fewer nodes below it."""
        return sorted(self._groups, key=lambda one: (self._groups[one].below.bit_count(), one))

    def _time(self, order: list[int]) -> None:
        groups = self._groups
        for number in order:
            group = groups[number]
            group.begin = max((self._end(groups[one]) for one in group.needs), default=0.0)
        for number in reversed(order):
            group = groups[number]
            after = max((groups[one].rest for one in group.used), default=0.0)
            group.rest = self._start + group.cost + after


def _bits(value: int) -> Iterator[int]:
    while value:
        low = value & -value
        yield low.bit_length() - 1
        value ^= low
