"""What the tool itself costs: commands, set-up, growth with systems, modules, and install over eb.

Where somebody gets the same without this tool, that is measured, too, and the ratio is given.
Each figure is the median of several runs of a fresh process, with the least and the most beside it;
things to be compared run in turns, so that other work on the machine meets both. What cannot be
measured here is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mvstack.builders.easybuild.command import EasyBuild
from mvstack.install import stages
from mvstack.model.load import load_system, system_names
from mvstack.support.errors import MvstackError

TOP = Path(__file__).resolve().parents[1]
MVSTACK = str(TOP / "mvstack")


@dataclass(frozen=True)
class Figure:
    """Seconds that one command took: median, least and most of ``runs``.

    ``ratio`` says how many times as long as its peer, which is the row of that name.
    """

    name: str
    median_s: float
    least_s: float
    most_s: float
    runs: int
    peer: str = ""
    ratio: float | None = None


def figure(name: str, times: list[float]) -> Figure:
    """The figure of these times."""
    return Figure(name, statistics.median(times), min(times), max(times), len(times))


def beside(figures: list[Figure], name: str, peer: str, both: str = "") -> list[Figure]:
    """``figures``, of which ``name`` says its ratio to ``peer``; ``both`` is a part of either."""
    took = {one.name: one.median_s for one in figures}
    base = took.get(both, 0.0)
    ratio = (took[name] - base) / (took[peer] - base)
    return [replace(x, peer=peer, ratio=ratio) if x.name == name else x for x in figures]


def in_turns(commands: dict[str, list[str]], runs: int) -> list[Figure]:
    """Times all commands, one after the other, ``runs`` times; a command that fails is an error."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            begin = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, cwd=TOP)
            times[name].append(time.perf_counter() - begin)
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return [figure(name, taken) for name, taken in times.items()]


def command_line(runs: int, scratch: str) -> list[Figure]:
    """The launcher and the pure commands, beside an interpreter that does nothing."""
    partitions = [
        f"{name}/{part}"
        for name in system_names()
        if not (system := load_system(name)).discover
        for part in system.partitions
    ]
    names = system_names()
    figures = in_turns(
        {
            "python -c pass": [sys.executable, "-c", "pass"],
            "mvstack --version": [MVSTACK, "--version"],
            f"mvstack check, {len(names)} systems": [MVSTACK, "check"],
            f"mvstack explain {partitions[0]}": [MVSTACK, "explain", partitions[0]],
            f"mvstack render, {len(partitions)} partitions": [MVSTACK, "render", "--to", scratch],
        },
        runs,
    )
    offered = dict.fromkeys(one.partition("/")[0] for one in partitions)
    each = in_turns({one: [MVSTACK, "explain", one] for one in offered}, 1)
    title = f"mvstack explain, each of {len(each)} systems once"
    return [*figures, figure(title, [one.median_s for one in each])]


def first_call(scratch: Path, runs: int) -> list[Figure]:
    """A fresh clone until its first command is done, beside EasyBuild alone in an environment."""
    clone, alone = scratch / "clone", scratch / "alone"
    ours = f"rm -rf {clone}; git clone -q {TOP} {clone} && {clone}/mvstack --version"
    own = f"rm -rf {alone}; {sys.executable} -m venv {alone}"
    pip = f"{alone}/bin/pip install --no-input -q easybuild reframe-hpc"
    names = "first mvstack of a fresh clone", "python -m venv, pip install easybuild reframe-hpc"
    rows = {names[0]: ["bash", "-c", ours], names[1]: ["bash", "-c", f"{own} && {pip}"]}
    return beside(in_turns(rows, runs), *names)


def growth(counts: list[int]) -> list[dict[str, Any]]:
    """Reading, planning and rendering of generated systems; ``growth.py`` does each count."""
    script = str(TOP / "benchmarks" / "growth.py")
    return [
        json.loads(subprocess.check_output([sys.executable, "-P", script, str(n)], text=True))
        for n in counts
    ]


def module_command(tree: Path, plan: dict[str, Any], scratch: Path, runs: int) -> list[Figure]:
    """`module` in a bash that has just been started; the first row is what all of them hold."""
    bash = ["bash", "--norc", "--noprofile", "-c"]
    init, first = f"source {tree}/init/bash", "source init/bash alone"
    application = next(one["module"] for one in plan["packages"] if one["mpi"])
    ours, alone = f"and module load mvapich-stack {application}", "and the same by EasyBuild alone"
    gcc, mpi = plan["compiler"]["version"], plan["mpi"][0]["module"]
    plain = f"export MODULEPATH={without_ours(tree, scratch)}/Core"
    there = f"command -v {application.partition('/')[0]}"  # so that a load that failed is seen
    figures = in_turns(
        {
            first: [*bash, init],
            "and module avail": [*bash, f"{init}; module -t avail"],
            "and module load mvapich-stack": [*bash, f"{init}; module load mvapich-stack"],
            ours: [*bash, f"{init}; module load mvapich-stack {application} && {there}"],
            alone: [
                *bash,
                f"{init}; {plain}; module load gcc/{gcc} {mpi} {application} && {there}",
            ],
            "and module spider": [*bash, f"{init}; module -t spider"],
        },
        runs,
    )
    return beside(figures, ours, alone, first)


