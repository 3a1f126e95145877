"""Install a plan with EasyBuild: sources, packages in order, modules, records.

Nothing that is half done can be loaded: EasyBuild writes a module last and whole
(easyconfigs/hooks.py), the Core module is written when all is there, and a package that must be
built anew loses its module first. The same call after an interruption goes on where it was.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mvstack.builders.easybuild import command as eb
from mvstack.builders.easybuild import partial, python
from mvstack.cache import use
from mvstack.cache.use import Caches
from mvstack.install.prerequisites import of_the_distribution
from mvstack.plan import easyconfigs, usage
from mvstack.plan.types import Plan
from mvstack.render.partition import package_easyconfigs, render, write
from mvstack.sources import Fetcher, SourceSpec, specs_from_easyconfigs
from mvstack.support.errors import BuildFailed, MvstackError, Problem, together
from mvstack.support.progress import Progress
from mvstack.tree import modules
from mvstack.tree.folder import enough_room, own
from mvstack.tree.lock import end_leftovers, locked
from mvstack.tree.nodes import State, Work, work
from mvstack.tree.records import Records

FREE_GB = 4  # a build of the MPI takes about 1.5 GB, its tree and the cache of ccache as much


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
    keep_going: bool = False,
) -> list[dict[str, Any]]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    What ``caches`` offer is taken from there, and the rest is built. With ``keep_going`` a failed
    build ends only what stands on it; the failures are raised together at the end.

    ``wanted`` are easyconfigs: then only they are built, what they stand on must be here or in the
    caches, the rest of the plan is left alone, and the tree gets no module that opens it.

    Raises Refused (no easyconfig; what a wanted one stands on cannot be had), InvalidInput (wanted
    and no part of the plan), Locked, SourceError, BuildFailed, Missing.
    """
    root, tree = Path(plan.root), Path(plan.tree)
    files = render(plan)
    os.umask(int(umask, 8))
    with locked(root):
        end_leftovers(tree)
        enough_room(root, FREE_GB)
        own(tree, group)
        rendered = tree / "rendered"
        write({**package_easyconfigs(plan), **files}, rendered)
        records = Records(tree)
        records.plan(plan.as_dict())
        todo = work(plan, files, records)
        if wanted is not None:
            todo = partial.considered(plan, todo, wanted)
        missing = [item for item in todo if item.state is not State.PRESENT]
        offered = use.offers(caches, missing, plan, progress) if caches and missing else {}
        to_build = [item for item in missing if item.node.easyconfig not in offered]
        if wanted is not None:
            partial.all_wanted(plan, to_build, wanted, caches)
        sources = _fetch(to_build, plan, rendered, fetcher, progress) if to_build else {}
        provided = tuple(_from_distribution(plan))
        easybuild = eb.EasyBuild(
            root,
            tree,
            rendered,
            plan.compiler["origin"] == "system",
            umask,
            jobs,
            plan.optimization,
            provided,
            python.for_builds(tree) if to_build and "Python" in provided else None,
        )
        _withdraw_changed(todo, plan)

        def act(item: Work) -> dict[str, Any]:
            if item.node.easyconfig in offered:
                return use.install(offered[item.node.easyconfig], item, plan, records, progress)
            return _one(item, easybuild, records, sources, plan, progress)

        rows = _each(todo, act, keep_going, progress)
        use.clear(plan)
        _usage(todo, files)
        if wanted is None:
            modules.publish(plan, modules.lmod_folder(easybuild.environment()["LMOD_CMD"]))
    return [row for row in rows if row]


def _from_distribution(plan: Plan) -> list[str]:
    """What lies beneath packages comes from where the compiler comes from."""
    system = plan.compiler["origin"] == "system"
    return of_the_distribution(plan.os, plan.profile) if system else []


def _usage(todo: list[Work], files: dict[str, str]) -> None:
    """Have the help of each MPI's module show this plan's words, wherever the module came from."""
    for item in todo:
        text = files.get(f"easyconfigs/{item.node.easyconfig}")
        if item.node.kind == "mpi" and text is not None:
            usage.refresh(item.module_file, usage.usage_of(text))


def pending(plan: Plan) -> list[Work]:
    """What an installation would build, without touching anything."""
    items = work(plan, render(plan), Records(Path(plan.tree)))
    return [item for item in items if item.state is not State.PRESENT]


