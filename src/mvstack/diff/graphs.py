"""The graphs of what a side rendered: by lock files where both sides have them, else by plans."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mvstack.builders.base import Rendered, builder_of
from mvstack.diff.sides import Side
from mvstack.plan.graph import Graph
from mvstack.plan.types import plan_of
from mvstack.support.errors import InvalidInput

UNREADABLE = (KeyError, TypeError, AttributeError, ValueError, ImportError)
"""What reading a plan raises whose fields are not those known here."""


def read_side(side: Side) -> dict[str, Rendered]:
    """Every partition that ``side`` rendered, by ``system/partition``.

    Raises InvalidInput for a plan whose fields are not those known here.
    """
    return {
        "/".join(path.parent.relative_to(side.rendered).parts): _read(side, path.parent)
        for path in sorted(side.rendered.glob("*/*/plan.json"))
    }


def _read(side: Side, folder: Path) -> Rendered:
    texts = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    try:
        data = json.loads(texts["plan.json"])
        if lacking := {"system", "builder", "target", "compiler"} - set(data):
            raise KeyError(*sorted(lacking))
        return Rendered(plan_of(data), texts, side.tree)
    except UNREADABLE as error:
        raise unknown_plan(side, "/".join(folder.relative_to(side.rendered).parts), error) from None


def graph(side: Side, rendered: Rendered) -> Graph:
    """The graph of one partition; errors as :func:`read_side`."""
    plan = rendered.plan
    try:
        return builder_of(plan.builder).resolve(rendered)
    except UNREADABLE as error:
        raise unknown_plan(side, f"{plan.system}/{plan.partition}", error) from None


def unknown_plan(side: Side, name: str, error: Exception) -> InvalidInput:
    """The error for a plan that this code cannot read."""
    return InvalidInput(
        "this plan has other fields than this version knows",
        f"{side.name}: {name}",
        found=f"{type(error).__name__}: {error}",
        todo="compare with a newer revision",
    )


def both(
    old: Side, new: Side, old_locks: Path | None, new_locks: Path | None
) -> tuple[dict[str, Graph], dict[str, Graph]]:
    """The graphs of both sides, by partition.

    Lock files are looked for in the folders given (``<system>/<partition>/spack.lock``), else
    beside the committed environments of the side. They count where both sides have one. Raises
    InvalidInput for a folder that does not exist, and for folders in which no pair is found.
    """
    olds, news = read_side(old), read_side(new)
    common = sorted({*olds} & {*news})
    pairs = {
        name: (_lock(old, name, old_locks), _lock(new, name, new_locks))
        for name in common
        if builder_of(news[name].plan.builder).solves
    }
    locks = {name: pair for name, pair in pairs.items() if all(one.is_file() for one in pair)}
    _useful([one for one in (old_locks, new_locks) if one], common, locks)
    for name, (before, after) in locks.items():
        olds[name] = replace(olds[name], lock=before)
        news[name] = replace(news[name], lock=after)
    return (
        {name: graph(old, one) for name, one in olds.items()},
        {name: graph(new, one) for name, one in news.items()},
    )


def _lock(side: Side, partition: str, folder: Path | None) -> Path:
    if folder is not None:
        return folder / partition / "spack.lock"
    return side.tree / "environments" / "rendered" / partition / "spack" / "spack.lock"


def _useful(given: list[Path], partitions: list[str], found: Iterable[str]) -> None:
    """Raise InvalidInput for folders of lock files that are not there or give nothing."""
    for folder in given:
        if not folder.is_dir():
            raise InvalidInput("there is no such folder", str(folder))
    if given and partitions and not list(found):
        raise InvalidInput(
            "no partition that is compared has a lock file on both sides",
            ", ".join(map(str, given)),
            allowed=f"{given[0]}/{partitions[0]}/spack.lock and the like",
            todo="give --old-locks and --new-locks, each as `mvstack lock --to DIR` wrote it; "
            "without them plans are compared",
        )
