"""Install a plan with Spack: clone, concretize, gates, sources, packages, modules, records.

Nothing that is half done can be loaded: a package counts as installed when Spack's database says
so, modules are written after all packages, each whole, the one that opens the tree last; and what
is to be built anew loses its module first. The same call after an interruption goes on.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from mvstack.builders.base import Row, Run
from mvstack.builders.spack import handed, lock, partial
from mvstack.builders.spack.cache import offered
from mvstack.builders.spack.environments import Environment
from mvstack.builders.spack.modules import Part, content_of, loader_folders, module_text, parts_of
from mvstack.builders.spack.prepared import (
    environments_of,
    files_of,
    for_tree,
    inputs_of,
    mirrors_of,
    record_of,
    store_of,
)
from mvstack.builders.spack.resolve import built, installed, read
from mvstack.builders.spack.resolve import pending as missing
from mvstack.builders.spack.runner import Spack
from mvstack.plan.types import Plan
from mvstack.render.partition import write
from mvstack.render.spack import compiler_of
from mvstack.support import hashes
from mvstack.support.errors import Missing
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress
from mvstack.tree import modules as core
from mvstack.tree.folder import enough_room, own
from mvstack.tree.lock import end_leftovers, locked
from mvstack.tree.records import Records

FREE_GB = 8  # the clones and their caches take about 1 GB, a build of the MPI and its tree the rest


def install(plan: Plan, run: Run) -> list[Row]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    With ``run.wanted`` no module is written. ``run.lock`` is a spack.lock that was solved for
    elsewhere (:mod:`mvstack.builders.spack.handed`).

    Raises Locked, Missing, SourceError, Refused (another commit; a lock of other inputs; what a
    wanted one needs is missing), InvalidInput (wanted and not locked), BuildFailed, CheckFailed
    (a gate).
    """
    root, tree = Path(plan.root), Path(plan.tree)
    lmod = core.lmod_folder(core.lmod_command())
    files = files_of(plan)
    inputs = inputs_of(files)
    os.umask(int(run.umask, 8))
    with locked(root):
        end_leftovers(tree)
        enough_room(root, FREE_GB)
        own(tree, run.group)
        records = Records(tree)
        if run.lock is not None:
            handed.put(run.lock, plan, inputs)
        _write(files, tree, inputs)
        records.plan(plan.as_dict())
        isolated = for_tree(plan, run.progress, run.jobs)
        isolated = replace(isolated, mirrors=mirrors_of(run.caches))
        isolated.write()
        environments = environments_of(isolated, plan, inputs)
        if run.wanted is not None:
            return partial.install(environments, run.wanted, run)
        rows = [row for one in environments[:-1] for row in _compiler(one, run)]
        stack = environments[-1]
        found = stack.locked(run.progress)
        lock.through_the_gates(found, plan.as_dict(), isolated.clones)
        parts = parts_of(plan)
        roots = _roots(stack.spack, found, plan, parts)
        todo = stack.pending(found)
        in_caches = offered(run.caches, todo) if run.caches else set()
        texts = {part: content_of(plan, part, roots.get(part.key, ""), inputs) for part in parts}
        changed = _changed(tree, records, texts)
        if todo or changed:
            for part in changed:
                core.withdraw(tree / "modules" / part.file)
            core.withdraw(core.core_module(plan))
        if todo:
            by_hash = {roots[part.key]: part for part in parts if part.key in roots}
            rows += stack.build(todo, by_hash, run, in_caches)
        else:
            run.progress.skip("install", f"{len(built(found.answer))} packages", "already there")
        if changed:
            _modules(stack.spack, plan, changed, roots, run.progress)
        _forgotten(tree, records, {part.file for part in parts})
        core.publish(plan, lmod)
    return rows


def _compiler(compiler: Environment, run: Run) -> list[Row]:
    """Install the compiler that the stack is built with, where Spack builds it."""
    todo = compiler.pending(compiler.locked(run.progress))
    if not todo and Path(compiler_of(compiler.plan)["prefix"]).exists():
        return []
    return compiler.build(todo, {}, run, offered(run.caches, todo) if run.caches else ())