def _each(
    todo: list[Work],
    act: Callable[[Work], dict[str, Any]],
    keep_going: bool,
    progress: Progress,
) -> list[dict[str, Any]]:
    """``act`` on all in order; to the first that fails, or on all that stand on none that did."""
    rows: list[dict[str, Any]] = []
    failed: list[MvstackError] = []
    without: set[str] = set()
    for item in todo:
        missed = [name for name in item.needs if name in without]
        if missed and item.state is not State.PRESENT:
            progress.skip("install", _what(item), f"it stands on {missed[0]}, which failed")
            without.add(item.node.easyconfig)
            continue
        try:
            rows.append(act(item))
        except BuildFailed as error:
            if not keep_going:
                raise
            failed.append(error)
            without.add(item.node.easyconfig)
    if failed:
        stood = len(without) - len(failed)
        on_them = f", and {stood} that stand on them were not tried" if stood else ""
        raise together(
            failed, f"{len(failed)} failed{on_them}; all others of the plan are installed."
        )
    return rows


def _what(item: Work) -> str:
    node = item.node
    return f"{node.name} {node.version}" + (f" for {node.mpi}" if node.mpi else "")


def _one(
    item: Work,
    easybuild: eb.EasyBuild,
    records: Records,
    sources: dict[str, list[dict[str, Any]]],
    plan: Plan,
    progress: Progress,
) -> dict[str, Any]:
    node = item.node
    what = _what(item)
    if item.state is State.PRESENT:
        progress.skip("install", what, "already there")
        if records.hashes().get(node.easyconfig) != item.content:
            records.built(node.easyconfig, item.content)  # a killed run did not come to it
        return {}
    log = easybuild.tree / "logs" / f"{node.easyconfig.removesuffix('.eb')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "package": node.name,
        "version": node.version,
        "module": node.module,
        "mpi": node.mpi,
        "easyconfig": node.easyconfig,
        "hash": item.content,
        "started": time.strftime("%FT%TZ", time.gmtime()),
        "host": socket.gethostname(),
        "cores": plan.cores,
        "log": str(log),
        "sources": sources.get(node.easyconfig, []),
    }
    more = ["--rebuild"] if item.state is State.CHANGED else []
    records.begin(node.easyconfig, item.content)
    began = time.monotonic()
    with progress.step("install", what, log=log) as step:
        try:
            built = eb.run(easybuild, node.easyconfig, log, step.note, *more)
        except BuildFailed:
            failed = {"result": "failed", "seconds": round(time.monotonic() - began, 1)}
            records.append("builds", {**row, **failed, "steps": {}})
            raise
    if not item.module_file.is_file():
        raise BuildFailed(
            Problem(
                f"EasyBuild installed {node.easyconfig} and wrote no module where it belongs",
                str(item.module_file),
                todo=f"look at the end of {log}: the naming scheme and the plan disagree",
            )
        )
    records.built(node.easyconfig, item.content)
    row |= {"result": "built", "seconds": round(built.seconds, 1), "steps": built.steps}
    records.append("builds", row)
    return row


def _withdraw_changed(todo: list[Work], plan: Plan) -> None:
    """Take away the modules of all that is built anew, and what opens the tree, before it starts.

    A package is built anew when what it stands on is: until then it could not run either.
    """
    changed = [item for item in todo if item.state is State.CHANGED]
    for item in changed:
        modules.withdraw(item.module_file)
    if changed:
        modules.withdraw(modules.core_module(plan))


def _fetch(
    missing: list[Work], plan: Plan, rendered: Path, fetcher: Fetcher, progress: Progress
) -> dict[str, list[dict[str, Any]]]:
    """Bring every source of what is missing into the mirror, before anything is built."""
    found: dict[str, list[dict[str, Any]]] = {}
    records = Records(Path(plan.tree))
    with progress.step("sources", f"of {len(missing)} packages") as step:
        for item in missing:
            for spec in specs_of(item.node.easyconfig, rendered):
                step.note(spec.filename)
                fetched = fetcher.fetch(spec)
                fetcher.link_easybuild(spec, fetched)
                row = fetched.as_dict()
                found.setdefault(item.node.easyconfig, []).append(row)
                records.append("sources", {"package": spec.software, **row})
    return found


def specs_of(easyconfig: str, rendered: Path | None = None) -> list[SourceSpec]:
    """The sources of one of our easyconfigs; a stock one is EasyBuild's own to fetch."""
    own = rendered / "easyconfigs" / easyconfig if rendered else None
    path = own if own and own.is_file() else easyconfigs.source_of(easyconfig, easyconfigs.index())
    return specs_from_easyconfigs([path]) if path else []
