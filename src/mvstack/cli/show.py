"""`mvstack show` and `mvstack find`: one thing of the stack, and where a word leads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Argument

from mvstack.cli import options
from mvstack.cli.explain import machine
from mvstack.install.stages import root_for
from mvstack.model.load import load_system, system_names
from mvstack.model.release import Package
from mvstack.model.system import System
from mvstack.plan.make import partitions_of, split_name
from mvstack.report.offers import Offer, Planned, planned
from mvstack.report.seen import best
from mvstack.report.told import said_of
from mvstack.support.console import emit, pairs, say, table
from mvstack.support.errors import InvalidInput
from mvstack.support.units import duration
from mvstack.support.words import few, listed, nearest

app = options.commands()
Facts = list[tuple[str, str]]
KNOWN = {"public": "public documents, not confirmed by the site", "site": "the site itself"}
MANY = 8  # figures of a partition that are shown; `mvstack report` and the catalogue have all


@dataclass(frozen=True)
class Shown:
    """One thing: what it is, what is known of it, lines to copy, and a table of what has it."""

    kind: str
    name: str
    title: str
    facts: Facts
    lines: dict[str, list[str]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: a list of lines for each label."""
        facts: dict[str, list[str]] = {}
        for label, line in self.facts:
            facts.setdefault(label, []).append(line)
        return {**self.__dict__, "facts": facts}


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
    """Show a system, package or MPI: what it has, how far it came, how to load and run it."""
    plans = planned(release)
    name = split_name(what)[0]
    if name in system_names() or name.endswith((".yaml", ".yml")) or name == "-":
        found = list(_system(what, plans, root))
    else:
        known = _others(plans).get(what.lower(), ())
        found = [MAKERS.get(kind, _word)(kind, own, plans) for kind, own in known]
    if not found:
        raise _unknown(what, [*system_names(), *_others(plans)])
    if as_json:
        emit([one.as_dict() for one in found])
        return
    console = Console(highlight=False)
    for number, one in enumerate(found):
        head = Text.assemble((one.name, "bold"), f"  {one.title}  ({one.kind})")
        console.print(*([""] if number else []), head, sep="\n")
        console.print(pairs(one.facts))
        for label, lines in one.lines.items():  # never wrapped: they are copied from here
            console.print(f"  {label}", *(f"    {x}" for x in lines), sep="\n", soft_wrap=True)
        if one.rows:
            say(None, False, "", rows_of(one.rows))


def rows_of(rows: list[dict[str, Any]]) -> Any:
    """Rows of one form as a table; a list is shown by its first words."""
    cells = ([few(v) if isinstance(v, list) else str(v) for v in row.values()] for row in rows)
    return table(list(rows[0]), cells)


def _unknown(what: str, names: list[str]) -> InvalidInput:
    close = nearest(what, names)
    return InvalidInput(
        f"nothing here is called {what}" + (f"; did you mean {close}?" if close else ""),
        nearest=close,
        todo=f"`mvstack find {what}` looks for it everywhere; `mvstack list` and `mvstack list "
        "packages` list what there is",
    )


def _system(what: str, plans: Planned, root: Path | None) -> Iterator[Shown]:
    """The system as a whole, unless one partition is named; and its partitions."""
    name, partition = split_name(what)
    system = plans.release.then(load_system(name))
    if system.discover:
        raise InvalidInput(
            f"{system.name} is the machine that one is on", todo="mvstack explain local"
        )
    if not partition:
        yield Shown("system", system.name, system.title, _about(system))
    for one in partitions_of(system, partition) if partition or system.partitions else ():
        yield _partition(plans.offer(system, one), what, root)


def _about(system: System) -> Facts:
    status = f"{system.status}; known from {KNOWN[system.known]}"
    facts = [("site", system.site), ("status", status)]
    facts += [("source", f"{one.title} {one.page}".strip()) for one in system.sources]
    facts += [
        ("not offered", f"{system.name}/{name}, {nodes.title}: {nodes.because}")
        for name, nodes in system.not_offered.items()
    ]
    return [fact for fact in facts if fact[1]]


