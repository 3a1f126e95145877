"""What builders share of following a program: its log, and what of that a person should see."""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mvstack.support.processes import Limits, TimedOut, follow


def follow_into(
    log: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    line: Callable[[str], str | None],
    tick: Callable[[], object],
) -> int:
    """Run ``command``, which stands first in ``log``, and its output after it; its exit status.

    ``line`` is told of each line and may say what is to be written in its place.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", buffering=1) as stream:  # a line at a time, so that it can be followed
        stream.write(shlex.join(command) + "\n")

        def each(text: str) -> None:
            other = line(text)
            stream.write((text if other is None else other) + "\n")

        return follow(command, environment, line=each, tick=tick, cwd=log.parent)


def heard(
    command: Sequence[str],
    environment: Mapping[str, str],
    note: Callable[[str], object],
    cwd: Path | None = None,
    silence: float | None = None,
) -> tuple[int, list[str]]:
    """Run ``command``, of whose lines ``note`` is told; its exit status and those lines."""
    said: list[str] = []

    def line(text: str) -> None:
        if text.strip():
            said.append(text.strip())
            note(text.strip())

    try:
        return follow(
            command, environment, line=line, cwd=cwd, limits=Limits(silence=silence)
        ), said
    except TimedOut:
        return 1, [*said, f"nothing was heard from it for {silence:.0f} seconds"]


def inherited(*but: str) -> dict[str, str]:
    """Our environment for a builder: without modules, and without what begins with ``but``.

    What a build runs is others' code, so no key or token of a pipeline is for it.
    """
    modules = ("EASYBUILD_", "LMOD_", "MODULE", "_ModuleTable", "LOADEDMODULES", "_LMFILES_")
    functions = ("BASH_FUNC_", "BASH_ENV")  # EasyBuild stops at a `module` that is not Lmod's
    dropped = (*modules, *functions, "MVSTACK_SIGNING_KEY", "CI_JOB_TOKEN", *but)
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def lines_of(file: Path) -> list[str]:
    """The lines of a log that say something."""
    lines = (line.strip() for line in file.read_text(errors="replace").splitlines())
    return [line for line in lines if line]


def objects_in(folders: Iterable[Path]) -> int:
    """How many files have been compiled there."""
    return sum(
        name.endswith((".o", ".lo"))
        for folder in folders
        for _, _, names in os.walk(folder)
        for name in names
    )
