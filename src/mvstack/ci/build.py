"""What build and stage jobs do: take what was handed over, build or install, and hand on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mvstack.builders.base import Run, builder_of
from mvstack.cache.place import place
from mvstack.cache.use import Caches
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import Given, caches_below, job_key, keyring
from mvstack.ci.lock import FOLDER
from mvstack.install.stages import fetcher_for
from mvstack.model.ci import TREE_LENGTH
from mvstack.model.system import Install
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.progress import Progress

Row = dict[str, Any]
_FILL = "_"


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
    return root / (_FILL * lacking)


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

    ``nodes`` are easyconfigs, or DAG hashes of Spack's lock; the node WHOLE is all of a plan of
    Spack's, solved for here if there is no lock, and its lock is handed on. What they stand on is
    taken from what was ``given``: handovers, then caches. A node that one of these has already is
    taken and not handed on again. The rows are those of builds.jsonl, with ``handed`` (bytes of the
    archive) where it was handed on.

    Raises Refused when something that is needed was not handed over or must not be used, and what
    :meth:`mvstack.builders.base.Builder.install` raises.
    """
    wanted = frozenset(nodes)
    taken = caches_below(given.take)
    names = [*map(str, taken), *given.caches]
    with keyring(taken, given.trust):
        builder = builder_of(plan.builder)
        run = Run(
            fetcher_for(plan.root, progress),
            progress,
            jobs=jobs,
            caches=Caches(tuple(map(place, names)), pass_over=True),
            wanted=None if WHOLE in wanted else wanted,
            lock=given.lock,
        )
        rows = builder.install(plan, run)
        cached = {_key_of(row) for row in rows if row["result"] == "cached" or "from" in row}
        if WHOLE in wanted:
            wanted = builder.installed(plan)
            builder.hand_on(plan, hand / FOLDER)
        handed = _hand(plan, wanted - cached, hand, progress)
    return [{**row, **handed.get(_key_of(row), {})} for row in rows]


def stage(plan: Plan, given: Given, progress: Progress, site: Install | None = None) -> list[Row]:
    """Install all of ``plan`` below its root from what was ``given``, and build nothing.

    Packages are believed when signed by a key of ``trust`` or by one that lies in a handover. The
    rows are those of builds.jsonl. Raises Refused for what none of them has or what must not be
    used, Locked, Missing.
    """
    taken = caches_below(given.take)
    names = [*map(str, taken), *given.caches]
    if not names:
        raise Refused(
            "nothing was handed over and no cache is named",
            f"{plan.system}/{plan.partition}",
            found=f"no cache in: {', '.join(map(str, given.take)) or 'no folder at all'}",
            todo="give the folders of the build jobs with --take, or name the site's cache",
            outcome="Nothing was installed.",
        )
    site = site or Install()
    with keyring(taken, given.trust):
        run = Run(
            fetcher_for(plan.root, progress),
            progress,
            umask=site.umask,
            group=site.group,
            caches=Caches(tuple(map(place, names)), only=True),
            lock=given.lock,
        )
        return builder_of(plan.builder).install(plan, run)


def share_spack(plan: Plan) -> None:
    """Link the pinned Spack below the root of ``plan`` to one that all jobs of this user share.

    A job's own root is gone after it. The shared clone lies where ci/get.sh keeps those of
    mvapich-stack (MVSTACK_CLONES), apart for protected pipelines. A root that has a Spack keeps it.
    """
    kind = "protected" if os.environ.get("CI_COMMIT_REF_PROTECTED") == "true" else "open"
    default = Path.home() / ".cache" / "mvapich-stack"
    folder = Path(os.environ.get("MVSTACK_CLONES") or default).absolute() / kind
    builder_of(plan.builder).share(plan, folder)


def _key_of(row: Row) -> str:
    """The node that a row of builds.jsonl is about: its easyconfig, or its DAG hash."""
    return str(row.get("easyconfig") or row["hash"])


def _hand(
    plan: Plan, only: frozenset[str], hand: Path, progress: Progress
) -> dict[str, dict[str, int]]:
    """Push ``only`` into ``hand``, signed with a key made for it; their sizes by key."""
    if not only:
        progress.skip("hand over", str(hand), "all of it came from caches")
        return {}
    # the key is made after the build: what a build runs cannot sign with it
    with progress.step("hand over", f"{len(only)} packages in {hand}"):
        push = builder_of(plan.builder).push
        pushed = push(plan.as_dict(), place(str(hand)), job_key(), progress, only=only)
    return {_key_of(row): {"handed": row["bytes"]} for row in pushed}
