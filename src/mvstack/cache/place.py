"""Where a cache is: a folder, which can be read and written, or a URL, which can be read."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mvstack.sources.accepted import state_dir
from mvstack.sources.download import NotHere, download
from mvstack.sources.files import copied
from mvstack.sources.hosts import SilentHosts
from mvstack.support.errors import InvalidInput, Problem


class Unreachable(Exception):
    """A cache cannot be asked now; the text says why."""


@dataclass(frozen=True)
class Place:
    """One cache; ``name`` as the site wrote it."""

    name: str
    hosts: SilentHosts

    @property
    def folder(self) -> Path | None:
        """The folder that it is; None for a URL that is not file://."""
        if self.name.startswith("file://"):
            return Path(unquote(urlsplit(self.name).path))
        return None if "://" in self.name else Path(self.name).expanduser().absolute()

    @property
    def url(self) -> str:
        """The cache as a URL, e.g. for Spack."""
        return self.folder.as_uri() if self.folder else self.name.rstrip("/")

    def read(self, path: str) -> bytes | None:
        """A small file of the cache; None when it has none of that name. Raises Unreachable."""
        with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
            target = Path(folder) / "file"
            return target.read_bytes() if self.bring(path, target) else None

    def bring(
        self, path: str, target: Path, advance: Callable[[int, int], None] = lambda *_: None
    ) -> bool:
        """Copy a file of the cache to ``target``; False when there is none. Raises Unreachable."""
        if self.folder is None:
            try:
                download(f"{self.url}/{path}", target, self.hosts, advance)
            except NotHere as why:
                if "HTTP 404" in str(why):
                    return False
                raise Unreachable(str(why)) from None
            return True
        reachable(self.folder)
        file = self.folder / path
        try:
            with file.open("rb") as source, target.open("wb") as stream:
                copied(source, stream)
        except FileNotFoundError as error:
            if str(error.filename) != str(file):
                raise
            return False
        except OSError as error:
            if str(error.filename) != str(file):
                raise
            raise Unreachable(f"{file}: {error.strerror}") from None
        return True

    def writable(self) -> Path:
        """Its folder, made if need be. Raises InvalidInput for a URL."""
        if self.folder is None:
            raise InvalidInput(
                Problem(
                    "entries are pushed into a folder, not to a URL",
                    self.name,
                    todo="push to a folder, and have a web server serve it, or copy it there",
                )
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder


def reachable(folder: Path) -> None:
    """Raise Unreachable, with the reason, when ``folder`` is none or nobody may look there."""
    try:
        if stat.S_ISDIR(folder.stat().st_mode):
            return
        why = "it is no folder"
    except FileNotFoundError:
        why = "there is no such folder"
    except OSError as error:
        why = error.strerror or str(error)
    raise Unreachable(f"{folder}: {why}")


def place(name: str) -> Place:
    """The cache called ``name``: a path, file://… or http(s)://…. Raises InvalidInput."""
    if not name.strip():
        raise InvalidInput(Problem("a cache is a folder or an address", name, allowed=_ALLOWED))
    if why := _wrong(name):
        raise InvalidInput(
            Problem("a cache is a folder or an address", name, found=why, allowed=_ALLOWED)
        )
    return Place(name, SilentHosts(state_dir()))


_ALLOWED = "a path, file:///path, http://host/… or https://host/…"


def _wrong(name: str) -> str:
    """Why ``name`` can be no place at all; "" when it can."""
    if "://" not in name:
        try:
            Path(name).expanduser()
        except RuntimeError:
            return f"there is no user {name.partition('/')[0].removeprefix('~')}"
        return ""
    try:
        parts = urlsplit(name)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme == "file":
        here = host in (None, "localhost") and parts.path.startswith("/")
        return "" if here else "file:// names a folder of this machine, by its whole path"
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:// is not supported"
    return "" if host else "it names no host"
