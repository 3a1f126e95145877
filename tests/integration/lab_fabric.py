"""tests/lab/fabric: a fabric with planted faults, by what ibsim reads and by its console."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from fabric_world import Planter

from mvstack.fabric.links import Fabric, read_fabric
from mvstack.fabric.plan import fabric_text

LAB = Path(__file__).resolve().parents[1] / "lab" / "fabric"
TOOLS = ("ibsim", "opensm", "ibnetdiscover", "ibqueryerrors")
PATIENCE = 300  # seconds; only for what must end at all
LIVE = ("node", "link", "switch", "count")  # what the console can do


def lacking() -> list[str]:
    """The programs that are not here."""
    path = f"{Path('/usr/bin')}:/usr/sbin:/sbin"
    return [one for one in TOOLS if not shutil.which(one) and not shutil.which(one, path=path)]


def lab(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run tests/lab/fabric."""
    command = [str(one) for one in (LAB, *words)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def copied(fabric: Fabric) -> Fabric:
    """The same fabric, to be changed."""
    return read_fabric(fabric_text(fabric), "", "", {})


def console(planter: Planter, kind: str) -> list[str]:
    """Plant a fault; lines of shell that do it in the running lab."""
    links, counters = list(planter.fabric.links), dict(planter.fabric.counters)
    devices = dict(planter.fabric.devices)
    assert planter.plant(kind), f"no room for {kind}"
    new = {end: rows for end, rows in planter.fabric.counters.items() if end not in counters}
    lines = [
        f"lab count '{devices[end.guid].name}' {end.port} {name} {value}"
        for end, rows in new.items()
        for name, value in rows.items()
    ]
    left = set(planter.fabric.links)
    gone = [one for one in links if one not in left]
    if kind == "switch":
        lines.append(f"lab cut '{planter.told[-1][1][0]}'")
    elif gone:
        end = next(end for end in gone[0].ends if devices[end.guid].switch)
        lines.append(f"lab cut '{devices[end.guid].name}' {end.port}")
    return lines


@dataclass(frozen=True)
class Checked:
    """What `mvstack fabric check` found in the lab, and how long it and the lab took."""

    status: int
    faults: list[dict[str, object]]
    said: str
    seconds: float
    log: str


def checked(place: Path, system: str, lines: list[str], *options: str | Path) -> Checked:
    """Start the lab, carry out ``lines``, and check."""
    story = place / "story.sh"
    check = f"mvstack fabric check {system} --json --html page.html"
    check += " >found.json 2>told; echo status $?"
    began = "began=$(date +%s.%N)", 'echo seconds "$(date +%s.%N) $began"'
    story.write_text("\n".join(["set -e", *lines, began[0], "set +e", check, began[1]]) + "\n")
    start = time.monotonic()
    done = lab(*options, "--folder", place / "kept", system, "bash", story, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    words = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    now, then = map(float, words["seconds"].split())
    found = json.loads((place / "found.json").read_text())
    log = (place / "kept" / "opensm.log").read_text()
    engine = [x.rsplit("process: ", 1)[1] for x in log.splitlines() if "tables configured" in x]
    print(
        f"{system}: {found.get('found') or found.get('outcome')}", *engine[:1], sep="; ", end="; "
    )
    print(f"check {now - then:.1f} s of {time.monotonic() - start:.1f} s")
    status = int(words["status"])
    return Checked(status, found.get("faults", []), str(found.get("found")), now - then, log)
