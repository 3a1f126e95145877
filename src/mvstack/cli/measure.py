"""``mvstack compare`` and ``mvstack tune``: measure MPIs, and what makes ours faster."""

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mvstack.cli import options
from mvstack.discover import look
from mvstack.install.stages import fetcher_for, installed_here
from mvstack.measure import bench, mpis, results
from mvstack.measure.compare import Comparison
from mvstack.sources.accepted import state_dir
from mvstack.support.console import say, table
from mvstack.support.errors import InvalidInput, MvstackError, gathered, together
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
        list[str] | None, Option("--ops", help=f"Operations: {', '.join(bench.OPERATIONS)}.")
    ] = None,
    rounds: Annotated[int, Option("--rounds", min=1, help="Measure everything so often.")] = 7,
    ranks: Annotated[int, Option("--ranks", min=2, help="Ranks of collectives.")] = 2,
    sizes: Annotated[str, Option("--sizes", metavar="MIN:MAX", help="Bytes.")] = "8:1048576",
    launcher: Annotated[
        list[str] | None,
        Option("--launcher", metavar="[MPI=]LINE", help="What starts {program} on {ranks}."),
    ] = None,
    omb: Annotated[
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
    _, plan = installed_here(system, release, root, "compare")
    for word in peer or ():
        mpis.peer_word(word)
    lines, bounds, names = (
        mpis.launchers(launcher or []),
        _sizes(sizes),
        bench.operations(ops or []),
    )
    shown, cache = options.progress(as_json, 1), state_dir() / "measure"
    absent: list[MvstackError] = []
    benches = []
    with shown.step("prepare", "the benchmarks, with each MPI's own compiler") as step:
        source = bench.omb_source(omb, fetcher_for(plan["root"]), cache)
        found = mpis.ours(plan, lines)
        for word in dict.fromkeys(peer or ()):
            step.note(word)
            with gathered(absent):
                found.append(mpis.peer(word, cache, lines))
        for one in found:
            step.note(one.name)
            with gathered(absent):
                benches.append(bench.compiled(one, source, cache, bounds))
    if not benches:
        raise together(absent)
    folder = to or cache / f"{plan['system']}-{plan['partition']}"
    comparison = Comparison(benches, names, ranks, rounds)
    rows = comparison.kept(folder)
    comparison.run(rows, shown)
    seen = look()
    data: dict[str, Any] = {
        "system": plan["system"],
        "partition": plan["partition"],
        "machine": {name: getattr(seen, name) for name in ("cpu", "cores", "os")},
        "omb": bench.omb_version(source),
        "ranks": ranks,
        "mpis": [
            {"name": one.mpi.name, "ours": one.mpi.ours, "version": one.version()}
            for one in benches
        ],
        "absent": [one.as_dict() for error in absent for one in error.problems],
    }
    ours = {one.mpi.name: one.mpi.ours for one in benches}
    data |= results.found(rows.rows, ours, seen.cores or 1)
    write_atomically(folder / "compare.json", json.dumps(data, indent=1) + "\n", mode=None)
    results.draw(data, folder / "compare.svg")
    say(data, as_json, *results.tables(data, table), f"results: {folder}")
