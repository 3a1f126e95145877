"""``mvstack explain``: a plan as a person reads it, with what was passed over."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mvstack.cli import options
from mvstack.install import stages
from mvstack.model.base import Strict
from mvstack.model.system import System
from mvstack.plan.types import Extent, MpiBuild, Package, Plan
from mvstack.report.told import said_of
from mvstack.support.console import emit, pairs

app = options.commands()

SAID = {
    "rails": "{} links",
    "gbps": "{} Gb/s",
    "torus": "torus {}",
    "oversubscription": "{} oversubscribed",
    "pkey": "partition key: {}",
    "key": "{:#06x}",
    "numa": "NUMA {}",
}
STATUS = {
    "seed": "known from a talk; whether it still runs like this was not looked at",
    "retired": "retired: what it would get",
}


@app.command(
    epilog="Examples: mvstack explain expanse/cpu   ·   mvstack explain mine.yaml --json   ·   "
    "mvstack discover | mvstack explain -"
)
def explain(
    system: options.System = "local",
    release: options.ReleaseName = None,
    root: options.Root = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Show which MPI each partition gets, and why, with the source of each reason."""
    found, partitions = stages.load(system, release)
    extent = Extent(profile or "")
    plans = [stages.plan_for(found, name, release, root, extent=extent) for name in partitions]
    if as_json:
        emit({"plans": [plan.as_dict() for plan in plans]})
        return
    console = Console(highlight=False)
    for number, plan in enumerate(plans):
        if number:
            console.print()
        show_plan(plan, found, console)


def show_plan(plan: Plan, system: System, console: Console) -> None:
    """Print what ``plan`` chose, each choice with its reason and the source of that."""
    if plan.fallback:
        console.print(Text(plan.fallback, style="yellow"))
    title = f"{plan.system}/{plan.partition}"
    console.print(Text.assemble((title, "bold"), f"  {plan.title}  (release {plan.release})"))
    if system.status != "current":
        console.print(Text(STATUS[system.status], style="yellow"))
    console.print(pairs(machine(plan, system)))
    for number, build in enumerate(plan.mpi):
        console.print()
        console.print(_build(build, default=number == 0))
    if plan.profile != "default":
        console.print(f"\npackages of profile {plan.profile}, over {plan.mpi[0].module}")
        console.print(_packages(plan))
        left = [f"not {x['name']} {x['version']}: {x['because']}" for x in plan.left_out]
        _listed("", left, console)
    told = said_of(plan.system, plan.partition, "{product}/{version}".format(**vars(plan.mpi[0])))
    _listed("measured with this MPI", [f"{one.what}: {one.why}" for one in told], console)
    passed_over = [f"{x['build']}: {x['because']}  [{x['source']}]" for x in plan.passed_over]
    _listed("passed over", passed_over, console)
    unsure = [
        f"{field}: {why}"
        for field, why in system.confirm.items()
        if not field.startswith("partitions.") or field.split(".")[1] == plan.partition
    ]
    _listed("public knowledge that the site must confirm", unsure, console)


def _listed(heading: str, lines: list[str], console: Console) -> None:
    if heading and lines:
        console.print(f"\n{heading}")
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def machine(plan: Plan, system: System) -> list[tuple[str, str]]:
    """What the partition is, a label and words for each part of it."""
    part = system.partitions[plan.partition]
    gpu = f"{part.gpus} x {part.gpu} {part.gpu_model}".strip() if part.gpus else "no GPU"
    if part.gpus and part.gpu_buffers == "staged":
        gpu += ", buffers staged through host memory"
    nic = f" ({part.nic})" if part.nic else ""
    compiler = "{name} {version} from {origin}".format(**plan.compiler)
    return [
        ("machine", f"{plan.target}, {plan.cores} cores, {part.memory_gb or '?'} GB, {gpu}"),
        ("network", ", ".join([part.fabric + nic, *_said(part.network)])),
        *(("near", f"GPU {at}: {', '.join(_said(one))}") for at, one in enumerate(part.near)),
        ("system", f"{plan.os}, launcher {part.launcher}"),
        ("compiler", compiler),
        ("builder", f"{plan.builder}, below {plan.tree}"),
    ]


def _said(one: Strict) -> list[str]:
    """The fields that are given, in words: ``2 links``, ``40 Gb/s``, ``mlx4_0 mlx4_1``."""
    return [
        SAID.get(name, "{}").format(" ".join(map(str, value)) if type(value) is list else value)
        for name, value in one.model_dump(exclude_defaults=True).items()
    ]


def _build(build: MpiBuild, default: bool) -> Table:
    also = "" if default else "  (also built)"
    rows = [
        ("MPI", f"{build.product} {build.version} {build.device}{also}"),
        ("module", build.module),
        ("transport", " ".join(v for v in build.transport.values() if v)),
        ("PMI", build.pmi),
        ("launch", build.launch.format(ranks="N", program="./program")),
    ]
    for name, setting in build.environment.items():
        rows.append(("sets", f"{name}={setting['value']}   {setting['why']} [{setting['source']}]"))
    believe = build.believe
    seen = [f"version /{believe['library_version']}/"]
    seen += [f"device {believe['device']}"] if believe["device"] else []
    words = {"provider": "provider", "transports": "transports", "memory": "GPU memory by"}
    for name, said in words.items():
        if believe.get(name):
            seen.append(f"{said} {' or '.join(believe[name])}")
    rows.append(("believed", "when a check sees " + "; ".join(seen)))
    if build.gone:
        rows.append(("source", f"cannot be had: {build.gone}"))
    if build.not_upstream:
        said = f"not upstream's bytes: {build.not_upstream} (sha256 {build.accepted_sha256})"
        rows.append(("bytes", said))
    for reason in build.reasons:
        rows.append(("because", f"{reason['what']}: {reason['why']} [{reason['source']}]"))
    return pairs(rows)


def _packages(plan: Plan) -> Table:
    """Each package once, under the heading of its group, as `module load` knows it."""
    first = [one for one in plan.packages if one.mpi in ("", plan.mpi[0].module)]
    order = list(dict.fromkeys(one.group for one in first))
    first.sort(key=lambda one: order.index(one.group))
    return pairs([(one.group, f"{one.module}   {one.title}{_whose(one)}") for one in first])


def _whose(package: Package) -> str:
    said = f" [for group {package.readers}]" if package.readers else ""
    other = package.not_upstream
    return said + (f" [not upstream's bytes: {other}]" if other else "")
