"""Locks of partitions and the record of them, environments/record.jsonl; see lock_systems."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from spack_here import install_root

from mvstack.builders.spack import environments, lock
from mvstack.install import stages
from mvstack.model.load import load_release, load_system, system_names
from mvstack.model.spack import spack_pins
from mvstack.model.spack_lock import Lock
from mvstack.plan.make import partitions_of, split_name
from mvstack.plan.types import Extent, Plan
from mvstack.report.seen import LOCKED, Locked, key_of, read_rows
from mvstack.support import hashes
from mvstack.support.errors import MvstackError
from mvstack.support.progress import Progress

NAMESPACES = ("mvapich_stack", "mvapich_stack_mends")


def offered() -> list[str]:
    """Every partition that something is offered on, but for `local`, which is what a machine is."""
    return [
        f"{name}/{part}"
        for name in system_names()
        if name != "local"
        for part in load_system(name).partitions
    ]


def plan_of(title: str, release: str | None = None) -> Plan:
    """The plan that `mvstack lock` takes for a partition."""
    name, part = split_name(title)
    system = load_release(release).then(load_system(name))
    partitions_of(system, part)  # says why, where nothing is offered
    return stages.plan_for(system, part, release, None, extent=Extent())


def read(path: Path = LOCKED) -> list[Locked]:
    """The rows of the record."""
    return read_rows(path, Locked, "tests/spack/lock_systems")


def holds(row: Locked) -> bool:
    """Whether a row is true of the partition as it is planned and rendered now."""
    try:
        return row.key == key_of(plan_of(row.partition, row.release), row.recipes)
    except MvstackError:
        return False  # it is offered no more


def merged(old: Iterable[Locked], new: Iterable[Locked]) -> list[Locked]:
    """``old`` with ``new`` in place of what is older, in order of names."""
    rows = {(row.partition, row.release): row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows)]


def written(rows: Iterable[Locked]) -> str:
    """The rows as the record's text."""
    return "".join(json.dumps(row.model_dump(), ensure_ascii=False) + "\n" for row in rows)


def row_of(plan: Plan, answers: list[Lock]) -> Locked:
    """The row for the locks of ``plan``: that of its stack, and before it that of its compiler."""
    pins = spack_pins()
    nodes = [node for answer in answers for node in answer.nodes.values()]
    recipes = sorted({node.name for node in nodes if node.namespace in NAMESPACES})
    return Locked(
        partition=f"{plan.system}/{plan.partition}",
        release=plan.release,
        date=time.strftime("%F", time.gmtime()),
        of={
            "spack": pins.spack.commit[:10],
            "spack-packages": pins.packages.commit[:10],
            "os": pins.os_of(plan.os),
            "target": next(root.target for root in answers[-1].root_nodes()),
            "mpi": " ".join(build.module for build in plan.mpi),
            "roots": len(answers[-1].roots),
            "packages": len(answers[-1].nodes),
            "compiler": len(answers[0].nodes) if answers[1:] else 0,
        },
        recipes=recipes,
        key=key_of(plan, recipes),
    )


def solved(plan: Plan, root: Path, progress: Progress, compilers: Path | None = None) -> list[Lock]:
    """The locks of ``plan``, through the gates, with Spack below ``root``; nothing is installed.

    Below ``compilers`` are locks of compilers from before: two that differ in the folder alone are
    one problem, which is solved once. Raises what solving and the gates raise.
    """
    text = environments.files_of(plan).get("spack/compiler/spack.yaml", "")
    lines = text.replace(plan.tree, "TREE").splitlines()
    asked = [line for line in lines if not line.lstrip().startswith("#")]
    known = compilers / hashes.of(asked) if compilers and asked else None
    answers = []
    with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as folder:
        for one in environments.prepared(plan, root, Path(folder), progress):
            if one.of_compiler and known and known.is_file():
                shutil.copyfile(known, one.file)
                one.record.parent.mkdir(exist_ok=True)
                one.record.write_text(json.dumps({"inputs": one.inputs}))
            answer = one.locked(progress)
            lock.through_the_gates(one, answer)
            if one.of_compiler and known:
                known.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one.file, known)
            answers.append(answer)
    return answers


def locked(titles: list[str], root: Path) -> Iterator[tuple[str, Locked | MvstackError]]:
    """Each partition with its row, or with why there is none; those that hold are passed over."""
    there = {row.partition for row in read() if row.release == load_release().name and holds(row)}
    for title in titles:
        if title not in there:
            try:
                plan = plan_of(title)
                answers = solved(plan, root, Progress(), root / "spack" / "locks-of-compilers")
                yield title, row_of(plan, answers)
            except MvstackError as error:
                yield title, error


def main() -> int:
    """See the head of lock_systems; 1 when a partition could not be locked."""
    if sys.argv[1:] == ["--drop"]:
        rows = read()
        kept = [row for row in rows if holds(row)]
        LOCKED.write_text(written(kept))
        print(f"{len(rows) - len(kept)} of {len(rows)} rows dropped")
        return 0
    failed = 0
    for title, found in locked(sys.argv[1:] or offered(), install_root()):
        if isinstance(found, Locked):
            LOCKED.write_text(written(merged(read(), [found])))
            print(f"{title}: {found.of}", flush=True)
        else:
            failed += 1
            print(f"{title}: {found}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
