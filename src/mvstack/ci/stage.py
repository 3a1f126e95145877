"""What the stage job does: install all of a plan, from caches alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvstack.builders.base import install
from mvstack.cache.place import place
from mvstack.cache.use import Caches
from mvstack.ci.handover import caches_below, keyring
from mvstack.install.stages import fetcher_for
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem, Refused
from mvstack.support.progress import Progress


def stage(
    plan: Plan,
    take: Sequence[Path],
    trust: Sequence[Path],
    caches: Sequence[str],
    progress: Progress,
    *,
    umask: str = "022",
    group: str | None = None,
    lock: Path | None = None,
) -> list[dict[str, Any]]:
    """Install ``plan`` below its root from the handovers in ``take`` and the site's ``caches``.

    Nothing is built. What they have is believed when it is signed by a key in a file of ``trust``
    or by one that lies in a handover. ``lock`` is Spack's (``handed``). The rows
    are those of builds.jsonl. Raises Refused for what none of them has or what must not be used,
    Locked, Missing.
    """
    taken = caches_below(take)
    names = [*map(str, taken), *caches]
    if not names:
        raise Refused(
            Problem(
                "nothing was handed over and no cache is named",
                f"{plan.system}/{plan.partition}",
                found=f"no cache in: {', '.join(map(str, take)) or 'no folder at all'}",
                todo="give the folders of the build jobs with --take, or name the site's cache",
            ),
            outcome="Nothing was installed.",
        )
    with keyring(taken, trust):
        return install(
            plan,
            fetcher_for(plan.root, progress),
            progress,
            umask=umask,
            group=group,
            caches=Caches(tuple(place(name) for name in names), only=True),
            lock=lock,
        )
