"""Check an InfiniBand fabric against its description: links, cables, names, counters."""

import os
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from mvstack.cli import options
from mvstack.fabric.compare import Comparison, Fault
from mvstack.fabric.judge import count_faults, fault_policy, jobs_by_node, metrics
from mvstack.fabric.links import Fabric, read_fabric
from mvstack.fabric.names import cleaned, written
from mvstack.fabric.page import page
from mvstack.fabric.plan import described as files_of
from mvstack.fabric.plan import planned
from mvstack.model.load import load_system
from mvstack.plan.make import partitions_of, split_name
from mvstack.support.console import say
from mvstack.support.errors import CheckFailed, InvalidInput, Missing, Problem
from mvstack.support.files import read_text, write_atomically
from mvstack.support.processes import english, run
from mvstack.support.units import count, one_line
from mvstack.support.words import few

app = options.commands(__doc__)
# What reads a fabric; a capture is a folder with what each printed, in a file of its name.
TOOLS = {
    "ibnetdiscover": ("ibnetdiscover",),
    "iblinkinfo": ("iblinkinfo", "--line"),
    "ibqueryerrors": ("ibqueryerrors", "--data", "--threshold-file", "/dev/null"),
    "counters": ("ibqueryerrors", "--counters"),
    "squeue": ("squeue", "-h", "-t", "R", "-o", "%i %u %N"),
}
READ = [*TOOLS][:4]
CAPTURE = "; ".join(f"{' '.join(TOOLS[one])} > DIR/{one}" for one in READ)
MAP = "A node-name-map: names of switches by GUID."
_RAIL = Option(min=1, help="Which fabric, where each rail has one of its own.")
_FROM = Option("--from", metavar="DIR", help="Read a capture, and run no tool.")
_LIKE = Option(metavar="DIR", help="Compare with this capture, not with the file.")
_SINCE = Option(metavar="DIR", help="Judge counters, and use, by what came since this capture.")
_METRICS = Option("--metrics", metavar="FILE", help="Write metrics for Prometheus (-: print).")
_HTML = Option("--html", metavar="FILE", help="Write a page of racks, switches and errors.")
_JOBS = Option("--jobs", help="Say which jobs of Slurm are in the way of each error.")
_CLEAN = Option("--to", metavar="FILE", help="Where the clean one goes; else it is printed.")
Rail = Annotated[int, _RAIL]
Folder = Path | None


def _captured(folder: Path, tool: str) -> str:
    file = folder / tool
    if tool == "ibnetdiscover" and not file.is_file():
        todo = f"as root on a node of the fabric: {CAPTURE}"
        raise InvalidInput("a capture has what ibnetdiscover printed", str(file), todo=todo)
    if tool == "squeue" and not file.is_file():
        todo = f"{shlex.join(TOOLS[tool])} > {file}, or leave --jobs out"
        raise InvalidInput("this capture has no list of jobs", str(file), todo=todo)
    return read_text(file, "replace") if file.is_file() else ""


def _here(tool: str) -> str:
    """What a tool of infiniband-diags prints, here and now; it may end with 1 for errors found.

    One that fails is asked once more: a busy switch does not answer every query in time.
    """
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        for _ in range(2):
            done = run(TOOLS[tool], env=english(PATH=path), limit=600)
            if not done.status or (done.status == 1 and done.text):
                return done.text
    except OSError as error:
        lines, package = str(error.strerror), "slurm" if tool == "squeue" else "infiniband-diags"
        todo = f"install {package}, or check a capture: --from DIR"
        raise Missing(f"{tool} cannot be run: {lines}", todo=todo) from None
    last = (done.errors.strip().splitlines() or [f"status {done.status}"])[-1]
    if tool not in (READ[0], "squeue"):  # the rest of a sick fabric is told all the same
        return f"{done.text}\n{tool} failed: {last}"
    because = "it needs root, or write access to /dev/infiniband/umad*, on a node of the fabric"
    todo = f"there, as root: {CAPTURE}; then anywhere: mvstack fabric check SYSTEM --from DIR"
    raise Missing(f"{tool} failed: {last}", because=because, todo=todo)


def _read(folder: Path | None, names: dict[str, str]) -> Fabric:
    found, states, *counters = [_captured(folder, x) if folder else _here(x) for x in READ]
    fabric = read_fabric(found, states, "\n".join(counters), names)
    if not fabric.devices:
        where = str(folder / READ[0]) if folder else ""
        told = one_line(found, 80) or "nothing"
        raise InvalidInput("what ibnetdiscover printed names no device", where, found=told)
    return fabric


