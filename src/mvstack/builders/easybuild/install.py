"""Install a plan with EasyBuild: sources, packages in order, modules, records.

Nothing that is half done can be loaded: EasyBuild writes a module last and whole
(easyconfigs/hooks.py), the Core module is written when all is there, and a package that must be
built anew loses its module first. The same call after an interruption goes on where it was.
"""

import time
from collections.abc import Callable
from pathlib import Path

from mvstack.builders.base import Rendered, Row, Run, refuse_lost, refuse_unknown, rendered_here
from mvstack.builders.easybuild import command as eb
from mvstack.builders.easybuild.expected import expected, times_known
from mvstack.cache import use
from mvstack.cache.use import Caches
from mvstack.model.prerequisites import of_the_distribution
from mvstack.plan import easyconfigs, usage
from mvstack.plan.easybuild import easybuild_graph
from mvstack.plan.graph import Graph
from mvstack.plan.types import Plan
from mvstack.render.partition import package_easyconfigs, write
from mvstack.render.templates import template
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SourceSpec
from mvstack.support.errors import BuildFailed, MvstackError, together
from mvstack.support.progress import Progress
from mvstack.tree import modules
from mvstack.tree.folder import installing
from mvstack.tree.records import Records, State, Work, build_row, work

FREE_GB = 4  # a build of the MPI takes about 1.5 GB, its tree and the cache of ccache as much


