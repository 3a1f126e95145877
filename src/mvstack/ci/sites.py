"""Both sides of a change in a site's project: its system files, rendered by the stack of each side.

A side is a commit of the site's project and the commit of mvapich-stack that it pins. Here the
effects are git, temporary folders, and one process a side that renders.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mvstack.diff.sides import Side, extract, has_system, render, resolve
from mvstack.errors import InvalidInput, Problem
from mvstack.model.ci import Settings, load_settings
from mvstack.model.load import REPOSITORY

PIN = re.compile(r"stack_commit:\s*(?:&[\w-]+\s+)?[\"']?([0-9a-f]{40})\b")
ANCHOR = re.compile(r"stack_commit:\s*\*([\w-]+)")
COMMENT = re.compile(r"(^|\s)#.*$", re.M)


@dataclass(frozen=True)
class Sides:
    """The side of before (None when there is nothing to compare with) and that of now."""

    old: Side | None
    new: Side
    against: str


@contextmanager
def both_sides(project: Path, settings: Settings, file: Path, base: str) -> Iterator[Sides]:
    """What ``project`` renders now and what it rendered at ``base``; gone afterwards.

    ``file`` is the settings file, named from the project. Raises InvalidInput for a base that is no
    commit, or a side that cannot be rendered.
    """
    with TemporaryDirectory(prefix="mvstack-ci-") as folder:
        there = Path(folder)
        own = project.resolve() == REPOSITORY.resolve()
        new = Side("the working tree", REPOSITORY, there / "new")
        # of this repository all systems are looked at, whoever has runners for them
        render(new, [] if own else _systems(settings, project, new))
        if not base:
            yield Sides(None, new, "nothing: all is new")
            return
        commit = resolve(project, base)
        before = there / "project"
        extract(project, commit, before)
        name = f"{base} ({commit[:10]})" if base != commit else commit[:10]
        tree, old_settings = _stack(project, before, there, own), None
        if (before / file).is_file():
            old_settings = load_settings(before / file)
        old = Side(name, tree, there / "old")
        systems = _systems(old_settings, before, old) if old_settings else []
        if own or systems:
            render(old, [] if own else systems)
        else:
            old.rendered.mkdir()
        yield Sides(old, new, name)


def project_of(settings: Path) -> tuple[Path, Path]:
    """The project that a settings file belongs to, and the file named from there.

    It is the git repository that the file lies in, else the file's folder.
    """
    place = settings.resolve()
    for folder in place.parents:
        if (folder / ".git").exists():
            return folder, place.relative_to(folder)
    return place.parent, Path(place.name)


def _stack(project: Path, before: Path, there: Path, own: bool) -> Path:
    """The mvapich-stack that the project used then: itself, or at the commit it pinned."""
    if own:
        return before
    pin, now = pinned(before), pinned(project)
    if not pin or pin == now:
        return REPOSITORY
    tree = there / "stack"
    try:
        extract(REPOSITORY, resolve(REPOSITORY, pin), tree)
    except InvalidInput as error:
        raise InvalidInput(
            *error.problems,
            outcome=f"The base pins mvapich-stack at {pin}, which this clone has not.",
        ) from None
    return tree


def pinned(project: Path) -> str:
    """The commit of mvapich-stack that a site's .gitlab-ci.yml names; "" when it names none."""
    path = project / ".gitlab-ci.yml"
    if not path.is_file():
        return ""
    text = COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
    if found := PIN.search(text):
        return found.group(1)
    if anchor := ANCHOR.search(text):
        named = re.search(rf"&{re.escape(anchor.group(1))}\s+[\"']?([0-9a-f]{{40}})\b", text)
        return named.group(1) if named else ""
    return ""


def same_pin(project: Path, commit: str) -> None:
    """Raise InvalidInput when ``commit``, which runs here, is not the one that the project names.

    The commit of the base is read from the same place: where it cannot be read, a new version of
    mvapich-stack would seem to change nothing.
    """
    if commit and (found := pinned(project)) != commit:
        raise InvalidInput(
            Problem(
                "stack_commit is not where it can be read",
                str(project / ".gitlab-ci.yml"),
                found=found or "no commit hash behind stack_commit",
                allowed=f"stack_commit: {commit}, or an anchor of this very file",
                because="the one of the commit before is read in the same way, to compare with",
                todo="write the hash into .gitlab-ci.yml, as docs/ci.md shows",
            )
        )


def has_commit(project: Path, commit: str) -> bool:
    """Whether the clone has ``commit``."""
    try:
        resolve(project, commit)
    except InvalidInput:
        return False
    return True


def _systems(settings: Settings, project: Path, side: Side) -> list[str]:
    """The systems of the settings as that side can render them."""
    found = []
    for one in settings.systems:
        name = one.system
        if name.endswith((".yaml", ".yml")):
            path = project / name
            if path.is_file():
                found.append(str(path.resolve()))
            elif side.name == "the working tree":
                raise InvalidInput(
                    Problem(
                        "the settings name a system file that is not there",
                        name,
                        todo="write it (`mvstack discover` begins one), or take the entry out",
                    )
                )
        elif side.name == "the working tree" or has_system(side, name):
            found.append(name)
    return found


def write(files: dict[str, str], to: Path) -> None:
    """The pipelines' files below ``to``, and nothing of an earlier run beside them."""
    if to.is_dir():
        shutil.rmtree(to)
    to.mkdir(parents=True)
    for name, text in files.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text, encoding="utf-8")
