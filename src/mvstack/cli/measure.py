"""``mvstack compare`` and ``mvstack tune``: measure MPIs, and what makes ours faster."""

import itertools
import json
import platform
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from mvstack.cli import options
from mvstack.discover import look
from mvstack.install.stages import fetcher_for, installed_here
from mvstack.measure import bench, mpis
from mvstack.measure.applications import applications, with_applications
from mvstack.measure.compare import Comparison, machine
from mvstack.model.tuning import UNTUNED, Tuned, load_tuning, tuned_file
from mvstack.render.templates import template
from mvstack.sources.accepted import state_dir
from mvstack.support import hashes
from mvstack.support.console import say, table
from mvstack.support.errors import CheckFailed, InvalidInput, MvstackError, gathered, together
from mvstack.support.files import write_atomically
from mvstack.support.home import checkout, home
from mvstack.support.processes import variable
from mvstack.test.run import alone
from mvstack.tree.folder import writable

app = options.commands()


def _sizes(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not (colon and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high)):
        raise InvalidInput(f"--sizes {text}: not MIN:MAX", allowed="bytes, such as 8:1048576")
    return int(low), int(high)


def _seconds(text: str) -> float:
    number, unit = text[:-1], {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    if not (unit and number.isdecimal() and int(number)):
        raise InvalidInput(f"--budget {text}: not a time", allowed="such as 90s, 20m or 2h")
    return float(number) * unit


def _target(plan: dict[str, Any], module: str) -> Path:
    """The site's file for what is tuned, or the repository's; never that for `local`."""
    site, named = home().site, (plan["system"], plan["partition"], module)
    if site is None and plan["system"] == "local":
        what = "what is tuned for this machine alone has no place in the repository"
        raise InvalidInput(what, todo="name a file (--to FILE), or your site's folder (--site DIR)")
    folder = site / "tuning" if site else checkout("mvstack tune") / "environments" / "tuning"
    return tuned_file(folder, *named)


_Ops = Annotated[
    list[str] | None, Option("--ops", help=f"With commas: {', '.join(bench.OPERATIONS)}.")
]
_Apps = Annotated[
    list[str] | None,
    Option("--app", metavar="PACKAGE", help="Run this installed package's check, too; repeat."),
]
_Confirms = Annotated[
    list[str] | None,
    Option("--app", metavar="PACKAGE", help="Keep nothing that slows it; repeat. Else HPCC."),
]
_Ranks = Annotated[int, Option("--ranks", min=2, help="Ranks of collectives.")]
_Sizes = Annotated[str, Option("--sizes", metavar="MIN:MAX", help="Message sizes in bytes.")]
_Launcher = Annotated[
    list[str] | None,
    Option("--launcher", metavar="[MPI=]LINE", help="Line that starts {program} on {ranks} ranks."),
]
_Omb = Annotated[
    Path | None, Option("--omb", metavar="DIR|TARBALL", help="Source of OMB; else fetched.")
]


@app.command(
    epilog="Examples: mvstack compare local --peer pypi:mpich --peer pypi:impi-rt   ·   "
    "mvstack compare expanse/cpu --peer module:openmpi/5.0.7 --ranks 128"
)
def compare(
    system: options.System = "local",
    peer: Annotated[
        list[str] | None,
        Option("--peer", help="Another MPI: pypi:…, system:…, module:… or prefix:DIR; repeat."),
    ] = None,
    ladder: Annotated[
        list[Path] | None,
        Option(
            "--ladder",
            metavar="DIR",
            help="Each installed MPI also over the libfabric or UCX of this prefix; repeat.",
        ),
    ] = None,
    ops: _Ops = None,
    app_: _Apps = None,
    rounds: Annotated[int, Option("--rounds", min=1, help="How often all is measured.")] = 7,
    ranks: _Ranks = 2,
    sizes: _Sizes = "8:1048576",
    launcher: _Launcher = None,
    omb: _Omb = None,
    to: Annotated[
        Path | None, Option("--to", metavar="DIR", help="Folder for results, JSON and plot.")
    ] = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Measure the installed MPIs against others in turns: OSU's benchmarks, checked first."""
    # here: --help comes before numpy is installed
    from mvstack.measure import results

    _, plan = installed_here(system, release, root, "compare")
    for word in peer or ():
        mpis.peer_word(word)
    for prefix in itertools.filterfalse(Path.is_dir, ladder or ()):
        raise InvalidInput(f"--ladder {prefix}: no such folder", todo="name the one above its lib/")
    mine = [row["module"] for row in plan["mpi"]]
    lines, bounds = mpis.launchers(launcher or [], [*mine, *(peer or ())]), _sizes(sizes)
    apps = applications(app_ or [], plan, ranks)
    names = [*(bench.operations(ops or []) if ops or not apps else ()), *apps]
    shown, cache = options.progress(as_json, 1), state_dir() / "measure"
    absent: list[MvstackError] = []
    benches = []
    with shown.step("prepare", "the benchmarks, with each MPI's own compiler") as step:
        code = bench.omb_source(omb, fetcher_for(plan["root"]), cache) if ops or not apps else None
        found = mpis.ours(plan, lines, absent)
        for one, prefix in itertools.product([*found], ladder or ()):
            step.note(f"{one.name} over {prefix}")
            with gathered(absent):
                found.append(mpis.over(one, prefix.absolute()))
        for word in dict.fromkeys(peer or ()):
            step.note(word)
            with gathered(absent):
                found.append(mpis.peer(word, cache, lines))
        for one in found:
            step.note(one.name)
            with gathered(absent):
                benches.append(bench.compiled(one, code, cache, bounds))
    if not benches:
        raise together(absent)
    for error in absent:  # said now, for to measure may take hours
        typer.echo(f"left out: {error}", err=True)
    benches = with_applications(benches, plan, apps)
    folder = to or cache / f"{plan['system']}-{plan['partition']}"
    comparison = Comparison(benches, names, ranks, rounds)
    with alone(folder / "measured", "this comparison"):
        rows = comparison.kept(folder)
        comparison.run(rows, shown)
        told = [{"name": x.mpi.name, "ours": x.mpi.ours, **x.told()} for x in benches]
        cores = int(str(told[0]["cores"]) or look().cores or 1)
        data: dict[str, Any] = {
            **{name: plan[name] for name in ("system", "partition")},
            "machine": {name: told[0][name] for name in bench.WHERE},
            "omb": code and bench.omb_version(code),
            "ranks": ranks,
            "crowded": cores if ranks > cores and not lines and len(machine()) == 1 else 0,
            "mpis": told,
            "absent": [one.as_dict() for error in absent for one in error.problems],
        }
        data |= results.found(rows.rows, {one.mpi.name: one.mpi.ours for one in benches}, cores)
        with writable("results cannot be kept", folder):
            write_atomically(folder / "compare.json", json.dumps(data, indent=1) + "\n", mode=None)
            results.draw(data, folder / "compare.svg")
    failed = None if data["operations"] else CheckFailed("nothing could be measured: see above")
    say(data, as_json, *results.tables(data, table), f"results: {folder}", failed=failed)


@app.command(
    epilog="Examples: mvstack tune expanse/cpu   ·   mvstack tune local --budget 10m --to my.yaml"
)
def tune(
    system: options.System = "local",
    mpi: Annotated[
        str, Option("--mpi", metavar="MODULE", help="The MPI's module; else the default one.")
    ] = "",
    budget: Annotated[str, Option("--budget", metavar="TIME", help="As 90s, 20m or 2h.")] = "1h",
    ops: _Ops = None,
    app_: _Confirms = None,
    ranks: _Ranks = 2,
    sizes: _Sizes = "8:1048576",
    launcher: _Launcher = None,
    omb: _Omb = None,
    fresh: Annotated[bool, Option("--fresh", help="Forget what earlier runs measured.")] = False,
    to: Annotated[
        Path | None,
        Option("--to", metavar="FILE", dir_okay=False, help="File to write; else the site's."),
    ] = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Search settings that make an MPI faster here, and keep what a second measurement confirms."""
    # here: --help comes before numpy is installed
    from mvstack.measure.statistics import Interval
    from mvstack.measure.tune import Request, Tuner

    _, plan = installed_here(system, release, root, "tune")
    module = mpi or plan["mpi"][0]["module"]
    modules = {one["module"]: one for one in plan["mpi"]}
    if module not in modules:
        raise InvalidInput(f"--mpi {mpi}: not installed here", allowed=", ".join(modules))
    file, limit, bounds = to or _target(plan, module), _seconds(budget), _sizes(sizes)
    file.parent.mkdir(parents=True, exist_ok=True)  # where that fails, now and not in an hour
    names = bench.operations(ops or ["latency,bw,allreduce,alltoall,bcast,allgather"])
    # the one of the default profile: what is kept must not make it slower
    usual = [one["name"] for one in plan["packages"] if one["name"] == "HPCC"]
    apps = applications(app_ or usual[:1], plan, ranks)
    shown, cache, seen = options.progress(as_json, 2), state_dir() / "measure", look()
    with shown.step("prepare", "the benchmarks"), variable(UNTUNED, "1"):
        source = bench.omb_source(omb, fetcher_for(plan["root"]), cache)
        absent: list[MvstackError] = []
        mine = mpis.ours(plan, mpis.launchers(launcher or [], [module]), absent, only=module)
        if absent:
            raise together(absent)
        built = bench.compiled(mine[0], source, cache, bounds)
        (built,) = with_applications([built], plan, apps)
        for name in [*apps]:
            try:
                built.verify(name, ranks)
            except bench.Wrong as wrong:
                if app_:
                    todo = "see `mvstack test`, or leave it out"
                    raise CheckFailed(f"{name} as it is: {wrong}", module, todo=todo) from None
                typer.echo(f"{name} is left out of the confirmation: {wrong}", err=True)
                del apps[name]
    told = built.told()
    cores = int(told["cores"] or seen.cores or 1)
    request = Request(names, ranks, cores, modules[module], load_tuning(), tuple(apps))
    key = hashes.of(built.folder.name, names, ranks, bounds, mine[0].launch, machine())[:12]
    folder = cache / "tune" / key
    with alone(folder, "this search"):
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        tuner = Tuner(built, request, folder, limit)
        found, on, nodes = tuner.run(shown), f"{ranks}, {tuner.other}", str(tuner.nodes)
    beneath = modules[module].get("transport", {}).get("library", "")
    externals = seen.externals if told["node"] == platform.node() else ()
    versions = {x.name: f"{x.name} {x.version}" for x in externals}
    data = {
        "mpi": module,
        "date": time.strftime("%F"),
        "machine": {name: told[name] or "unknown" for name in bench.WHERE}
        | {"mpi": told["version"], "transport": versions.get(beneath, beneath)},
        "measured": {"operations": " ".join(names), "ranks": on, "nodes": nodes, "bytes": sizes},
        **found,
    }
    Tuned.model_validate(data)
    write_atomically(file, template("tuned.yaml", data=data), mode=None)
    sets = found["sets"].items()
    rows = [[x, row["value"], f"{Interval(**row['gain'])} times as fast"] for x, row in sets]
    nothing = f"nothing is faster than the build as it is, of {found['tried']} candidates"
    kept = table(["variable", "value", "gain"], rows) if rows else nothing
    say(data, as_json, kept, f"written: {file}")