def _partition(offer: Offer, what: str, root: Path | None) -> Shown:
    part, plan, name = offer.part, offer.plan, offer.title
    if plan is None:
        return Shown("partition", name, part.title, [("MPI", f"none: {offer.because}")])
    facts = [*machine(plan, offer.system), ("nodes", f"{part.nodes:,}")]
    for one in plan.mpi:
        under = f"over {one.transport['library']}, PMI {one.pmi}"
        facts.append(("MPI", f"{one.module}: {one.software} {one.version}, {one.device} {under}"))
    why = f"mvstack explain {split_name(what)[0]}/{offer.name}"
    facts += [("why", why), ("seen", offer.seen)]
    place = Path(root_for(offer.system, root))
    there = installed(place, f"{offer.system.name}-{offer.name}")
    facts.append(("here", f"{listed(there)} below {place}" if there else "not installed"))
    first = plan.mpi[0]
    modules = dict.fromkeys(one.module for one in plan.packages if one.mpi in ("", first.module))
    facts.append(("software", listed(modules) or "none"))
    figures = said_of(offer.system.name, offer.name)
    facts += [("published", f"{one.what}: {one.why}") for one in figures[:MANY]]
    if len(figures) > MANY:
        facts.append(("published", f"and {len(figures) - MANY} more figures"))
    lines = {"load it": offer.loading(first.module), "run in a job": [offer.starting(first)]}
    if script := offer.job(first):
        lines[f"{plan.job['submit']}, where job.sh is"] = script
    return Shown("partition", name, part.title, facts, lines)


def installed(root: Path, folder: str) -> list[str]:
    """The releases below ``root`` that have a tree of that name."""
    plans = root.glob(f"*/{folder}/records/plan.json")
    return sorted(path.parents[2].name for path in plans)


def _others(plans: Planned) -> dict[str, list[tuple[str, str]]]:
    """By name in small letters what is no system: its kinds, and its name in each."""
    policy, found = plans.policy, dict[str, dict[str, str]]()
    packages = [
        (one.name, name)
        for one in plans.release.packages
        for name in (one.name, one.module, one.module.partition("/")[0])
    ]
    kinds: dict[str, Iterable[str]] = {"MPI": plans.release.mpi, "fabric": policy.fabrics}
    kinds |= {"GPU": policy.gpus, "provider": _providers(plans)}
    for own, name in packages:
        found.setdefault(name.lower(), {}).setdefault("package", own)
    for kind, names in kinds.items():
        for name in names:
            found.setdefault(name.lower(), {}).setdefault(kind, name)
    return {name: list(of.items()) for name, of in found.items()}


def _providers(plans: Planned) -> dict[str, str]:
    """libfabric's providers that a fabric is driven by, each with the reason."""
    found: dict[str, str] = {}
    for row in plans.policy.fabrics.values():
        if row.libfabric:
            found.setdefault(row.libfabric.provider, row.libfabric.why)
            found |= {name: one.why for name, one in row.libfabric.alternatives.items()}
    return found


def _package(kind: str, name: str, plans: Planned) -> Shown:
    rows = [one for one in plans.release.packages if one.name == name]
    first = rows[0]
    facts: Facts = [("from", first.page)] if first.page else []
    for one in rows:
        built = f"by {' and '.join(builders_of(one)) or 'no builder'}, profile {one.profile}"
        licence = f"; licence: {one.licence}" + (f", {one.terms}" if one.terms else "")
        facts.append((one.module, built + (licence if one.licence != "open" else "")))
        if one.why:
            facts.append((one.module, f"{one.why}{f' [{one.source}]' if one.source else ''}"))
    lines = {"load it": [f"module load mvapich-stack {first.module}"]}
    if any(one.by_easyconfig for one in rows):
        lines = {"install it on this machine": [f"mvstack install local {name.lower()}"], **lines}
    seen = best([row for module in {x.module for x in rows} for row in plans.rows[module]])
    for row in seen[:MANY]:
        took = f" in {duration(row.seconds)}" if row.seconds else ""
        words = (f"{row.state}{took}", row.mpi and f"over {row.mpi}", row.checks, row.figure)
        facts.append(("seen", f"{row.builder} {row.date}: {', '.join(filter(None, words))}"))
    if len(seen) > MANY or not seen:
        facts.append(("seen", f"and {len(seen) - MANY} rows more" if seen else "not tried yet"))
    on = [
        {"partition": offer.title, "module": one.module, "MPI": one.mpi, "seen": offer.seen}
        for offer in plans.every()
        for one in (offer.plan.packages if offer.plan else ())
        if one.name == name
    ]
    return Shown(kind, name, first.title, facts, lines, on)


def builders_of(one: Package) -> list[str]:
    """The builders that build a package of a release."""
    both = (("easybuild", one.toolchain), ("spack", one.spack))
    return [name for name, there in both if there and one.where.builder in ("", name)]


