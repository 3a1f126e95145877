"""The two sides of a comparison: a folder with a whole repository, and what it renders.

Each side is rendered by its own code, in a process of its own: that is what an installation from
that revision would build. Here the effects are: git, a temporary folder, one process a side.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mvstack.builders.base import Rendered, builder_of
from mvstack.model.yamlfile import read_yaml
from mvstack.plan.graph import Graph
from mvstack.plan.types import plan_of
from mvstack.support.errors import InvalidInput, Missing, Refused
from mvstack.support.processes import Done, run

SECONDS = 300
"""How long a side may render before it counts as hanging; it takes about two."""


@dataclass(frozen=True)
class Side:
    """``tree`` is the repository's folder, ``rendered`` holds <system>/<partition>/plan.json."""

    name: str
    tree: Path
    rendered: Path


@contextmanager
def sides(
    repository: Path, revision: str, systems: list[str], profile: str = ""
) -> Iterator[tuple[Side, Side]]:
    """The side of ``revision`` and that of the working tree; both are gone afterwards.

    Raises InvalidInput for a revision that does not exist or cannot be rendered, Missing without
    git.
    """
    commit = resolve(repository, revision)
    with TemporaryDirectory(prefix="mvstack-diff-") as folder:
        base = Path(folder)
        old = Side(f"{revision} ({commit[:10]})", base / "tree", base / "old")
        new = Side("the working tree", repository, base / "new")
        extract(repository, commit, old.tree)
        for name in systems:
            if not has_system(old, name) and not has_system(new, name):
                raise _on_neither(old, new, name)
        for side in (old, new):
            there = [name for name in systems if has_system(side, name)]
            if there or not systems:  # without names all are rendered
                render(side, there, profile)
        yield old, new


def resolve(repository: Path, revision: str) -> str:
    """The commit that ``revision`` means; InvalidInput when it means none."""
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    commit = found.text.strip()
    if found.status or not commit:
        inside = _git(repository, "rev-parse", "--git-dir").ok
        raise InvalidInput(
            f"{revision} is not a revision of this repository"
            if inside
            else "this folder is not a git clone, so there is no revision to compare with",
            str(repository),
            found=found.stderr.decode(errors="replace").strip(),
            todo="give a commit, a tag or a branch, e.g. HEAD~1 or origin/main",
        )
    return commit


def extract(repository: Path, commit: str, folder: Path) -> None:
    """The files of ``commit`` below ``folder``."""
    archive = _git(repository, "archive", "--format=tar", commit)
    if archive.status:
        raise InvalidInput(
            f"git cannot give the files of {commit}",
            str(repository),
            found=archive.stderr.decode(errors="replace").strip(),
            todo="in a shallow clone: git fetch --unshallow",
        )
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        # Debian 12's Python 3.11.2 has no filters yet; the archive is git's, of this repository
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder, **safely)


def has_system(side: Side, name: str) -> bool:
    """Whether that side has the system and, where one is named, its partition.

    A file of somebody's own is on neither side.
    """
    system, _, partition = name.partition("/")
    path = side.tree / "environments" / "systems" / f"{system}.yaml"
    if not system or not path.is_file():
        return False
    try:
        known = read_yaml(path).data["partitions"] if partition else {}
    except (InvalidInput, KeyError, TypeError):
        return True  # rendering says what is wrong with it
    return not partition or partition in known


def _on_neither(old: Side, new: Side, name: str) -> InvalidInput:
    system, _, partition = name.partition("/")
    there = has_system(old, system) or has_system(new, system)
    return InvalidInput(
        f"neither side has a partition {name}"
        if partition and there
        else f"neither side has a system {system or name}".rstrip(),
        allowed="a system of this repository, or SYSTEM/PARTITION",
        because="a revision holds no file of your own" if name.endswith((".yaml", ".yml")) else "",
    )


def render(side: Side, systems: list[str], profile: str = "") -> None:
    """Render ``systems`` (all when empty) of ``side`` with its own code.

    ``profile`` is how much of the release, else as the partitions say.

    Raises InvalidInput, with what its code said, when that does not work.
    """
    if not any((side.tree / "src" / "mvstack").glob("**/rendering.py")):
        raise InvalidInput(
            "this revision is older than what is compared: it renders nothing",
            side.name,
            todo="compare with a newer one",
        )
    environment = {
        **os.environ,
        "PYTHONPATH": str(side.tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "mvstack", "render", *systems, "--to", str(side.rendered)]
    command += ["--profile", profile] if profile else []
    done = run(command, env=environment, cwd=side.tree, limit=SECONDS)
    if done.timed_out:
        raise Refused(f"rendering took more than {SECONDS} s", side.name)
    if done.status:
        said = [line for line in (done.errors or done.text).splitlines() if line.strip()]
        raise InvalidInput(
            "cannot be rendered",
            side.name,
            found="\n              ".join(said[:6]) or f"exit code {done.status}",
            todo="mvstack render says more"
            if side.name == "the working tree"
            else "its files or its code do not go with what is installed here: "
            "compare with a newer revision",
        )


def _git(repository: Path, *arguments: str) -> Done:
    # a site's checkout may belong to somebody else; what is read is what is run here anyway
    own = f"safe.directory={repository}"
    command = ["git", "-c", own, "-C", str(repository), *arguments]
    try:
        return run(command)
    except FileNotFoundError:
        raise Missing("git is not installed", todo="apt-get install git") from None


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
