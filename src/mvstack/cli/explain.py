"""A plan as text that a person reads: what was chosen, why, and what was passed over."""

from __future__ import annotations

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mvstack.model.system import System
from mvstack.plan.types import MpiBuild, Package, Plan


def show_plan(plan: Plan, system: System, console: Console) -> None:
    """Print what ``plan`` chose, each choice with its reason and the source of that."""
    if plan.fallback:
        console.print(Text(plan.fallback, style="yellow"))
    title = f"{plan.system}/{plan.partition}"
    console.print(Text.assemble((title, "bold"), f"  {plan.title}  (release {plan.release})"))
    console.print(_machine(plan, system))
    for number, build in enumerate(plan.mpi):
        console.print()
        console.print(_build(build, default=number == 0))
    if plan.profile != "default":
        console.print(f"\npackages of profile {plan.profile}, over {plan.mpi[0].module}")
        console.print(_packages(plan))
        for row in plan.left_out:
            line = Text(f"not {row['name']} {row['version']}: {row['because']}")
            console.print(Padding(line, (0, 0, 0, 2)))
    if plan.passed_over:
        console.print("\npassed over")
        for item in plan.passed_over:
            line = Text(f"{item['build']}: {item['because']}  [{item['source']}]")
            console.print(Padding(line, (0, 0, 0, 2)))
    unsure = {
        field: why
        for field, why in system.confirm.items()
        if not field.startswith("partitions.") or field.split(".")[1] == plan.partition
    }
    if unsure:
        console.print("\npublic knowledge that the site must confirm")
        for field, why in unsure.items():
            console.print(Padding(Text(f"{field}: {why}"), (0, 0, 0, 2)))


def _machine(plan: Plan, system: System) -> Table:
    part = system.partitions[plan.partition]
    gpu = f"{part.gpus} x {part.gpu} {part.gpu_model}".strip() if part.gpus else "no GPU"
    if part.gpus and part.gpu_buffers == "staged":
        gpu += ", buffers staged through host memory"
    return _table(
        [
            ("machine", f"{plan.target}, {plan.cores} cores, {part.memory_gb} GB, {gpu}"),
            ("network", part.fabric + (f" ({part.nic})" if part.nic else "")),
            ("system", f"{plan.os}, launcher {part.launcher}"),
            (
                "compiler",
                f"{plan.compiler['name']} {plan.compiler['version']} "
                f"from {plan.compiler['origin']}",
            ),
            ("builder", f"{plan.builder}, below {plan.tree}"),
        ]
    )


def _build(build: MpiBuild, default: bool) -> Group:
    rows = [
        (
            "MPI",
            f"{build.product} {build.version} {build.device}"
            + ("" if default else "  (also built)"),
        ),
        ("module", build.module),
        ("transport", " ".join(v for v in build.transport.values() if v)),
        ("PMI", build.pmi),
        ("launch", build.launch.format(ranks="N", program="./program")),
    ]
    for name, setting in build.environment.items():
        rows.append(("sets", f"{name}={setting['value']}   {setting['why']} [{setting['source']}]"))
    believe = build.believe
    seen = [f"version /{believe['library_version']}/", f"device {believe['device']}"]
    if believe["provider"]:
        seen.append("provider " + " or ".join(believe["provider"]))
    if believe["transports"]:
        seen.append("transports " + " or ".join(believe["transports"]))
    if believe.get("memory"):
        seen.append("GPU memory by " + " or ".join(believe["memory"]))
    rows.append(("believed", "when a check sees " + "; ".join(seen)))
    if build.not_upstream:
        rows.append(
            (
                "bytes",
                f"not upstream's bytes: {build.not_upstream} (sha256 {build.accepted_sha256})",
            )
        )
    for reason in build.reasons:
        rows.append(("because", f"{reason['what']}: {reason['why']} [{reason['source']}]"))
    return Group(_table(rows))


def _packages(plan: Plan) -> Table:
    """Each package once, under the heading of its group, as `module load` knows it."""
    first = [one for one in plan.packages if one.mpi in ("", plan.mpi[0].module)]
    groups = list(dict.fromkeys(one.group for one in first))
    return _table(
        [
            (group, f"{one.module}   {one.title}" + _whose(one))
            for group in groups
            for one in first
            if one.group == group
        ]
    )


def _whose(package: Package) -> str:
    said = f" [for group {package.readers}]" if package.readers else ""
    return said + (
        f" [not upstream's bytes: {package.not_upstream}]" if package.not_upstream else ""
    )


def _table(rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2), pad_edge=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    previous = ""
    for label, value in rows:
        table.add_row(label if label != previous else "", Text(value))
        previous = label
    return table
