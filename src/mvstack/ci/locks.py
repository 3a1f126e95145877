"""What a pipeline's first job asks of Spack's locks: which are of its plans, and what cannot be.

Lock files come as `mvstack lock --to` writes them: <system>/<partition>/spack.lock and its record.
"""

from __future__ import annotations

import json
from pathlib import Path

from mvstack.builders.spack import handed
from mvstack.diff.sides import Side
from mvstack.plan.types import Plan, plan_of
from mvstack.render.spack import compiler_of
from mvstack.support.errors import InvalidInput, Problem


def spack_plans(side: Side) -> dict[str, Plan]:
    """The plans whose builder is Spack, as ``side`` rendered them with the code that runs here."""
    plans = [
        plan_of(json.loads(file.read_text()))
        for file in sorted(side.rendered.glob("*/*/plan.json"))
    ]
    return {f"{one.system}/{one.partition}": one for one in plans if one.builder == "spack"}


def refuse_own_compilers(plans: dict[str, Plan]) -> None:
    """Raise InvalidInput for partitions whose compiler Spack builds: no pipeline can make them."""
    built = [name for name, plan in plans.items() if compiler_of(plan)["built"]]
    if built:
        raise InvalidInput(
            *(
                Problem(
                    "Spack builds the compiler of this partition, and a pipeline cannot",
                    name,
                    found=f"compiler: {{origin: {plans[name].compiler['origin']}}}",
                    allowed="origin: system, or external with its prefix",
                    because="the compiler would stand in the tree, its path is part of the hash of "
                    "every package, and a pipeline builds, stages and deploys in three trees: what "
                    "one job makes fits in no other",
                    todo="name a compiler that has the same path wherever jobs run (origin: "
                    "external), or serve other `partitions:` in the settings and install this one "
                    f"by `mvstack install {name}`",
                )
                for name in built
            ),
            outcome="No pipeline was made.",
        )


def usable(folder: Path | None, plans: dict[str, Plan], notes: list[str]) -> dict[str, Path]:
    """The folders below ``folder`` with locks of ``plans``, by partition.

    A lock of something else is none, and a note says so. Raises InvalidInput without ``folder``.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InvalidInput(
            Problem(
                "there is no such folder of lock files",
                str(folder),
                todo="mvstack lock … --to DIR writes one",
            )
        )
    found: dict[str, Path] = {}
    for name, plan in plans.items():
        if not (folder / name / handed.LOCK).is_file():
            continue
        if handed.is_of(folder / name, plan):
            found[name] = folder / name
        else:
            notes.append(
                f"the lock file of {name} is not used, for it was solved for another plan: "
                f"mvstack lock … --to {folder.name}"
            )
    return found


def copied(locks: dict[str, Path], to: Path) -> Path:
    """``to`` with these locks alone, as :func:`mvstack.ci.graph.read_graphs` wants them."""
    for name, folder in locks.items():
        handed.write(handed.texts(folder), to / name)
    return to