def install(plan: Plan, run: Run) -> list[Row]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    With ``run.keep_going`` a failed build ends only what stands on it; the failures are raised
    together at the end. Of ``run.wanted`` what they stand on must be here or in the caches; the
    rest of the plan is left alone.

    Raises Refused (no easyconfig; what a wanted one needs is missing), InvalidInput (wanted
    and not in the plan), Locked, SourceError, BuildFailed, Missing.
    """
    tree = Path(plan.tree)
    rendered, progress = rendered_here(plan), run.progress
    with installing(plan, run.umask, run.group, FREE_GB):
        files, records = {**package_easyconfigs(plan), **rendered.files}, Records(tree)
        write(files, tree / "rendered", remove=False)
        todo = work(resolve(rendered), tree)
        wanted = frozenset(item.node.key for item in todo) if run.wanted is None else run.wanted
        todo = _considered(plan, todo, wanted)
        missing = [item for item in todo if item.state is not State.PRESENT]
        offered = use.offers(run.caches, missing, plan, progress) if run.caches and missing else {}
        to_build = [item for item in missing if item.node.key not in offered]
        _refuse_others(plan, to_build, wanted, run.caches)
        takes = expected([item.node for item in to_build], times_known(tree))
        takes += f"; {len(offered)} come from caches" * bool(offered)
        sources = _fetch(to_build, tree, run, takes) if to_build else {}
        easybuild = _easybuild(plan, run, with_python=bool(to_build))
        _withdraw_changed(todo, plan)
        # nothing is refused from here on: until now the tree was as its last plan says
        write(files, tree / "rendered")
        records.plan(plan.as_dict())

        def act(item: Work) -> Row:
            if item.node.key in offered:
                row = use.install(offered[item.node.key], item, plan, records, progress)
            else:
                row = _one(item, easybuild, sources.get(item.node.key, []), plan, progress)
            # what an MPI says and sets of this plan, wherever its module came from
            for build in (one for one in plan.mpi if one.module == item.node.module):
                words = template("mpi_usage.txt", plan=plan, build=build)
                usage.refresh(item.module_file, words, template("tuned.lua", build=build))
            return row

        rows = _each(todo, act, run)
        use.clear(plan)
        if run.wanted is None:
            modules.publish(plan)
    return [row for row in rows if row]


def resolve(rendered: Rendered) -> Graph:
    """The graph of a plan by its easyconfigs."""
    return easybuild_graph(rendered.plan, rendered.files, rendered.repository)


def _easybuild(plan: Plan, run: Run, with_python: bool) -> eb.EasyBuild:
    tree, system = Path(plan.tree), plan.compiler["origin"] == "system"
    # what lies beneath packages comes from where the compiler comes from
    provided = tuple(of_the_distribution(plan.os, plan.profile)) if system else ()
    python = eb.python_for_builds(tree) if with_python and "Python" in provided else None
    told = (run.umask, run.jobs, plan.optimization, provided, python)
    return eb.EasyBuild(Path(plan.root), tree, tree / "rendered", system, *told)


def _each(todo: list[Work], act: Callable[[Work], Row], run: Run) -> list[Row]:
    """``act`` on all in order; to the first that fails, or on all that stand on none that did."""
    rows: list[Row] = []
    failed: list[MvstackError] = []
    without: set[str] = set()
    for item in todo:
        missed = [name for name in item.node.needs if name in without]
        if missed and item.state is not State.PRESENT:
            run.progress.skip("install", item.node.title, f"it stands on {missed[0]}, which failed")
            without.add(item.node.key)
            continue
        try:
            rows.append(act(item))
        except BuildFailed as error:
            if not run.keep_going:
                raise
            failed.append(error)
            without.add(item.node.key)
    if failed:
        stood = len(without) - len(failed)
        on_them = f", and {stood} that stand on them were not tried" if stood else ""
        raise together(
            failed, f"{len(failed)} failed{on_them}; all others of the plan are installed."
        )
    return rows


def _one(
    item: Work, easybuild: eb.EasyBuild, sources: list[Row], plan: Plan, progress: Progress
) -> Row:
    node, records = item.node, Records(easybuild.tree)
    if item.state is State.PRESENT:
        progress.skip("install", node.title, "already there")
        if records.hashes().get(node.key) != node.content:
            records.built(node.key, node.content)  # a killed run did not come to it
        return {}
    log = easybuild.tree / "logs" / f"{node.key.removesuffix('.eb')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    row = {**build_row(node, plan), "log": str(log), "sources": sources}
    more = ["--rebuild"] if item.state is State.CHANGED else []
    records.begin(node.key, node.content)
    began = time.monotonic()
    with progress.step("install", node.title, log=log) as step:
        try:
            steps = eb.run(easybuild, node.key, log, step.note, *more)
        except BuildFailed:
            row |= {"result": "failed", "seconds": round(time.monotonic() - began, 1)}
            records.append("builds", {**row, "steps": {}})
            raise
    if not item.module_file.is_file():
        raise BuildFailed(
            f"EasyBuild installed {node.key} and wrote no module where it belongs",
            str(item.module_file),
            todo=f"look at the end of {log}: the naming scheme and the plan disagree",
        )
    records.built(node.key, node.content)
    row |= {"result": "built", "seconds": round(sum(steps.values()), 1), "steps": steps}
    records.append("builds", row)
    return row


def _withdraw_changed(todo: list[Work], plan: Plan) -> None:
    """Take away the modules of all that is built anew, and what opens the tree, before it starts.

    A package is built anew when what it stands on is: until then it could not run either.
    """
    if changed := [item.module_file for item in todo if item.state is State.CHANGED]:
        modules.withdraw(*changed, modules.core_file(Path(plan.tree), plan.release))


def _fetch(missing: list[Work], tree: Path, run: Run, takes: str) -> dict[str, list[Row]]:
    """Bring every source of what is missing into the mirror, before anything is built."""
    found: dict[str, list[Row]] = {}
    records = Records(tree)
    with run.progress.step("sources", f"of {len(missing)} packages to build, {takes}") as step:
        for item in missing:
            for spec in specs_of(item.node.key, tree / "rendered"):
                step.note(spec.filename)
                fetched = run.fetcher.fetch(spec)
                run.fetcher.link_easybuild(spec, fetched)
                row = fetched.as_dict()
                found.setdefault(item.node.key, []).append(row)
                records.append("sources", {"package": spec.software, **row})
    return found


def specs_of(easyconfig: str, rendered: Path | None = None) -> list[SourceSpec]:
    """The sources of one of our easyconfigs; a stock one is EasyBuild's own to fetch."""
    own = rendered / "easyconfigs" / easyconfig if rendered else None
    path = own if own and own.is_file() else easyconfigs.source_of(easyconfig, easyconfigs.index())
    return specs_from_easyconfigs([path]) if path else []


def _considered(plan: Plan, todo: list[Work], wanted: frozenset[str]) -> list[Work]:
    """Of ``todo`` what is wanted and what that stands on, in order. Raises InvalidInput."""
    refuse_unknown(plan, wanted, [item.node.key for item in todo])
    needed = {name for item in todo if item.node.key in wanted for name in item.node.needs}
    return [item for item in todo if item.node.key in wanted | needed]


def _refuse_others(
    plan: Plan, to_build: list[Work], wanted: frozenset[str], caches: Caches | None
) -> None:
    """Raise Refused for what would be built and is not wanted: it should have been had."""
    if absent := [item.node for item in to_build if item.node.key not in wanted]:
        use.clear(plan)
        above = {
            node.key: [one.node.key for one in to_build if node.key in one.node.needs]
            for node in absent
        }
        told = [(one.key, f"content {one.content} for {plan.os}", above[one.key]) for one in absent]
        refuse_lost(plan, caches, told)
