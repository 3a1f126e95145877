"""`mvstack show`: one thing of the stack."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Argument

from mvstack.cli import options
from mvstack.install.stages import root_for
from mvstack.model.load import load_system, system_names
from mvstack.plan.make import partitions_of, split_name
from mvstack.plan.types import MpiBuild, Plan
from mvstack.render.templates import labelled
from mvstack.report.offers import Planned, planned
from mvstack.report.seen import best
from mvstack.report.told import said_of
from mvstack.support.console import emit, pairs, say, table
from mvstack.support.errors import InvalidInput
from mvstack.support.units import duration
from mvstack.support.words import few, nearest

app = options.commands()
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Shown:
    """One thing: what it is, and of it facts, lines to copy, and a table of what has it."""

    kind: str
    name: str
    title: str
    facts: dict[str, list[str]]
    lines: dict[str, list[str]]
    rows: Rows


def _shown(kind: str, name: str, title: str, having: Rows, **values: Any) -> Shown:
    """What a template of shown/ says: ``label | words`` a line, ``$ `` before what is copied."""
    facts: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {}
    file = kind.lower() if kind in ("system", "partition", "package", "MPI") else "word"
    for label, words in labelled(file, kind=kind, **values):
        kept = lines if label.startswith("$ ") else facts
        kept.setdefault(label.removeprefix("$ "), []).append(words)
    return Shown(kind, name, title, facts, lines, having)


def _names(incomplete: str) -> list[str]:
    return [*options.systems(incomplete), *options.packages(incomplete)]


What = Annotated[
    str,
    Argument(
        metavar="WHAT",
        help="A system or one of its partitions, a system file, a package, a module, an MPI "
        "product, or a fabric, GPU or provider.",
        autocompletion=_names,
    ),
]


@app.command(
    epilog="Examples: mvstack show expanse/cpu   ·   mvstack show lammps   ·   mvstack show efa"
)
def show(
    what: What,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Show a system, package or MPI: what it has, its state, how to load and run it."""
    plans = planned(release)
    name = split_name(what)[0]
    if name in system_names() or name.endswith((".yaml", ".yml")) or name == "-":
        found = list(_system(what, plans, root))
    else:
        known = _others(plans)
        kinds = known.get(what.lower()) or _of_build(what.lower(), plans)
        found = [_other(kind, own, plans) for kind, own in kinds.items()]
    if not found:
        close = nearest(what, [*system_names(), *known])
        raise InvalidInput(
            f"nothing here is called {what}" + (f"; did you mean {close}?" if close else ""),
            nearest=close,
            todo="`mvstack list` and `mvstack list packages` list what there is",
        )
    if as_json:
        emit([one.__dict__ for one in found])
        return
    console = Console(highlight=False)
    for number, one in enumerate(found):
        head = Text.assemble((one.name, "bold"), f"  {one.title}  ({one.kind})")
        console.print(*([""] if number else []), head, sep="\n")
        console.print(pairs((label, text) for label in one.facts for text in one.facts[label]))
        for label, lines in one.lines.items():  # never wrapped: they are copied from here
            console.print(f"  {label}", *(f"    {x}" for x in lines), sep="\n", soft_wrap=True)
        if one.rows:
            say(None, False, "", rows_of(one.rows))


def rows_of(rows: Rows) -> Any:
    """Rows of one form as a table; a list is shown by its first words."""
    cells = ([few(v) if isinstance(v, list) else str(v) for v in row.values()] for row in rows)
    return table(list(rows[0]), cells)