@app.command(epilog="Example: mvstack fabric check comet --from capture --names switches.map")
def check(
    system: options.System,
    folder: Annotated[Folder, _FROM] = None,
    like: Annotated[Folder, _LIKE] = None,
    since: Annotated[Folder, _SINCE] = None,
    names: Annotated[Folder, Option(metavar="FILE", help=MAP)] = None,
    rail: Rail = 1,
    jobs: Annotated[bool, _JOBS] = False,
    metric: Annotated[Folder, _METRICS] = None,
    html: Annotated[Folder, _HTML] = None,
    as_json: options.Json = False,
) -> None:
    """Name each error of the fabric: links, switches, cables, names, counters, and what to do."""
    if as_json and str(metric) == "-":
        what = "--metrics - and --json: only one of them can be printed"
        raise InvalidInput(what, todo="name a file for --metrics")
    name, partition = split_name(system)
    described = load_system(name)
    if partition and like and not described.wiring:
        what, todo = "which nodes are its own is not described", f"check {name}, or describe it"
        raise InvalidInput(what, system, todo=f"{todo} as `wiring:` (docs/fabric.md)")
    rules = fault_policy()
    called, mends = cleaned(read_text(names) if names else "")
    plan = _read(like, called) if like else planned(described, rail)
    found = _read(folder, called)
    others = described.wiring.others if described.wiring else []
    seen = Comparison(plan, found, [*others, *rules.anywhere])
    if seen.missing == seen.switches:
        names_there = few(one.name for one in found.devices.values() if one.switch)
        todo = "give --names with names as in `wiring: names:` of the system's file, or --like"
        what = "no switch is called as one that is planned"
        raise InvalidInput(what, system, found=names_there or "no switch", todo=todo)
    faults = [Fault("names", f"{names}:{line}", says) for line, says in mends.items()]
    faults += seen.faults
    before, seconds = _read(since, called).counters if since else {}, 0.0
    if since:
        now = (folder / READ[0]).stat().st_mtime if folder else time.time()
        seconds = max(0.0, now - (since / READ[0]).stat().st_mtime)
    faults += count_faults(seen, before, seconds, rules)
    if partition:
        mine = partitions_of(described, partition)
        own = {one for one, its in planned(described, rail).partitions.items() if its in mine}
        faults = [one for one in faults if not one.nodes or own & set(one.nodes)]
    busy = jobs_by_node(_captured(folder, "squeue") if folder else _here("squeue")) if jobs else {}
    meet = [sorted({job for node in one.nodes for job in busy.get(node, ())}) for one in faults]
    if metric:
        text = metrics(seen, faults)
        typer.echo(text, nl=False) if str(metric) == "-" else write_atomically(metric, text)
    if html:
        write_atomically(html, page(seen, faults, rules, f"The fabric of {described.name}"))
    problems = []
    for one, its in zip(faults, meet, strict=True):
        because = f"in the way of {count(len(its), 'job')}: {few(its)}" if its else ""
        problems.append(Problem(one.says, one.place, because=because, todo=rules.todo(one.kind)))
    told = f"{found}" + ("" if found.counters else "; no counters were read")
    rows = [one._asdict() | {"jobs": its} for one, its in zip(faults, meet, strict=True)]
    data = {"system": described.name, "found": told, "faults": rows}
    failed = CheckFailed(*problems, outcome=f"Found: {told}.")
    lines = [] if faults or str(metric) == "-" else [f"{told}: no error"]
    say(data, as_json, *lines, failed=failed)


@app.command(epilog="Example: mvstack fabric describe comet --to fabric")
def describe(
    system: options.System,
    to: Annotated[Path, Option("--to", metavar="DIR", help="Where the files go.")],
    rail: Rail = 1,
) -> None:
    """Write the described fabric: for ibsim, a node-name-map, and Slurm's topology.conf."""
    found = load_system(system)
    fabric = planned(found, rail)
    files = files_of(found.wiring, fabric) if found.wiring else {}
    for name, text in files.items():
        write_atomically(to / name, text)
    typer.echo(f"{to}: {', '.join(files)}: {fabric}")


@app.command(epilog="Example: mvstack fabric names switches.map --to clean.map")
def names(
    file: Annotated[Path, Argument(metavar="FILE", help=MAP)],
    to: Annotated[Folder, _CLEAN] = None,
) -> None:
    """Clean a node-name-map of what parsers stumble over, and say each mend with its line."""
    found, mends = cleaned(read_text(file))
    for line, says in mends.items():
        typer.echo(f"{file}:{line}: {says}", err=True)
    typer.echo(written(found), nl=False) if to is None else write_atomically(to, written(found))
    typer.echo(f"{count(len(found), 'name')}, {count(len(mends), 'line')} mended", err=True)
