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
from typing import TYPE_CHECKING, Any

from mvstack.builders.spack import accepted, handed, lock, partial
from mvstack.builders.spack.cache import offered
from mvstack.builders.spack.clone import clones, home, present
from mvstack.builders.spack.environments import Environment, apart
from mvstack.builders.spack.graph import installed, read_graph
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.modules import Part, content_of, loader_folders, module_text, parts_of
from mvstack.builders.spack.pins import Pins, load_pins
from mvstack.builders.spack.python import python
from mvstack.builders.spack.runner import Spack
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.render.spack import compiler_of
from mvstack.sources import Fetcher
from mvstack.support import hashes
from mvstack.support.errors import Missing, Problem
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress
from mvstack.tree import modules as core
from mvstack.tree.folder import enough_room, own
from mvstack.tree.lock import MARK, end_leftovers, locked
from mvstack.tree.records import Records

if TYPE_CHECKING:
    from mvstack.cache.use import Caches

FREE_GB = 8  # the clones and their caches take about 1 GB, a build of the MPI and its tree the rest
STEPS = 3  # Spack itself, the lock, the packages


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
    given: Path | None = None,
) -> list[dict[str, Any]]:
    """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run.

    What ``caches`` have is taken from there. ``wanted`` are DAG hashes: then only they are built,
    what they need must be here or in the caches, and no module is written. ``given`` is a
    spack.lock that was solved for elsewhere (:mod:`mvstack.builders.spack.handed`).

    Raises Locked, Missing, SourceError, Refused (another commit; a lock of other inputs; what a
    wanted one needs cannot be had), InvalidInput (wanted and not locked), BuildFailed, CheckFailed
    (a gate).
    """
    root, tree = Path(plan.root), Path(plan.tree)
    lmod = core.lmod_folder(core.lmod_command())
    files = environment(plan)
    pins = load_pins()
    inputs = lock.inputs_of(lock.environment_files(files), pins)
    os.umask(int(umask, 8))
    with locked(root):
        end_leftovers(tree)
        enough_room(root, FREE_GB)
        own(tree, group)
        records = Records(tree)
        if given is not None:
            handed.put(given, plan, inputs)
        _write(files, tree, inputs)
        records.plan(plan.as_dict())
        isolated = prepared(root, pins, progress, tree / "spack", store_of(tree), jobs, tree)
        isolated = replace(isolated, mirrors=mirrors_of(caches))
        isolated.write()
        if wanted is not None:
            both = [compiler_environment(isolated, plan, inputs)]
            both += [environment_of(isolated, plan, inputs)]
            return partial.install(
                [one for one in both if one], wanted, caches, fetcher, records, progress
            )
        rows = _compiler(isolated, plan, inputs, fetcher, records, progress, caches)
        stack = environment_of(isolated, plan, inputs)
        found = stack.locked(progress)
        lock.through_the_gates(found, plan.as_dict(), isolated.clones)
        parts = parts_of(plan)
        roots = _roots(stack.spack, found, plan, parts)
        todo = stack.pending(found)
        in_caches = offered(caches, todo) if caches else set()
        texts = {part: content_of(plan, part, roots.get(part.key, ""), inputs) for part in parts}
        changed = _changed(tree, records, texts)
        if todo or changed:
            for part in changed:
                core.withdraw(tree / "modules" / part.file)
            core.withdraw(core.core_module(plan))
        if todo:
            by_hash = {roots[part.key]: part for part in parts if part.key in roots}
            rows += stack.build(
                todo,
                by_hash,
                fetcher,
                records,
                progress,
                only_cached=bool(caches and caches.only),
                offered=in_caches,
            )
        else:
            progress.skip("install", f"{len(found.graph.built)} packages", "already there")
        if changed:
            _modules(stack.spack, plan, changed, roots, records, progress)
        _forgotten(tree, records, {part.file for part in parts})
        core.publish(plan, lmod)
    return rows


def _compiler(
    isolated: Isolated,
    plan: Plan,
    inputs: str,
    fetcher: Fetcher,
    records: Records,
    progress: Progress,
    caches: Caches | None,
) -> list[dict[str, Any]]:
    """Install the compiler that the stack is built with, where it is not the system's."""
    compiler = compiler_environment(isolated, plan, inputs)
    if compiler is None:
        return []
    todo = compiler.pending(compiler.locked(progress))
    if not todo and Path(compiler_of(plan)["prefix"]).exists():
        return []
    return compiler.build(
        todo,
        {},
        fetcher,
        records,
        progress,
        only_cached=bool(caches and caches.only),
        offered=offered(caches, todo) if caches else (),
    )


