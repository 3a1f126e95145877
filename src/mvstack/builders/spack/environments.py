"""The environments of a plan, the compiler's and the stack's, and the Spack that they are for."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mvstack.builders.spack import lock
from mvstack.builders.spack.clone import clones, home, present, python
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.lock import Environment
from mvstack.builders.spack.runner import Spack
from mvstack.cache.use import Caches
from mvstack.model.spack import spack_pins
from mvstack.model.spack_lock import Lock, read_lock
from mvstack.plan.spack import own_repositories, site_repositories
from mvstack.plan.types import MpiBuild, Package, Plan
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

    Each recipe inherits the site's, ours or builtin's, and gives the version the hash of the bytes
    that were accepted. It is the user's state and is never committed.
    """
    asked: dict[str, MpiBuild | Package] = {build.spack["spec"]: build for build in plan.mpi}
    asked |= {one.spack: one for one in plan.packages if one.spack}
    named = {spec.partition("@")[0]: one for spec, one in asked.items()}
    taken = {name: one for name, one in named.items() if any(one.accepted_sha256[:1])}
    if not taken:
        return {}
    head, repositories = generated(plan), {**site_repositories(), **own_repositories()}
    repo = template("spack/accepted/repo.yaml", head=head, namespace=NAMESPACE)
    files = {f"spack/{OVERLAY}/repo.yaml": repo}
    for package, one in taken.items():
        recipe = f"packages/{package.replace('-', '_')}/package.py"
        has = (name for name, place in repositories.items() if (place / recipe).is_file())
        values = {"head": head, "one": one, "package": package, "base": next(has, "builtin")}
        files[f"spack/{OVERLAY}/{recipe}"] = template("spack/accepted/package.py", **values)
    return files


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
    pins = spack_pins()
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


def prepared(plan: Plan, root: Path, place: Path, progress: Progress) -> list[Environment]:
    """The environments of ``plan``, in the folder ``place``; Spack is cloned below ``root``."""
    files = files_of(plan)
    write(files, place / "rendered")
    isolated = for_tree(root, place, progress)
    logs = isolated.clones.home / "logs" / f"{plan.system}-{plan.partition}"
    return environments_of(isolated, plan, lock.inputs_of(files), place, logs)


def solved(
    plan: Plan, root: Path, place: Path, progress: Progress
) -> Iterator[tuple[Environment, Lock]]:
    """The environments of ``plan`` solved for in the folder ``place``; nothing is installed.

    Raises what solving raises, and CheckFailed (a gate).
    """
    for one in prepared(plan, root, place, progress):
        answer = one.locked(progress)
        lock.through_the_gates(one, answer)
        yield one, answer


def given(
    environments: list[Environment], file: Path, progress: Progress
) -> Iterator[tuple[Environment, Lock]]:
    """The lock ``file``, and ``compiler/`` beside it if it is there, held to the gates.

    Raises InvalidInput for what is no lock, CheckFailed (a gate), BuildFailed (Spack cannot read
    it).
    """
    for one in environments:
        source = file.parent / "compiler" / lock.LOCK if one.of_compiler else file
        if source.is_file() or not one.of_compiler:
            answer = read_lock(source)
            shutil.copyfile(source, one.file)
            with progress.step("gates", one.what, log=one.spack.log("verify")):
                lock.through_the_gates(one, answer)
            yield one, answer
