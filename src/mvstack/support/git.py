"""Git, asked without questions and without the settings of the repository that calls us."""

import os
from pathlib import Path

from mvstack.support.errors import Missing, SourceError
from mvstack.support.processes import Done, run

_KEPT = ("GIT_SSL_CAINFO", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_CONFIG_GLOBAL")


def environment() -> dict[str, str]:
    """What git is run with: it asks for no password, and speaks English."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    kept |= {key: os.environ[key] for key in _KEPT if key in os.environ}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def git(folder: Path, *words: str, limit: float | None = None) -> Done:
    """Run a quick git command in ``folder``, for ``limit`` seconds. Raises Missing without git."""
    # a clone may belong to whoever installed the stack, a bundle to whoever made it
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *words]
    try:
        return run(command, env=environment(), limit=limit)
    except FileNotFoundError:
        raise Missing("git is not installed", todo="apt-get install git") from None


def answer(folder: Path, *words: str) -> str:
    """What a quick git command prints. Raises SourceError when it fails, Missing without git."""
    done = git(folder, *words)
    if not done.ok:
        found = " | ".join(done.errors.split("\n"))
        raise SourceError(f"`git {words[0]}` failed", str(folder), found=found)
    return done.text.strip()


def commit_of(folder: Path, revision: str) -> str:
    """The commit that ``revision`` means in ``folder``; "" when it means none there."""
    done = git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return done.text.strip() if done.ok else ""


def is_clone(folder: Path) -> bool:
    """Whether ``folder`` is a clone, not only a folder inside of one. Raises Missing."""
    prefix = git(folder, "rev-parse", "--show-prefix")
    return prefix.ok and not prefix.text.strip()


def told(folder: Path, *words: str) -> str:
    """What git prints of the clone ``folder``; "" where it fails, is no clone, or git is missing.

    It is not stripped: names of files may begin with a space.
    """
    try:
        done = git(folder, *words) if is_clone(folder) else None
    except Missing:
        return ""
    return done.text if done and done.ok else ""
