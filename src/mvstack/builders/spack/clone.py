"""Clone the pinned Spack and its packages, whole or not at all, and prove which commit they are.

<root>/spack/v1.1.0/spack       shallow clones; both may also be put there by hand
<root>/spack/v1.1.0/packages
<root>/spack/v1.1.0/python      its Python, an environment with the pinned solver, clingo
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.base import Note
from mvstack.builders.following import follow_into, heard, lines_of
from mvstack.model.spack import Pin, SpackPins
from mvstack.support import git, locks
from mvstack.support.errors import Missing, Refused, SourceError
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA
from mvstack.tree.folder import writable

REQUIREMENTS = DATA / "requirements" / "spack.txt"
# The variables in which other places than upstream are named.
URLS = {"spack": "MVSTACK_SPACK_URL", "packages": "MVSTACK_SPACK_PACKAGES_URL"}


INCOMING = ".incoming-"
SILENCE = 90.0  # seconds that a server may take between two words of progress


@dataclass(frozen=True)
class Clones:
    """The two clones, proved to be the pinned commits."""

    home: Path
    spack: Path
    packages: Path

    @property
    def builtin(self) -> Path:
        """The package repository in spack-packages."""
        return self.packages / "repos" / "spack_repo" / "builtin"


def home(root: Path, pins: SpackPins) -> Path:
    """The folder of one pinned Spack below an install root."""
    return root / "spack" / pins.spack.tag


def present(root: Path, pins: SpackPins) -> bool:
    """Whether both clones are there (nothing is proved)."""
    return all((home(root, pins) / name).is_dir() for name in pins.repositories)


def clones(root: Path, pins: SpackPins, note: Note = lambda _: None) -> Clones:
    """Both clones below ``root``, cloned now if they are not there.

    Raises SourceError when one is not available, Refused when it is not the pinned commit, Missing
    when there is no git or ``root`` cannot be written to.
    """
    folder = home(root, pins)
    if not present(root, pins):
        with only_one(folder):
            for name, pin in pins.repositories.items():
                if not (folder / name).is_dir():
                    _clone(pin, folder / name, note)
    for name, pin in pins.repositories.items():
        _prove(pin, folder / name)
    return Clones(folder, folder / "spack", folder / "packages")


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """One that clones at a time; what a killed one left is removed."""
    with contextlib.ExitStack() as stack:
        with writable("Spack cannot be put there", folder):
            stack.enter_context(locks.hold(folder / ".lock"))
        for left in folder.glob(f"{INCOMING}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _clone(pin: Pin, target: Path, note: Note) -> None:
    name, incoming = target.name, Path(tempfile.mkdtemp(dir=target.parent, prefix=INCOMING))
    # whoever has a mirror of the repository, or a git bundle, names it
    place = os.environ.get(URLS[name]) or pin.url
    try:
        git.answer(incoming, "init", "--quiet")
        _fetch(pin, place, incoming, target, note)
        found = git.commit_of(incoming, "FETCH_HEAD")
        if found != pin.commit:
            raise _moved(pin, name, place, found)
        note(f"{name} {pin.tag}: unpacking")
        git.answer(incoming, "checkout", "--quiet", "--detach", found)
        git.answer(incoming, "update-ref", f"refs/tags/{pin.tag}", found)
        incoming.chmod(0o755)
        incoming.rename(target)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _fetch(pin: Pin, place: str, folder: Path, target: Path, note: Note) -> None:
    """Fetch the one commit that the tag names. A bundle is a file and knows no shallow fetch."""
    depth = [] if Path(place).is_file() else ["--depth=1"]
    what = f"{target.name} {pin.tag}"
    status, said = heard(
        ["git", "fetch", "--progress", "--no-tags", *depth, place, f"refs/tags/{pin.tag}"],
        git.environment(),
        lambda text: note(f"{what}: {text}"),
        cwd=folder,
        silence=SILENCE,
    )
    if status:
        raise SourceError(
            f"{what} cannot be cloned",
            place,
            found=" | ".join(said[-4:]),
            todo=f"name a mirror that can be reached (a URL, a folder or a git bundle): "
            f"{URLS[target.name]}=…; or put a clone at {pin.tag} there by hand: "
            f"{target}; an installation alone can do without Spack: "
            "`builder: easybuild` in the system's file",
            outcome="Nothing half-cloned was kept.",
        )


def _prove(pin: Pin, folder: Path) -> None:
    """Refuse a clone that is not the pinned commit, or whose files or settings were changed."""
    found = git.commit_of(folder, "HEAD")
    if not found or not git.is_clone(folder):
        raise Refused(
            f"this is not a git clone, so it cannot be told which {folder.name} it is",
            str(folder),
            allowed=f"a clone at {pin.tag}, commit {pin.commit}",
            todo=f"move it away, then the same command clones it; or put a clone there: "
            f"git clone --branch {pin.tag} --depth 1 {pin.url} {folder}",
        )
    if found != pin.commit:
        raise _moved(pin, folder.name, str(folder), found)
    status = "status", "--porcelain"
    changed = git.answer(folder, *status, "--untracked-files=no").splitlines()
    # `spack repo add` and `spack external find` write there, and it goes before our configuration
    changed += git.answer(folder, *status, "-uall", "--ignored", "etc/spack").splitlines()
    if changed := sorted(set(changed)):
        raise Refused(
            f"{len(changed)} files of the clone were changed or added",
            str(folder),
            found=", ".join(line[2:].strip() for line in changed[:5]),
            because="what it then solves and builds is not what was tested with these pins",
            todo=f"git -C {folder} checkout . ; move away what was added in etc/spack; own recipes "
            "go into a repository of their own",
        )


def _moved(pin: Pin, name: str, where: str, found: str) -> Refused:
    return Refused(
        f"{pin.tag} of {name} is not the commit that is pinned",
        where,
        found=f"commit {found}",
        allowed=f"commit {pin.commit} (environments/policy/spack.yaml)",
        because="a tag was moved, or the mirror or clone holds something else",
        todo="find out why it moved before trusting it: the pin is changed by hand, with the "
        "reason; a clone that stands there already is moved away and cloned anew",
        outcome="Nothing of it was kept.",
    )


def python(home: Path, note: Note = lambda _: None) -> Path:
    """The interpreter below ``home``, made now if it is not there or its pins have changed.

    Every package is installed by its hash. Raises SourceError when pip cannot have one, Missing
    when no environment can be made here.
    """
    folder = home.resolve() / "python"  # the same through whatever link it is reached
    program, ready = folder / "bin" / "python", folder / ".ready"
    wanted = f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {folder}"

    def is_ready() -> bool:
        return program.exists() and ready.is_file() and ready.read_text().strip() == wanted

    if not is_ready():
        with only_one(home):
            if not is_ready():  # nobody else has made it meanwhile
                _make(folder, program, home / "python.log", note)
                write_atomically(ready, wanted + "\n")
    return program


def _make(folder: Path, program: Path, log: Path, note: Note) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    note("making Spack's Python environment")
    if said := _failed([sys.executable, "-m", "venv", "--without-pip", str(folder)], log, note):
        raise Missing(
            "no Python environment can be made for Spack",
            str(log),
            found=said,
            todo="Debian: apt-get install python3-venv",
        )
    note("installing clingo, Spack's solver")
    # ours, which is there where the distribution has no python3-venv, too
    pip = [sys.executable, "-m", "pip", "--python", str(program), "install", "--no-input"]
    pip += [
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "--only-binary",
        ":all:",
        "--require-hashes",
    ]
    if said := _failed([*pip, "-r", str(REQUIREMENTS)], log, note):
        raise SourceError(
            "what Spack's solver needs could not be installed",
            str(REQUIREMENTS),
            found=said,
            todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
            f"PIP_FIND_LINKS and PIP_CERT are honoured); log {log}",
        )


def _failed(command: list[str], log: Path, note: Note) -> str:
    """Run ``command``; its last words when it fails, else ""."""
    dropped = ("PYTHON", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}

    def line(text: str) -> None:
        if text.strip():
            note(text)

    status = follow_into(log, command, kept, line, lambda: None)
    return (" | ".join(lines_of(log)[1:][-3:]) or f"status {status}") if status else ""
