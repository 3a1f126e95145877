"""The parts of every bundle: this very checkout as one archive, and the Python packages."""

import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mvstack.cache.pack import packed
from mvstack.support.errors import Refused, SourceError
from mvstack.support.git import told
from mvstack.support.home import DATA, checkout
from mvstack.support.processes import follow

# What `./mvstack` sets itself up with.
OWN = ("build.txt", "runtime.txt")
# What a checkout without git holds beside its own files.
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
_MADE = {".git", ".venv", *_CACHES}


def archive(target: Path) -> tuple[str, int]:
    """Write this checkout into ``target``, the same bytes for the same files.

    Which commit it is ("" without git), and how many files differ from it. Not `git archive`: what
    is planned here is planned with the files as they are, committed or not.
    """
    top = checkout("mvstack bundle")
    files = sorted(_files(top))
    if not files:
        raise Refused("this checkout has no files", str(top))
    with packed(target) as tar:
        for name in files:
            tar.add(top / name, name, recursive=False, filter=_plain)
    changed = told(top, "status", "--porcelain").splitlines()
    return told(top, "rev-parse", "HEAD").strip(), len(changed)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry as it would be of anybody's checkout; None for what is no file."""
    mode = 0o755 if entry.mode & 0o100 else 0o644
    plain = entry.replace(mtime=0, mode=mode, uid=0, gid=0, uname="", gname="", deep=False)
    return plain if entry.isfile() or entry.issym() or entry.islnk() else None


def _files(top: Path) -> Iterator[str]:
    listed = told(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed:
        yield from (name for name in listed.split("\0") if name and os.path.lexists(top / name))
        return
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in _MADE]
        yield from (str((Path(folder) / name).relative_to(top)) for name in names)


def gather(target: Path, names: tuple[str, ...], note: Callable[[str], None]) -> None:
    """Download what requirements/``names`` pin for this Python and machine. Raises SourceError."""
    target.mkdir(parents=True, exist_ok=True)
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    said: list[str] = []

    def line(text: str) -> None:
        if text.strip():
            said.append(text.strip())
            note(text.strip())

    for name in names:
        said.clear()
        file = DATA / "requirements" / name
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-input", "--progress-bar", "off"),
            *("--disable-pip-version-check", "--require-hashes", "--no-deps"),
            *("--no-build-isolation", "--dest", str(target), "-r", str(file)),
        ]
        if name not in OWN:
            command += ["--only-binary", ":all:"]
        if follow(command, kept, line=line):
            wrong = [one for one in said if "error" in one.lower() or "No matching" in one]
            raise SourceError(
                "the Python packages that are pinned cannot be downloaded",
                str(file),
                found=" | ".join(wrong[-4:] or said[-3:]),
                todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
                "PIP_FIND_LINKS and PIP_CERT are honoured)",
            )
