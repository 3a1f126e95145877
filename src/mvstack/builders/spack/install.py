"""Install a plan with Spack: clone, concretize, gates, sources, packages, modules, records.

Nothing that is half done can be loaded: a package counts as installed when Spack's database says
so, modules are written after all packages, each whole, the one that opens the tree last; and what
is to be built anew loses its module first. The same call after an interruption goes on.
"""

from collections.abc import Sequence
from pathlib import Path

from mvstack.builders.base import Row, Run, refuse_lost, refuse_unknown
from mvstack.builders.spack import handed, lock
from mvstack.builders.spack.cache import offered
from mvstack.builders.spack.environments import (
    environments_of,
    files_of,
    for_tree,
    store_of,
)
from mvstack.builders.spack.installing import build, build_each
from mvstack.builders.spack.lock import LOCK, RECORDS, Environment
from mvstack.builders.spack.modules import Part, content_of, loader_folders, module_text, parts_of
from mvstack.builders.spack.resolve import installed, read
from mvstack.builders.spack.resolve import pending as missing
from mvstack.model.spack_lock import Node
from mvstack.plan.types import Plan
from mvstack.render.partition import write
from mvstack.render.spack import compiler_of
from mvstack.support.errors import Missing
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress
from mvstack.tree import modules as core
from mvstack.tree.folder import installing
from mvstack.tree.records import Records

COMPILER = frozenset({"compiler"})
"""Wanted of a plan: the compiler that Spack builds for it, and no more."""
FREE_GB = 8  # the clones and their caches take about 1 GB, a build of the MPI and its tree the rest