def _system(what: str, plans: Planned, root: Path | None) -> Iterator[Shown]:
    """The system as a whole, unless one partition is named; and its partitions."""
    name, partition = split_name(what)
    system = plans.release.then(load_system(name))
    if system.discover:
        todo = "mvstack explain local"
        raise InvalidInput(f"{system.name} is the machine that one is on", todo=todo)
    then = f" --release {plans.release.name}" * bool(plans.release.systems)
    if not partition:
        yield _shown("system", system.name, system.title, [], system=system)
    for one in partitions_of(system, partition) if partition or system.partitions else ():
        place = Path(root_for(system, root))
        offer = plans.offer(system, one, str(place))
        yield _shown(
            "partition",
            offer.title,
            offer.part.title,
            [],
            offer=offer,
            system=system,
            plan=offer.plan,
            what=f"{name}/{one}{then}",
            root=place,
            here=installed(place, f"{system.name}-{one}"),
            figures=said_of(system.name, one),
        )


def installed(root: Path, folder: str) -> list[str]:
    """The releases below ``root`` that have a tree of that name."""
    plans = root.glob(f"*/{folder}/records/plan.json")
    return sorted(path.parents[2].name for path in plans)


def _others(plans: Planned) -> dict[str, dict[str, str]]:
    """By name in small letters what is no system: its kinds, and its name in each."""
    found: dict[str, dict[str, str]] = {}
    policy = plans.policy
    names = [
        *(("package", x.name, y) for x in plans.release.packages for y in (x.name, x.module)),
        *(("package", x.name, x.module.partition("/")[0]) for x in plans.release.packages),
        *(("MPI", name, name) for name in plans.release.mpi),
        *(("fabric", name, name) for name in policy.fabrics),
        *(("GPU", name, name) for name in policy.gpus),
        *(("provider", name, name) for name in _providers(plans)),
    ]
    for kind, own, name in names:
        found.setdefault(name.lower(), {}).setdefault(kind, own)
    return found


def _of_build(module: str, plans: Planned) -> dict[str, str]:
    """The product that ``module`` is a build of, as _others() has it; {} for none."""
    builds = (build for one in plans.every() if one.plan for build in one.plan.mpi)
    return next(({"MPI": one.product} for one in builds if one.module == module), {})


def _providers(plans: Planned) -> dict[str, Any]:
    """libfabric's providers that a fabric is driven by, each with the row that says why."""
    beneath = [row.libfabric for row in plans.policy.fabrics.values() if row.libfabric]
    own = {one.provider: one for one in reversed(beneath)}
    return own | {name: row for one in beneath for name, row in one.alternatives.items()}


def _other(kind: str, name: str, plans: Planned) -> Shown:
    """What is no system, with the partitions that have it."""
    policy = plans.policy
    if kind == "package":
        rows = [one for one in plans.release.packages if one.name == name]
        seen = best([row for module in {x.module for x in rows} for row in plans.rows[module]])
        on = _having(plans, lambda plan: [x.module for x in plan.packages if x.name == name])
        return _shown(kind, name, rows[0].title, on, rows=rows, seen=seen, duration=duration)
    if kind == "MPI":
        row, versions = policy.products[name], plans.release.mpi[name]
        on = _having(plans, lambda plan: [x.module for x in plan.mpi if x.product == name])
        return _shown(kind, name, row.title, on, row=row, versions=versions)
    tables: dict[str, dict[str, Any]] = {"fabric": {**policy.fabrics}, "GPU": {**policy.gpus}}
    row = tables.get(kind, _providers(plans))[name]

    def has(build: MpiBuild) -> bool:
        of = {"fabric": [build.fabric], "GPU": [build.gpu]}
        return name in of.get(kind, build.believe["provider"])

    on = _having(plans, lambda plan: [x.module for x in plan.mpi if has(x)])
    return _shown(kind, name, getattr(row, "title", ""), on, row=row)


def _having(plans: Planned, modules: Callable[[Plan], list[str]]) -> Rows:
    """A row for each partition in whose plan ``modules`` finds one."""
    return [
        {"partition": one.title, "module": module, "seen": one.seen}
        for one in plans.every()
        for module in dict.fromkeys(modules(one.plan) if one.plan else ())
    ]