def pending(plan: Plan) -> list[dict[str, Any]]:
    """What an installation would build, without touching anything.

    Where nothing was concretized for this plan yet, what is asked for is all that is known.
    """
    tree = Path(plan.tree)
    inputs = lock.inputs_of(lock.environment_files(environment(plan)), load_pins())
    file = tree / "rendered" / "spack" / "spack.lock"
    if file.is_file() and lock.known_inputs(record_of(tree)) == inputs:
        nodes = read_graph(file).pending(installed(store_of(tree)))
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


def store_of(tree: Path) -> Path:
    """Where Spack installs packages of a tree."""
    return tree / "software"


def record_of(tree: Path) -> Path:
    """What is known of a tree's lock: its inputs, its roots, the seconds it took."""
    return tree / "records" / "lock.json"


def environment(plan: Plan) -> dict[str, str]:
    """All files of a partition, with the overlay of bytes that the user accepted."""
    return {**render(plan), **accepted.overlay(plan)}


def prepared(
    root: Path,
    pins: Pins,
    progress: Progress,
    state: Path,
    store: Path,
    jobs: int | None,
    tree: Path | None = None,
) -> Isolated:
    """Spack for one tree: cloned if need be, its Python made, its configuration written."""
    what = f"{pins.spack.tag} with packages {pins.packages.tag}"
    if present(root, pins) and (home(root, pins) / "python" / ".ready").is_file():
        cloned = clones(root, pins)
        interpreter = python(cloned.home)
        progress.skip("Spack", what, "already there")
    else:
        with progress.step("Spack", what) as step:
            cloned = clones(root, pins, step.note)
            interpreter = python(cloned.home, step.note)
    isolated = Isolated(
        clones=cloned,
        python=interpreter,
        state=state,
        store=store,
        root=root,
        jobs=jobs,
        repos=overlay_in(tree / "rendered" / "spack") if tree else {},
        marks={MARK: str(tree)} if tree else {},
    )
    isolated.write()
    return isolated


def overlay_in(folder: Path) -> dict[str, Path]:
    """The recipes of accepted bytes beside a rendered environment, if there are any."""
    found = folder / accepted.FOLDER
    return {accepted.NAMESPACE: found} if (found / "repo.yaml").is_file() else {}


def environment_of(isolated: Isolated, plan: Plan, inputs: str) -> Environment:
    """The stack's environment in the tree of ``plan``."""
    tree = Path(plan.tree)
    return Environment(
        Spack(isolated, tree / "logs"),
        plan,
        f"{plan.system}/{plan.partition}",
        tree / "rendered" / "spack",
        record_of(tree),
        inputs,
    )


def compiler_environment(isolated: Isolated, plan: Plan, inputs: str) -> Environment | None:
    """The environment of the compiler in the tree of ``plan``; None where it is the system's."""
    tree = Path(plan.tree)
    folder = tree / "rendered" / "spack" / "compiler"
    if not (folder / "spack.yaml").is_file():
        return None
    spack = Spack(apart(isolated, "compiler"), tree / "logs")
    what = f"the compiler of {plan.system}/{plan.partition}"
    return Environment(spack, plan, what, folder, tree / "records" / "lock-compiler.json", inputs)


def mirrors_of(caches: Caches | None) -> dict[str, dict[str, Any]]:
    """The binary mirrors of ``caches``: signed ones only."""
    return {
        f"mvapich-stack-cache-{number}": {
            "url": f"{place.url}/spack",
            "source": False,
            "binary": True,
            "signed": True,
        }
        for number, place in enumerate(caches.places if caches else (), 1)
    }


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
    records: Records,
    progress: Progress,
) -> None:
    """Write every module whole, those below first, and note what each was made from."""
    tree = Path(plan.tree)
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
            Problem(
                "Spack says that it installed this, and its database does not know it",
                ", ".join(lost),
                todo=f"look at {store_of(tree)}/.spack-db, then the same command again",
            )
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
