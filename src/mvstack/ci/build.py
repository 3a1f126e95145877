"""What a build job does: take what was handed over, build its own packages, hand them on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mvstack.builders.base import install
from mvstack.builders.spack.builder import store_of
from mvstack.builders.spack.graph import installed, read_graph
from mvstack.builders.spack.handed import LOCK
from mvstack.builders.spack.handed import hand_on as handed_on
from mvstack.cache.place import place
from mvstack.cache.use import Caches
from mvstack.ci.graph import WHOLE
from mvstack.ci.handed_lock import FOLDER
from mvstack.ci.handover import caches_below, job_key, keyring
from mvstack.install.stages import fetcher_for
from mvstack.plan.types import Plan
from mvstack.sources import Fetcher
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.progress import Progress

Row = dict[str, Any]
TREE = 96  # characters of the path of a tree in which a job builds
_FILL = "_"
_LAST = 12  # lines of a failed build's log that its row quotes


def padded(root: Path, below: str, length: int = TREE) -> Path:
    """``root`` made so long that the tree ``below`` it has a path of ``length`` characters.

    A package can only be moved to a tree whose path is not longer than that of the tree where it
    was built (mvstack.cache.prefix), so a job builds below a long path, and the site installs where
    it wants. ``below`` is the path of the tree below its root (``2026.11/mycluster-cpu``).

    96 characters: a script may name its interpreter in at most 127 (BINPRM_BUF_SIZE of Linux until
    5.0, so also that of RHEL 8; 255 since 5.1). EasyBuild's packages of this stack have no script
    whose interpreter lies in the tree. Spack's have, and it writes ``#!/bin/sh
    <tree>/software/bin/sbang`` into them: 29 characters beside the tree's, which leaves 98 (and
    Spack refuses a path of sbang above 127). And a site's install root may then have 65 characters
    above ``/2026.11/qemu-debian12-mpich``, which is enough for people's paths.
    MPICH, HPCC and IMB were built so, moved to a short root and run there.

    Raises InvalidInput when the path is longer already.
    """
    root = root.absolute()
    found = len(str(root)) + 1 + len(below)
    if found == length:
        return root
    lacking = length - found - 1  # the slash before what is filled in
    if lacking < 1:
        raise InvalidInput(
            Problem(
                "the folder to build in has too long a path",
                str(root),
                found=f"{found} characters with {below}",
                allowed=f"at most {length - 2}",
                because="all jobs build below a path of the same length, so that what they build "
                "can be moved from each to each and to the site's install root",
                todo="give a shorter --root, e.g. one below /tmp",
            )
        )
    return root / (_FILL * lacking)


def below(plan: Plan) -> str:
    """The path of a plan's tree below its root."""
    return str(Path(plan.tree).relative_to(plan.root))


def build(
    plan: Plan,
    nodes: Iterable[str],
    take: Sequence[Path],
    hand: Path,
    trust: Sequence[Path],
    site_caches: Sequence[str],
    jobs: int | None,
    progress: Progress,
    *,
    lock: Path | None = None,
    fetcher: Fetcher | None = None,
) -> list[Row]:
    """Build ``nodes`` of ``plan`` below its root and put them into the cache ``hand``.

    ``nodes`` are easyconfigs, or DAG hashes of Spack's ``lock`` (``handed``). The
    node WHOLE is all of a plan of Spack's, solved for here without a ``lock``, which is handed on.
    What they stand on is taken from the handovers in ``take``, then from ``site_caches``, which are
    believed when signed by a key in a file of ``trust``. A node that one of these has already is
    taken and not handed on again. The rows are those of builds.jsonl, with ``handed`` (bytes of the
    archive) where it was handed on.

    Raises Refused when something that is needed was not handed over or must not be used, and what
    :func:`mvstack.builders.base.install` raises.
    """
    wanted = frozenset(nodes)
    taken = caches_below(take)
    with keyring(taken, trust):
        rows = install(
            plan,
            fetcher or fetcher_for(plan.root, progress),
            progress,
            jobs=jobs,
            caches=Caches(
                tuple(place(str(name)) for name in [*taken, *site_caches]), pass_over=True
            ),
            wanted=None if WHOLE in wanted else wanted,
            lock=lock,
        )
        cached = {key_of(row) for row in rows if from_cache(row)}
        if WHOLE in wanted:
            wanted = _all_of(plan)
            handed_on(plan, hand / FOLDER)
        handed = _hand(plan, wanted - cached, hand, progress)
    return [{**row, **handed.get(key_of(row), {})} for row in rows]


def _all_of(plan: Plan) -> frozenset[str]:
    """The hashes of all that Spack has installed for ``plan``."""
    there = installed(store_of(Path(plan.tree)))
    folder = Path(plan.tree) / "rendered" / "spack"
    locks = [one for one in (folder / "compiler" / LOCK, folder / LOCK) if one.is_file()]
    return frozenset(
        node.hash for one in locks for node in read_graph(one).built if node.hash in there
    )


def key_of(row: Row) -> str:
    """The node that a row of builds.jsonl is about: its easyconfig, or its DAG hash."""
    return str(row.get("easyconfig") or row["hash"])


def from_cache(row: Row) -> bool:
    """Whether what a row of builds.jsonl tells of was taken from a cache, and not built."""
    return row["result"] == "cached" or "from" in row


def _hand(
    plan: Plan, only: frozenset[str], hand: Path, progress: Progress
) -> dict[str, dict[str, int]]:
    """Push ``only`` into ``hand``, signed with a key made for it; their sizes by easyconfig."""
    from mvstack.builders.spack import cache as spack
    from mvstack.cache import push

    if not only:
        progress.skip("hand over", str(hand), "all that was wanted came from caches")
        return {}
    # the key is made when all is built: what a build runs cannot sign with it
    with progress.step("hand over", f"{len(only)} packages in {hand}"):
        pusher = spack.push if plan.builder == "spack" else push.push
        pushed = pusher(plan.as_dict(), place(str(hand)), job_key(), progress, only=only)
    return {key_of(row): {"handed": row["bytes"]} for row in pushed}


def rows_of(plan: Plan, nodes: Iterable[str]) -> list[Row]:
    """The last row of builds.jsonl for each of ``nodes``, also after a build that failed.

    A failed one has the last lines of its log as ``said``.
    """
    wanted = frozenset(nodes)
    found: dict[str, Row] = {}
    try:
        lines = (Path(plan.tree) / "records" / "builds.jsonl").read_text().splitlines()
    except OSError:
        return []
    for row in map(json.loads, lines):
        if WHOLE in wanted or key_of(row) in wanted:
            found[key_of(row)] = row
    return [
        {**row, "said": _last_lines(Path(row["log"]))} if row["result"] == "failed" else row
        for row in found.values()
    ]


def _last_lines(log: Path) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-_LAST:])
    except OSError as error:
        return f"its log {log} cannot be read: {error.strerror}"