def without_ours(tree: Path, scratch: Path) -> Path:
    """The modules of ``tree`` as EasyBuild alone writes them: nothing after its own variables."""
    there, plain = tree / "modules", scratch / "modules"
    for path in there.rglob("*.lua"):
        if path.parent.name == "mvapich-stack":
            continue
        own = re.sub(r"\nUsage\n=+\n.*?(?=\n\nMore information)", "", path.read_text(), flags=re.S)
        own = re.sub(r"(\nsetenv\(.EBDEVEL[^\n]*\n).*", r"\1", own, flags=re.S)
        new = plain / path.relative_to(there)
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(own.replace(str(there), str(plain)))
    return plain


def install_command(tree: Path, *more: str) -> list[str]:
    """`mvstack install` of the tree that is there."""
    release, root = tree.parent.name, str(tree.parents[1])
    return [MVSTACK, "install", "local", "--root", root, "--release", release, *more]


def what_would_be_built(tree: Path) -> list[str]:
    """Names of what is not installed as its inputs say now."""
    asked = install_command(tree, "--dry-run", "--json")
    return [row["package"] for row in json.loads(subprocess.check_output(asked, text=True))]


def installing(tree: Path, plan: dict[str, Any], runs: int) -> list[Figure]:
    """What is there already, asked for again: `mvstack install` beside `eb` with its own options.

    Both end with nothing built. mvstack starts eb once for each package that it builds, so a build
    costs one start of eb a package more than one call of eb for all.
    """
    rendered = tree / "rendered"
    easybuild = EasyBuild(tree.parents[1], tree, rendered, plan["compiler"]["origin"] == "system")
    stack = (rendered / "easystack.yaml").read_text().splitlines()
    names = [line.split("- ")[1] for line in stack if line.strip().startswith("- ")]
    environment = [f"{name}={value}" for name, value in easybuild.environment().items()]
    eb = ["env", "-i", *environment, *easybuild.command(names[0])]
    ours = f"mvstack install, {len(names)} packages already there"
    all_of_them = f"eb, {len(names)} packages already there"
    figures = in_turns(
        {
            all_of_them: [*eb, *names[1:]],
            "eb, one package already there": eb,
            ours: install_command(tree),
        },
        runs,
    )
    return beside(figures, ours, all_of_them)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def show(figures: list[Figure], grown: list[dict[str, Any]], left_out: list[str]) -> None:
    """Prints all as tables."""
    console = Console()
    heads = "what", "median", "least", "most", "runs", "times its peer"
    table = Table(*heads, title="seconds of a fresh process")
    for one in figures:
        row = (f"{one.median_s:.3f}", f"{one.least_s:.3f}", f"{one.most_s:.3f}", str(one.runs))
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}  ({one.peer})"
        table.add_row(one.name, *row, ratio)
    console.print(table)
    keys = [
        "systems",
        "partitions",
        "files",
        "read_s",
        "plan_s",
        "render_s",
        "total_s",
        "memory_mb",
    ]
    table = Table(*keys, title="growth with generated systems")
    for row in grown:
        table.add_row(
            *(f"{row[k]:.2f}" if isinstance(row[k], float) else str(row[k]) for k in keys)
        )
    console.print(table)
    for reason in left_out:
        console.print(f"not measured: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, 10 and 100 systems only")
    parser.add_argument("--root", type=Path, help="install root whose `local` is measured")
    arguments = parser.parse_args()
    quick = arguments.quick
    left_out = []
    with tempfile.TemporaryDirectory() as scratch:
        figures = command_line(3 if quick else 10, scratch)
        try:
            figures += first_call(Path(scratch), 1 if quick else 3)
        except SystemExit as error:  # without a network, or an index of packages
            left_out.append(f"set-up: {error}")
        try:
            tree, plan = stages.installed_here("local", None, arguments.root, "install")
            figures += module_command(tree, plan, Path(scratch), 3 if quick else 10)
            pending = what_would_be_built(tree)
            if pending:
                left_out.append(f"install: it would build {', '.join(pending)}; install them first")
            else:
                figures += installing(tree, plan, 2 if quick else 5)
        except MvstackError as error:
            left_out.append(f"module and install: {error}")
    grown = growth([10, 100] if quick else [10, 100, 1000])
    show(figures, grown, left_out)
    now = datetime.now(UTC)
    path = TOP / "benchmarks" / "results" / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(exist_ok=True)
    result = {
        "when": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "commands": [asdict(one) for one in figures],
        "growth": grown,
        "not_measured": left_out,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path.relative_to(TOP))


if __name__ == "__main__":
    main()
