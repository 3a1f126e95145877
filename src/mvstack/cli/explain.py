"""``mvstack explain``: a plan as a person reads it, with what was passed over."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mvstack.cli import options
from mvstack.install import stages
from mvstack.model.system import System
from mvstack.plan.types import Extent, Plan
from mvstack.render.templates import labelled
from mvstack.report.told import said_of
from mvstack.support.console import emit, pairs

app = options.commands()

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
    console.print(pairs(labelled("machine", plan=plan, system=system)))
    for number, build in enumerate(plan.mpi):
        console.print()
        console.print(pairs(labelled("build", build=build, default=number == 0)))
    if plan.profile != "default":
        console.print(f"\npackages of profile {plan.profile}, over {plan.mpi[0].module}")
        console.print(pairs(labelled("packages", plan=plan)))
    left = [f"not {x['name']} {x['version']}: {x['because']}" for x in plan.left_out]
    _listed("left out" if plan.profile == "default" else "", left, console)
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
