"""Which builder installs a plan: EasyBuild or Spack. The calls are the same for both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvstack.plan.types import Plan
from mvstack.sources import Fetcher
from mvstack.support.progress import Progress

if TYPE_CHECKING:
    from mvstack.cache.use import Caches


def install(
    plan: Plan,
    fetcher: Fetcher,
    progress: Progress,
    *,
    jobs: int | None = None,
    umask: str = "022",
    group: str | None = None,
    caches: Caches | None = None,
    wanted: frozenset[str] | None = None,
    lock: Path | None = None,
    keep_going: bool = False,
) -> list[dict[str, Any]]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    What ``caches`` offer is taken from there, and the rest is built. With ``wanted`` (easyconfigs,
    or DAG hashes for Spack) nothing else is built, and the tree gets no module that opens it.
    ``lock`` is a spack.lock that was solved for elsewhere; EasyBuild has none. With ``keep_going``
    a failed build ends only what stands on it, as it always does with Spack.
    """
    more: dict[str, Any] = {"jobs": jobs, "umask": umask, "group": group, "caches": caches}
    if plan.builder == "spack":
        from mvstack.builders.spack import builder

        return builder.install(plan, fetcher, progress, **more, wanted=wanted, given=lock)
    from mvstack.builders.easybuild import install as run

    return run.install(plan, fetcher, progress, **more, wanted=wanted, keep_going=keep_going)


def pending(plan: Plan) -> list[dict[str, Any]]:
    """What an installation would build, without touching anything: a row for each package."""
    if plan.builder == "spack":
        from mvstack.builders.spack import builder

        return builder.pending(plan)
    from mvstack.builders.easybuild import install as run

    return [
        {
            "result": f"would build ({item.state.value})",
            "package": item.node.name,
            "version": item.node.version,
            "module": item.node.module,
            "easyconfig": item.node.easyconfig,
            "hash": item.content,
        }
        for item in run.pending(plan)
    ]


def steps(plan: Plan) -> int:
    """How many steps of progress an installation shows beside that of the sources."""
    if plan.builder == "spack":
        from mvstack.builders.spack import builder

        return builder.STEPS
    from mvstack.render.partition import build_order

    return len(build_order(plan))
