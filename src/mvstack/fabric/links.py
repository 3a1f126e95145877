"""A fabric as infiniband-diags prints it, read and written: devices, links, states, counters."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from mvstack.model.wiring import LANES
from mvstack.support.units import clean, count


class End(NamedTuple):
    """A port of the device with this GUID (16 digits)."""

    guid: str
    port: int


class Device(NamedTuple):
    """A switch, or an adapter, whose name begins with that of its node: n1 HCA-1."""

    guid: str
    name: str
    switch: bool
    ports: int

    @property
    def label(self) -> str:
        """The switch's name, or the node's."""
        return self.name if self.switch else self.name.partition(" ")[0]


class Link(NamedTuple):
    """Lanes between two ports."""

    ends: tuple[End, End]
    width: int
    speed: str

    @property
    def rate(self) -> str:
        """As ibnetdiscover says it: 4xFDR."""
        return f"{self.width}x{self.speed}"

    @property
    def gbps(self) -> float:
        """Data in Gb/s that it carries each way; 0 for a speed that nobody knows."""
        return self.width * LANES.get(self.speed, 0.0)


@dataclass
class Fabric:
    """Devices by GUID; ``states`` and ``counters`` of ports, ``unread`` lines by their place.

    ``owners`` are adapters by the GUID of a port, by which other tools name them; ``partitions``
    those of the planned nodes, ``racks`` the numbers of those of planned nodes and switches.
    """

    devices: dict[str, Device] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    states: dict[End, str] = field(default_factory=dict)
    counters: dict[End, dict[str, int]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)
    racks: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        switches = sum(one.switch for one in self.devices.values())
        adapters = count(len(self.devices) - switches, "adapter")
        return f"{adapters}, {switches} switches, {count(len(self.links), 'link')}"

    @property
    def ports(self) -> list[tuple[End, End, Link]]:
        """Each port that has a link, what is at the other end, and the link."""
        both = ((link, *ends) for link in self.links for ends in (link.ends, link.ends[::-1]))
        return [(one, other, link) for link, one, other in both]

    def end(self, guid: str, port: str) -> End:
        """A port as a tool names it: by the device's GUID, or by the port's own."""
        guid = guid.zfill(16)
        return End(self.owners.get(guid, guid), int(port))


_DEVICE = re.compile(r'(Switch|Ca|Rt)\s+(\d+) "[SHR]-(\w{16})"\s*# "(.*)"[^"]*')
_LINK = re.compile(r'\[(\d+)\](?:\((\w+)\))?\s+"[SHR]-(\w{16})"\[(\d+)\].*\slid \d+ (\d+)x(\w+)\s*')
_AROUND = re.compile(r"\s*(#|$)|(vendid|devid|(sysimg|switch|ca|rt)guid)=|DR path|ibwarn:")
_STATE = re.compile(r'0x(\w{16}) +".*?" +\d+ +(\d+)\[..?\] ==\(.*?(\w+)/ *(\w+)\)==>')
_COUNTERS = re.compile(r"\s+GUID 0x(\w+) port (\d+):(.*)")


def read_fabric(text: str, states: str, counters: str, names: dict[str, str]) -> Fabric:
    """What ibnetdiscover, `iblinkinfo --line` and `ibqueryerrors --data` print.

    ``names`` are those of a node-name-map, by GUID.
    """
    fabric, device, seen = Fabric(), "", set[tuple[End, ...]]()
    for number, line in enumerate(text.split("\n"), 1):
        if one := _DEVICE.fullmatch(line):
            device = one[3]
            switch, name = one[1] == "Switch", clean(names.get(device, one[4]))
            fabric.devices[device] = Device(device, name, switch, int(one[2]))
        elif device and (one := _LINK.fullmatch(line)):
            first, second = sorted((End(device, int(one[1])), End(one[3], int(one[4]))))
            if not fabric.devices[device].switch and one[2]:
                fabric.owners[one[2].zfill(16)] = device
            if (first, second) not in seen:  # both ends tell of it
                fabric.links.append(Link((first, second), int(one[5]), one[6]))
                seen.add((first, second))
        elif not _AROUND.match(line) and (device or line[0] != "["):
            fabric.unread[f"ibnetdiscover, line {number}"] = f"cannot be read: {clean(line)}"
            device = "" if line.startswith(("Switch", "Ca", "Rt")) else device
    whole = [x for x in fabric.links if all(end.guid in fabric.devices for end in x.ends)]
    if lost := len(fabric.links) - len(whole):
        what = f"the end is missing, and {count(lost, 'link')} with it"
        fabric.unread[f"ibnetdiscover, line {number}"] = what
        fabric.links = whole
    for tool, what in re.findall(r"^(\w+) failed: (.*)", f"{states}\n{counters}", re.M):
        fabric.unread[tool] = f"failed, and what it did not print is not judged: {clean(what)}"
    for line in states.split("\n"):
        if one := _STATE.match(line):
            fabric.states[fabric.end(one[1], one[2])] = f"{one[3]}/{one[4]}"
    for line in counters.split("\n"):
        if one := _COUNTERS.match(line):
            rows = {name: int(value) for name, value in re.findall(r"\[(\w+) == (\d+)", one[3])}
            fabric.counters.setdefault(fabric.end(one[1], one[2]), {}).update(rows)
    return fabric
