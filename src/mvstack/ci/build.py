"""What build and stage jobs do: take what was handed over, build or install, and hand on."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from mvstack.builders.base import Row, Run, builder_of
from mvstack.cache.place import place
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import Given, job_key, shared
from mvstack.ci.lock import FOLDER
from mvstack.install.stages import fetcher_for
from mvstack.model.ci import TREE_LENGTH
from mvstack.model.system import Install
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.progress import Progress

DEFAULTS = Install()


def padded(root: Path, below: str, length: int = TREE_LENGTH) -> Path:
    """``root`` made so long that the tree ``below`` it has a path of ``length`` characters.

    ``below`` is the path of the tree below its root (``2026.11/mycluster-cpu``). A package can only
    be moved to a tree whose path is not longer than that where it was built (mvstack.cache.prefix),
    so a job builds below a long path, and the site installs where it wants.

    96 characters: a script may name its interpreter in at most 127 (Linux until 5.0, RHEL 8), and
    ``#!/bin/sh <tree>/software/bin/sbang``, which Spack writes, has 29 beside the tree's.

    Raises InvalidInput when the path is longer already.
    """
    root = root.absolute()
    found = len(str(root)) + 1 + len(below)
    if found == length:
        return root
    lacking = length - found - 1  # the slash before what is filled in
    if lacking < 1:
        raise InvalidInput(
            "the folder to build in has too long a path",
            str(root),
            found=f"{found} characters with {below}",
            allowed=f"at most {length - 2}",
            because="all jobs build below a path of the same length, so that what they build "
            "can be moved from each to each and to the site's install root",
            todo="give a shorter --root, e.g. one below /tmp",
        )
    return root / ("_" * lacking)


def below(plan: Plan) -> str:
    """The path of a plan's tree below its root."""
    return str(Path(plan.tree).relative_to(plan.root))


def build(
    plan: Plan,
    nodes: Iterable[str],
    hand: Path,
    given: Given,
    progress: Progress,
    jobs: int | None = None,
) -> list[Row]:
    """Build ``nodes`` of ``plan`` below its root and put them into the cache ``hand``.

    ``nodes`` are easyconfigs, or DAG hashes of a lock; the node WHOLE is all of a plan with a
    solver, solved for here if there is no lock, and its lock is handed on. What they stand on is
    taken from what was ``given``: handovers, then caches. A node that one of these has already is
    taken and not handed on again. The rows are those of builds.jsonl, with ``handed`` (bytes of the
    archive) where it was handed on.

    Raises Refused when something that is needed was not handed over or must not be used, and what
    :meth:`mvstack.builders.base.Builder.install` raises.
    """
    wanted, builder = frozenset(nodes), builder_of(plan.builder)
    fetcher = fetcher_for(plan.root, progress)
    with given.opened() as caches:
        only = None if WHOLE in wanted else wanted
        run = Run(fetcher, progress, jobs=jobs, caches=caches, wanted=only, lock=given.lock)
        rows = builder.install(plan, run)
        cached = {_key_of(row) for row in rows if row["result"] == "cached" or "from" in row}
        if only is None:
            wanted = builder.installed(plan)
            builder.hand_on(plan, hand / FOLDER)
        pushed = []
        if made := wanted - cached:
            # the key is made after the build: what a build runs cannot sign with it
            with progress.step("hand over", f"{len(made)} packages in {hand}"):
                to, key = place(str(hand)), job_key()
                pushed = builder.push(plan.as_dict(), to, key, progress, only=made)
        else:
            progress.skip("hand over", str(hand), "all of it came from caches")
    sizes = {_key_of(row): row["bytes"] for row in pushed}
    return [
        {**row, "handed": sizes[_key_of(row)]} if _key_of(row) in sizes else row for row in rows
    ]


def stage(plan: Plan, given: Given, progress: Progress, site: Install = DEFAULTS) -> list[Row]:
    """Install all of ``plan`` below its root from what was ``given``, and build nothing.

    Packages are believed when signed by a key of ``trust`` or by one that lies in a handover. The
    rows are those of builds.jsonl. Raises Refused for what none of them has or what must not be
    used, Locked, Missing.
    """
    with given.opened(only=True) as caches:
        if not caches.places:
            raise Refused(
                "nothing was handed over and no cache is named",
                f"{plan.system}/{plan.partition}",
                found=f"no cache in: {', '.join(map(str, given.take)) or 'no folder at all'}",
                todo="give the folders of the build jobs with --take, or name the site's cache",
                outcome="Nothing was installed.",
            )
        fetcher, lock = fetcher_for(plan.root, progress), given.lock
        run = Run(fetcher, progress, umask=site.umask, group=site.group, caches=caches, lock=lock)
        return builder_of(plan.builder).install(plan, run)


def _key_of(row: Row) -> str:
    """The node that a row of builds.jsonl is about: its easyconfig, or its DAG hash."""
    return str(row.get("easyconfig") or row["hash"])


def share_builder(plan: Plan) -> None:
    """Link the builder's own clones and sources below the root of ``plan`` to what jobs share.

    A job's own root is gone after it. Sources may have a place of their own (MVSTACK_SOURCES). A
    root that has its own keeps them.
    """
    folder = shared()
    sources = Path(os.environ.get("MVSTACK_SOURCES") or folder / "sources").absolute()
    sources.mkdir(parents=True, exist_ok=True)
    Path(plan.root).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (Path(plan.root) / "sources").symlink_to(sources)
    builder_of(plan.builder).share(plan, folder)
