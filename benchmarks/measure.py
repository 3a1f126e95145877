"""What the tool itself costs: commands, growth with systems, modules, and install over eb.

Each figure is the median of several runs of a fresh process, with the least and the most beside it;
things to be compared run in turns, so that other work on the machine meets both. What cannot be
measured here is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mvstack.builders.easybuild.command import EasyBuild
from mvstack.install import stages
from mvstack.model.load import load_release, load_system, system_names
from mvstack.support.errors import MvstackError

TOP = Path(__file__).resolve().parents[1]
MVSTACK = str(TOP / "mvstack")


@dataclass(frozen=True)
class Figure:
    """Seconds that one command took: median, least and most of ``runs``."""

    name: str
    median_s: float
    least_s: float
    most_s: float
    runs: int


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
    return [Figure(n, statistics.median(t), min(t), max(t), runs) for n, t in times.items()]


def command_line(runs: int, scratch: str) -> list[Figure]:
    """The launcher and the pure commands, beside an interpreter that does nothing."""
    partitions = [
        f"{name}/{part}"
        for name in system_names()
        if not (system := load_system(name)).discover
        for part in system.partitions
    ]
    return in_turns(
        {
            "python -c pass": [sys.executable, "-c", "pass"],
            "mvstack --version": [MVSTACK, "--version"],
            f"mvstack explain {partitions[0]}": [MVSTACK, "explain", partitions[0]],
            f"mvstack render, {len(partitions)} partitions": [MVSTACK, "render", "--to", scratch],
        },
        runs,
    )


def growth(counts: list[int]) -> list[dict[str, Any]]:
    """Reading, planning and rendering of generated systems; ``growth.py`` does each count."""
    script = str(TOP / "benchmarks" / "growth.py")
    return [
        json.loads(subprocess.check_output([sys.executable, "-P", script, str(n)], text=True))
        for n in counts
    ]


def module_command(tree: Path, runs: int) -> list[Figure]:
    """`module` in a bash that has just been started; the first row is what all of them hold."""
    bash = ["bash", "--norc", "--noprofile", "-c"]
    init = f"source {tree}/init/bash"
    return in_turns(
        {
            "source init/bash alone": [*bash, init],
            "and module avail": [*bash, f"{init}; module -t avail"],
            "and module load mvapich-stack": [*bash, f"{init}; module load mvapich-stack"],
            "and module spider": [*bash, f"{init}; module -t spider"],
        },
        runs,
    )


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
    return in_turns(
        {
            f"eb, {len(names)} packages already there": [*eb, *names[1:]],
            "eb, one package already there": eb,
            f"mvstack install, {len(names)} packages already there": install_command(tree),
        },
        runs,
    )


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
    table = Table("what", "median", "least", "most", "runs", title="seconds of a fresh process")
    for one in figures:
        row = (f"{one.median_s:.3f}", f"{one.least_s:.3f}", f"{one.most_s:.3f}", str(one.runs))
        table.add_row(one.name, *row)
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
    with tempfile.TemporaryDirectory() as scratch:
        figures = command_line(3 if quick else 10, scratch)
    grown = growth([10, 100] if quick else [10, 100, 1000])
    left_out = []
    try:
        root = str(arguments.root or stages.default_root())
        tree, plan = stages.installed_plan("local", "node", root, load_release().name)
        figures += module_command(tree, 3 if quick else 10)
        pending = what_would_be_built(tree)
        if pending:
            left_out.append(f"install: it would build {', '.join(pending)}; install them first")
        else:
            figures += installing(tree, plan, 2 if quick else 5)
    except MvstackError as error:
        left_out.append(f"module and install: {error}")
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