def pending(plan: Plan) -> list[Row]:
    """What an installation would build, without touching anything.

    Where nothing was concretized for this plan yet, what is asked for is all that is known.
    """
    tree = Path(plan.tree)
    inputs = inputs_of(files_of(plan))
    file = tree / "rendered" / "spack" / "spack.lock"
    if file.is_file() and lock.known_inputs(record_of(tree)) == inputs:
        nodes = missing(read(file), installed(store_of(tree)))
        return [
            {
                "result": "would build",
                "package": node.name,
                "version": node.version,
                "module": "",
                "hash": node.hash,
            }
            for node in nodes
        ]
    return [
        {
            "result": "would concretize and build",
            "package": part.spec,
            "version": "",
            "module": part.key,
            "hash": "",
        }
        for part in parts_of(plan)
        if part.spec
    ]


def _write(files: dict[str, str], tree: Path, inputs: str) -> None:
    """Write what is rendered; locks beside it stay as long as their inputs stand."""
    for name, record in (("spack", "lock"), ("spack/compiler", "lock-compiler")):
        kept = tree / "rendered" / name / "spack.lock"
        known = lock.known_inputs(tree / "records" / f"{record}.json")
        if kept.is_file() and known == inputs:
            files = {**files, f"{name}/spack.lock": kept.read_text()}
    write(files, tree / "rendered")


def _roots(spack: Spack, found: lock.Locked, plan: Plan, parts: list[Part]) -> dict[str, str]:
    """Key of each part of the plan → hash of the root that it concretized to."""
    record = record_of(Path(plan.tree))
    asked = [{"key": part.key, "spec": part.spec, "over": part.over} for part in parts if part.spec]
    known = json.loads(record.read_text())
    mark = hashes.of(asked, found.inputs)
    if known.get("asked") == mark:
        roots: dict[str, str] = known["roots"]
        return roots
    answer = spack.ask("look", found.file.parent, {"parts": asked, "sources": []}, lambda _: None)
    roots = answer["roots"]
    lock.missing_roots(plan.as_dict(), asked, roots)
    write_atomically(record, json.dumps({**known, "asked": mark, "roots": roots}, indent=1) + "\n")
    return roots


def _changed(tree: Path, records: Records, wanted: dict[Part, str]) -> dict[Part, str]:
    """The modules that are not there, or not as they must be."""
    known = records.hashes()
    return {
        part: content
        for part, content in wanted.items()
        if known.get(part.file) != content or not (tree / "modules" / part.file).is_file()
    }


def _modules(
    spack: Spack,
    plan: Plan,
    wanted: dict[Part, str],
    roots: dict[str, str],
    progress: Progress,
) -> None:
    """Write every module whole, those below first, and note what each was made from."""
    tree = Path(plan.tree)
    records = Records(tree)
    there = installed(store_of(tree))
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
    lost = [row["key"] for row in asked if row["hash"] not in there]
    if lost:
        raise Missing(
            "Spack says that it installed this, and its database does not know it",
            ", ".join(lost),
            todo=f"look at {store_of(tree)}/.spack-db, then the same command again",
        )
    folder = tree / "rendered" / "spack"
    with progress.step("modules", f"{len(wanted)} of {plan.system}/{plan.partition}") as step:
        found = spack.ask("modules", folder, {"parts": asked}, step.note)
        loader = loader_folders()
        for part, content in wanted.items():
            text = module_text(plan, part, found.get(part.key, {}), loader)
            write_atomically(tree / "modules" / part.file, text)
            records.built(part.file, content)


def _forgotten(tree: Path, records: Records, files: set[str]) -> None:
    """Take away modules that an earlier plan of this tree had and this one has not."""
    for file in set(records.hashes()) - files:
        core.withdraw(tree / "modules" / file)
        records.forget(file)
