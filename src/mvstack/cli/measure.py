"""``mvstack compare`` and ``mvstack tune``: measure MPIs, and what makes ours faster."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mvstack.cli import options
from mvstack.install.stages import fetcher_for, installed_here
from mvstack.measure import mpis, omb, results
from mvstack.measure.bench import prepared
from mvstack.measure.compare import Asked, compare as measure, kept
from mvstack.sources.accepted import state_dir
from mvstack.support.console import say, table
from mvstack.support.errors import InvalidInput, MvstackError, gathered
from mvstack.support.files import write_atomically

app = options.commands()


def _sizes(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not (colon and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high)):
        raise InvalidInput(f"--sizes {text}: no sizes", allowed="MIN:MAX in bytes, as 8:1048576")
    return int(low), int(high)


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
    ops: Annotated[
        list[str] | None, Option("--ops", help=f"Operations: {', '.join(omb.OPERATIONS)}.")
    ] = None,
    rounds: Annotated[int, Option("--rounds", min=1, help="Measure everything so often.")] = 7,
    ranks: Annotated[int, Option("--ranks", min=2, help="Ranks of collectives.")] = 2,
    sizes: Annotated[str, Option("--sizes", metavar="MIN:MAX", help="Bytes.")] = "8:1048576",
    launcher: Annotated[
        list[str] | None,
        Option("--launcher", metavar="[MPI=]LINE", help="What starts {program} on {ranks}."),
    ] = None,
    omb_source: Annotated[
        Path | None, Option("--omb", metavar="DIR|TARBALL", help="Source of OMB; else fetched.")
    ] = None,
    to: Annotated[
        Path | None, Option("--to", metavar="DIR", help="Folder for results, JSON and plot.")
    ] = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Measure the installed MPIs against others in turns: OSU's benchmarks, checked first."""
    tree, plan = installed_here(system, release, root, "compare")
    for word in peer or ():
        mpis.checked(word)
    lines = mpis.launchers(launcher or [])
    asked = Asked(list(omb.operations(ops or [])), rounds, ranks)
    shown, cache = options.progress(as_json, 1), state_dir() / "measure"
    bounds, errors = _sizes(sizes), list[MvstackError]()
    with shown.step("prepare", "OMB with each MPI's own compiler") as step:
        source = omb.source(omb_source, fetcher_for(plan["root"]), cache)
        found = mpis.ours(plan, lines)
        for word in peer or ():
            step.note(word)
            with gathered(errors):
                found.append(mpis.peer(word, cache, lines))
        benches = []
        for one in found:
            step.note(one.name)
            with gathered(errors):
                benches.append(prepared(one, source, cache, bounds))
    folder = to or cache / f"{plan['system']}-{plan['partition']}"
    rows = measure(benches, asked, kept(benches, asked, folder), shown)
    names = [one.mpi.name for one in benches]
    ours = [one.mpi.name for one in benches if one.mpi.ours]
    data: dict[str, Any] = {
        "system": plan["system"],
        "partition": plan["partition"],
        "omb": omb.version_of(source),
        "ranks": ranks,
        "mpis": [{"name": b.mpi.name, "ours": b.mpi.ours, "version": b.version()} for b in benches],
        "absent": [one.as_dict() for error in errors for one in error.problems],
    }
    data |= results.found(rows, ours, names, os.cpu_count() or 1)
    write_atomically(folder / "compare.json", json.dumps(data, indent=1) + "\n", mode=None)
    results.draw(data, folder / "compare.svg")
    say(data, as_json, *results.tables(data, table), f"results: {folder}")
