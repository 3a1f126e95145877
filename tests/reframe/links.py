"""What a node's links into its fabric carry, as src/mvstack_rails.c prints it. Pure."""

import re

TOLERANCE = 0.2  # of the bandwidth of n links, which is to be n times that of one
ALL = "all"


def read(text):
    """``{label: MB/s}``, ``{label: bytes}`` and ``{label: {adapter: bytes}}`` of ``text``."""
    rows = re.findall(r"^rails (\S+) ([\d.]+) (\d+)$", text, re.M)
    sent = {}
    for label, adapter, count in re.findall(r"^sent (\S+) (\S+) (\d+)$", text, re.M):
        sent.setdefault(label, {})[adapter] = int(count)
    speed = {label: float(value) for label, value, _ in rows}
    return speed, {label: int(count) for label, _, count in rows}, sent


def fault(text, links, alone):
    """What speaks against all ``links`` of a node carrying messages; "" if nothing does.

    ``alone`` names the adapters that were also measured by themselves.
    """
    speed, moved, sent = read(text)
    dead = [name for name in alone if not speed.get(name)]
    if dead:
        return (
            f"{listed(dead)} carries nothing: no program ran over it alone. Look at the state of "
            f"the link and its cable, and at the variables above in the job script"
        )
    if not speed.get(ALL):
        return f"no program ran over all {links} links; each one alone gave {shown(speed)}"
    for label in (*alone, ALL):
        through = sum(sent.get(label, {}).values())
        if label in sent and through < moved[label] / 2:
            return (
                f"of {moved[label]} bytes sent by {label}, the adapters' own counters saw "
                f"{through}: messages take another way than the fabric"
            )
    best = max(speed[name] for name in alone)
    slow = [name for name in alone if speed[name] < (1 - TOLERANCE) * best]
    if slow:
        return (
            f"{listed(slow)} is slow: alone the links give {shown(speed, alone)}. Look at its rate "
            f"and width, its cable, and the errors that its port counts"
        )
    carried = sent.get(ALL, {})
    fair = (1 - TOLERANCE) * sum(carried.values()) / links
    idle = [name for name, count in carried.items() if count < fair]
    ratio = speed[ALL] / best
    if idle or abs(ratio - links) > TOLERANCE * links:
        less = f"; of the bytes {shares(carried)}" if carried else ""
        return (f"{listed(idle)} carries too little: " if idle else "") + (
            f"all {links} links together give {speed[ALL]:g} MB/s, {ratio:.2f} times the best one "
            f"alone ({best:g}); expected {links} within {TOLERANCE:.0%}{less}. Look at what the "
            f"MPI's module sets, and at which adapter each rank is bound to"
        )
    return ""


def listed(names):
    """Names as a sentence has them."""
    return " and ".join(names)


def shown(speed, names=None):
    """Bandwidths by link."""
    return ", ".join(f"{name} {speed[name]:g} MB/s" for name in names or speed)


def shares(carried):
    """What each link carried of all bytes."""
    total = sum(carried.values()) or 1
    return ", ".join(f"{name} {count / total:.0%}" for name, count in carried.items())
