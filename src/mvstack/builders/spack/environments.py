"""The environments of a plan, the compiler's and the stack's, and the Spack that they are for."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mvstack.builders.spack import lock
from mvstack.builders.spack.clone import clones, home, load_pins, present, python
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.lock import Environment
from mvstack.builders.spack.runner import Spack
from mvstack.cache.use import Caches
from mvstack.model.spack_lock import Lock
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.render.templates import generated, template
from mvstack.support.progress import Progress
from mvstack.tree.folder import MARK

NAMESPACE = "mvapich_stack_accepted"
OVERLAY = f"repo-accepted/spack_repo/{NAMESPACE}"


def store_of(tree: Path) -> Path:
    """Where Spack installs packages of a tree."""
    return tree / "software"


def files_of(plan: Plan) -> dict[str, str]:
    """All files of a partition, with the overlay of bytes that the user accepted."""
    return {**render(plan), **overlay(plan)}


def overlay(plan: Plan) -> dict[str, str]:
    """The files, by name, of a package repository over ours; none when no bytes were accepted.

    It has the bytes that were accepted in place of upstream's: each recipe inherits ours and has
    one version more exactly said, the same with the hash that was accepted. It is the user's state
    and is never committed.
    """
    builds = {(build.product, build.version): build for build in plan.mpi if build.accepted_sha256}
    if not builds:
        return {}
    head = generated(plan)
    repo = template("spack/accepted/repo.yaml", head=head, namespace=NAMESPACE)
    files = {f"spack/{OVERLAY}/repo.yaml": repo}
    for build in builds.values():
        folder = build.product.replace("-", "_")
        name = "".join(part.capitalize() for part in build.product.split("-"))
        values = {"head": head, "build": build, "folder": folder, "name": name}
        path = f"spack/{OVERLAY}/packages/{folder}/package.py"
        files[path] = template("spack/accepted/package.py", **values)
    return files


def inputs_of(files: dict[str, str]) -> str:
    """What decides the locks of a partition whose files are ``files``."""
    return lock.inputs_of(lock.environment_files(files), load_pins())


def for_tree(
    root: Path,
    tree: Path,
    progress: Progress,
    jobs: int | None = None,
    caches: Caches | None = None,
    state: Path | None = None,
) -> Isolated:
    """Spack for one tree: cloned below ``root`` if need be, its Python made, configured.

    Its configuration goes into ``state``, else into the tree. Of the ``caches`` only what is signed
    is taken.
    """
    pins = load_pins()
    what = f"{pins.spack.tag} with packages {pins.packages.tag}"
    there = present(root, pins) and (home(root, pins) / "python" / ".ready").is_file()
    with contextlib.nullcontext() if there else progress.step("Spack", what) as step:
        note = step.note if step else lambda _: None
        found = clones(root, pins, note)
        interpreter = python(found.home, note)
    if there:
        progress.skip("Spack", what, "already there")
    accepted = tree / "rendered" / "spack" / OVERLAY
    binaries = {"source": False, "binary": True, "signed": True}
    isolated = Isolated(
        clones=found,
        python=interpreter,
        state=state or tree / "spack",
        store=store_of(tree),
        root=root,
        jobs=jobs,
        repos={NAMESPACE: accepted} if (accepted / "repo.yaml").is_file() else {},
        mirrors={
            f"mvapich-stack-cache-{number}": {"url": f"{place.url}/spack", **binaries}
            for number, place in enumerate(caches.places if caches else (), 1)
        },
        marks={MARK: str(tree)},
    )
    isolated.write()
    return isolated


def environments_of(
    isolated: Isolated, plan: Plan, inputs: str, tree: Path, logs: Path
) -> list[Environment]:
    """The environments in ``tree``: the compiler's, if Spack builds it, and the stack's.

    The compiler's has a configuration scope of its own: Spack finds the system's compilers and
    notes them in its scope, where the stack's environment must not see them.
    """
    name, found = f"{plan.system}/{plan.partition}", []
    for file, record in lock.RECORDS.items():
        place, spack, what = tree / "rendered" / "spack" / file, Spack(isolated, logs), name
        if not (place.parent / "spack.yaml").is_file():
            continue
        if file != lock.LOCK:
            own = replace(isolated, state=isolated.state / "compiler")
            own.write()
            spack, what = Spack(own, logs), f"the compiler of {name}"
        found.append(Environment(spack, plan, what, place, tree / "records" / record, inputs))
    return found


def solved(
    plan: Plan, root: Path, place: Path, progress: Progress
) -> Iterator[tuple[Environment, Lock]]:
    """The environments of ``plan`` solved for in the folder ``place``; nothing is installed.

    ``root`` is where Spack is cloned to. Raises what solving raises, and CheckFailed (a gate).
    """
    files = files_of(plan)
    write(files, place / "rendered")
    isolated = for_tree(root, place, progress)
    logs = isolated.clones.home / "logs" / f"{plan.system}-{plan.partition}"
    for one in environments_of(isolated, plan, inputs_of(files), place, logs):
        answer = one.locked(progress)
        compiler = one.file.parent.name == "compiler"
        lock.through_the_gates(answer, plan, isolated.clones, compiler)
        yield one, answer