def _product(kind: str, name: str, plans: Planned) -> Shown:
    row = plans.policy.products[name]
    facts = [("form", row.form), ("source", row.source)]
    facts += [(one.version, f"{one.why} [{one.source}]") for one in plans.release.mpi[name]]
    offers = [(offer, x) for offer in plans.every() for x in (offer.plan.mpi if offer.plan else ())]
    rows = [
        {"partition": offer.title, "module": x.module, "device": x.device, "seen": offer.seen}
        for offer, x in offers
        if x.product == name
    ]
    return Shown(kind, name, row.title, facts, rows=rows)


def _word(kind: str, name: str, plans: Planned) -> Shown:
    """A fabric, a GPU or a provider of libfabric: why it is as it is, and who has it."""
    policy, facts, title = plans.policy, Facts(), ""
    if kind == "fabric":
        row, title = policy.fabrics[name], policy.fabrics[name].title
        facts += [("why", row.why), ("source", row.source), ("mind", row.loud)]
        if under := row.libfabric:
            facts.append(("libfabric", f"{under.variants}; FI_PROVIDER={under.provider}"))
        if row.ucx:
            facts.append(("UCX", f"{row.ucx.variants}; proved by {listed(row.ucx.believe)}"))
    elif kind == "GPU":
        facts += [("why", policy.gpus[name].why), ("source", policy.gpus[name].source)]
        facts.append(("models", listed(policy.gpus[name].architectures)))
    else:
        facts.append(("why", _providers(plans)[name]))

    def has(offer: Offer) -> bool:
        builds = offer.plan.mpi if offer.plan and kind == "provider" else []
        here = {"fabric": offer.part.fabric, "GPU": offer.part.gpu}.get(kind)
        return name == here or any(name in build.believe["provider"] for build in builds)

    rows = [
        {"partition": one.title, "MPI": one.mpi, "title": one.part.title}
        for one in plans.every()
        if has(one)
    ]
    return Shown(kind, name, title, [fact for fact in facts if fact[1]], rows=rows)


MAKERS = {"package": _package, "MPI": _product}


@dataclass(frozen=True)
class Hit:
    """Something that was found: its kind, its name, what it is, and what shows it."""

    kind: str
    name: str
    what: str
    see: str
    words: str = ""


@app.command(epilog="Examples: mvstack find h100   ·   mvstack find slingshot lammps --json")
def find(
    words: Annotated[list[str], Argument(metavar="WORD…", help="Words that must all be in it.")],
    release: options.ReleaseName = None,
    as_json: options.Json = False,
) -> None:
    """Find systems, partitions, packages, MPI builds, fabrics, GPUs and providers by a word."""
    every = list(_hits(planned(release)))
    wanted = " ".join(words).lower().split()
    found = [one for one in every if all(word in one.words.lower() for word in wanted)]
    if not found:
        known = {part for one in every for part in one.words.lower().split()}
        close = list(dict.fromkeys(filter(None, (nearest(word, known) for word in wanted))))
        raise InvalidInput(
            f"nothing has {' and '.join(wanted)} in its name or description",
            nearest=listed(close),
            todo="`mvstack list` and `mvstack list packages` list what there is",
        )
    data = [{k: v for k, v in one.__dict__.items() if k != "words"} for one in found]
    say(data, as_json, rows_of(data))


def _hits(plans: Planned) -> Iterator[Hit]:
    """Everything that can be found, with the text that is looked through."""

    def hit(kind: str, name: str, what: str, *more: str) -> Hit:
        return Hit(kind, name, what, f"mvstack show {name}", " ".join([name, what, *more]))

    offers = list(plans.every())
    for name in system_names():
        system = load_system(name)
        nodes = [one.title for one in system.not_offered.values()]
        yield hit("system", name, system.title, system.site, *nodes)
    for one in offers:
        part = one.part
        kit = f"{part.fabric} {part.gpu if part.gpus else ''} {part.gpu_model}"
        more = (kit, part.nic or "", part.target, one.system.os_of(one.name), part.launcher)
        yield hit("partition", one.title, part.title, *more, *one.mpi)
    for name in dict.fromkeys(one.name for one in plans.release.packages):
        rows = [one for one in plans.release.packages if one.name == name]
        yield hit("package", name, rows[0].title, rows[0].group, *(one.module for one in rows))
    for name, versions in plans.release.mpi.items():
        yield hit("MPI", name, plans.policy.products[name].title, *(x.version for x in versions))
    for name, fabric in plans.policy.fabrics.items():
        yield hit("fabric", name, fabric.title, fabric.why)
    for name, gpu in plans.policy.gpus.items():
        if name != "none":
            yield hit("GPU", name, gpu.why, *gpu.architectures)
    for name, why in _providers(plans).items():
        yield hit("provider", name, why)