def install(plan: Plan, run: Run) -> list[Row]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    With ``run.wanted`` no module is written; COMPILER is the compiler alone. ``run.lock`` is a
    spack.lock that was solved for elsewhere (:mod:`mvstack.builders.spack.handed`).

    Raises Locked, Missing, SourceError, Refused (another commit; a lock of other inputs; what a
    wanted one needs is missing), InvalidInput (wanted and not locked), BuildFailed, CheckFailed
    (a gate).
    """
    root, tree = Path(plan.root), Path(plan.tree)
    core.lmod_command(root)  # without it no module could be loaded in the end
    files = files_of(plan)
    inputs = lock.inputs_of(files)
    with installing(plan, run.umask, run.group, FREE_GB):
        if run.lock is not None:
            handed.put(run.lock, plan, inputs)
        _write(files, tree, inputs, remove=run.wanted is not None)
        if run.wanted is not None:
            Records(tree).plan(plan.as_dict())
        isolated = for_tree(root, tree, run.progress, run.jobs, run.caches)
        environments = environments_of(isolated, plan, inputs, tree, tree / "logs")
        if run.wanted not in (None, COMPILER):
            return install_part(environments[-1], run.wanted, run)
        rows = [row for one in environments[:-1] for row in _compiler(one, run)]
        if run.wanted:
            return rows
        stack = environments[-1]
        found = stack.locked(run.progress)
        lock.through_the_gates(stack, found)
        parts = parts_of(plan)
        roots = stack.roots(found)
        todo = missing(found, installed(store_of(tree)))
        in_caches = offered(run.caches, todo) if run.caches else set()
        texts = {part: content_of(plan, part, roots.get(part.key, ""), inputs) for part in parts}
        changed = _changed(tree, texts)
        # nothing is refused from here on: until now the tree was as its last plan says
        _write(files, tree, inputs)
        Records(tree).plan(plan.as_dict())
        if todo or changed:
            stale = [tree / "modules" / part.file for part in changed]
            core.withdraw(*stale, core.core_file(tree, plan.release))
        if todo:
            by_hash = {roots[part.key]: part for part in parts if part.key in roots}
            rows += build(stack, todo, by_hash, run, in_caches)
        else:
            run.progress.skip("install", f"{len(found.built())} packages", "already there")
        if changed:
            _modules(stack, changed, roots, run.progress)
        _forgotten(tree, {part.file for part in parts})
        core.publish(plan)
    return rows


def install_part(stack: Environment, wanted: frozenset[str], run: Run) -> list[Row]:
    """Install the ``wanted`` packages (DAG hashes) of the lock of ``stack``.

    What they need is taken from the caches. No module is written. Raises InvalidInput for a hash
    that the lock has not, Refused for what cannot be obtained.
    """
    answer = stack.locked(run.progress)
    refuse_unknown(stack.plan, wanted, answer.nodes)
    lock.through_the_gates(stack, answer)
    there, starts = installed(stack.spack.isolated.store), sorted(wanted)
    in_caches = offered(run.caches, missing(answer, there, (), starts)) if run.caches else set()
    needed = missing(answer, there, in_caches, starts)
    absent = [node for node in needed if node.hash not in wanted | in_caches]
    told = ((str(node), f"hash {node.hash}", _above(node, needed)) for node in absent)
    refuse_lost(stack.plan, run.caches, told)
    order = [node for node in needed if node.hash in wanted]
    if not order:
        run.progress.skip("install", f"{len(wanted)} packages", "already there")
        return []
    return build_each(stack, order, answer, run, in_caches)


def _above(below: Node, needed: Sequence[Node]) -> list[str]:
    """Those of ``needed`` that stand on a package directly."""
    return [
        str(node) for node in needed if any(edge.hash == below.hash for edge in node.dependencies)
    ]


def _compiler(compiler: Environment, run: Run) -> list[Row]:
    """Install the compiler that the stack is built with, where Spack builds it."""
    answer = compiler.locked(run.progress)
    lock.through_the_gates(compiler, answer)
    todo = missing(answer, installed(compiler.spack.isolated.store))
    if not todo and Path(compiler_of(compiler.plan)["prefix"]).exists():
        return []
    return build(compiler, todo, {}, run, offered(run.caches, todo) if run.caches else ())


def pending(plan: Plan) -> list[Row]:
    """What an installation would build, without touching anything.

    Where nothing was concretized for this plan yet, what is asked for is all that is known.
    """
    tree = Path(plan.tree)
    inputs = lock.inputs_of(files_of(plan))
    file = tree / "rendered" / "spack" / LOCK
    if file.is_file() and lock.known_inputs(tree / "records" / RECORDS[LOCK]) == inputs:
        nodes = missing(read(file), installed(store_of(tree)))
        told = [("would build", node.name, node.version, "", node.hash) for node in nodes]
    else:
        parts = [p for p in parts_of(plan) if p.spec and not getattr(p.build, "provided", "")]
        told = [("would concretize and build", part.spec, "", part.key, "") for part in parts]
    names = ("result", "package", "version", "module", "hash")
    return [dict(zip(names, row, strict=True)) for row in told]


def _write(files: dict[str, str], tree: Path, inputs: str, *, remove: bool = True) -> None:
    """Write what is rendered; locks beside it stay as long as their inputs stand."""
    for name, record in RECORDS.items():
        kept = tree / "rendered" / "spack" / name
        if kept.is_file() and lock.known_inputs(tree / "records" / record) == inputs:
            files = {**files, f"spack/{name}": kept.read_text()}
    write(files, tree / "rendered", remove=remove)


def _changed(tree: Path, wanted: dict[Part, str]) -> dict[Part, str]:
    """The modules that are not there, or not as they must be."""
    known = Records(tree).hashes()
    return {
        part: content
        for part, content in wanted.items()
        if known.get(part.file) != content or not (tree / "modules" / part.file).is_file()
    }


def _modules(
    stack: Environment, wanted: dict[Part, str], roots: dict[str, str], progress: Progress
) -> None:
    """Write every module whole, those below first, and note what each was made from."""
    plan, tree = stack.plan, Path(stack.plan.tree)
    asked = [
        {
            "key": part.key,
            "hash": roots[part.key],
            "over": roots.get(part.over, ""),
            "transport": part.transport,
        }
        for part in wanted
        if part.key in roots
    ]
    there = installed(store_of(tree))
    if absent := [row["key"] for row in asked if row["hash"] not in there]:
        raise Missing(
            "Spack says that it installed this, and its database does not know it",
            ", ".join(absent),
            todo=f"look at {store_of(tree)}/.spack-db, then the same command again",
        )
    with progress.step("modules", f"{len(wanted)} of {stack.what}") as step:
        found = stack.spack.ask("modules", stack.file.parent, {"parts": asked}, step.note)
        loader = loader_folders()
        for part, content in wanted.items():
            text = module_text(plan, part, found.get(part.key, {}), loader)
            write_atomically(tree / "modules" / part.file, text)
            Records(tree).built(part.file, content)


def _forgotten(tree: Path, files: set[str]) -> None:
    """Take away modules that an earlier plan of this tree had and this one has not."""
    records = Records(tree)
    for file in set(records.hashes()) - files:
        core.withdraw(tree / "modules" / file)
        records.forget(file)
