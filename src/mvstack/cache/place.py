"""Where a cache is: a folder, which can be read and written, or a URL, which can be read."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mvstack.sources.download import NotHere, bring, is_url, local
from mvstack.support.errors import InvalidInput

# What to do about an entry that must not be used, where nothing else helps.
PUSH_AGAIN = "push it again from the tree that has it: mvstack cache push"


class Unreachable(Exception):
    """A cache cannot be asked now; the text says why."""


class NotBelieved(Exception):
    """An entry is there and must not be used; the text says why, ``todo`` what helps beside
    pushing it again."""

    def __init__(self, why: str, todo: str = "") -> None:
        super().__init__(why)
        self.todo = todo


@dataclass(frozen=True)
class Place:
    """One cache; ``name`` as the site wrote it."""

    name: str

    @property
    def folder(self) -> Path | None:
        """The folder that it is; None for a URL that is not file://."""
        return None if is_url(self.name) else local(self.name)

    @property
    def url(self) -> str:
        """The cache as a URL, e.g. for Spack."""
        return self.folder.as_uri() if self.folder else self.name.rstrip("/")

    def read(self, path: str) -> bytes | None:
        """A small file of the cache; None when it has none of that name. Raises Unreachable."""
        with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
            target = Path(folder) / "file"
            return target.read_bytes() if self.bring(path, target) else None

    def bring(self, path: str, target: Path) -> bool:
        """Copy a file of the cache to ``target``; False when there is none. Raises Unreachable."""
        if self.folder is not None:
            reachable(self.folder)
        try:
            bring(f"{self.folder or self.url}/{path}", target)
        except NotHere as why:
            if why.absent:
                return False
            raise Unreachable(str(why)) from None
        return True

    def writable(self) -> Path:
        """Its folder, made if need be. Raises InvalidInput for a URL."""
        if self.folder is None:
            todo = "push to a folder, and serve it with a web server or copy it there"
            raise InvalidInput("only a folder can be pushed to", self.name, todo=todo)
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder


def reachable(folder: Path) -> None:
    """Raise Unreachable, with the reason, when ``folder`` is not a folder that we may read."""
    try:
        if folder.is_dir():
            return
        folder.stat()
        why = "not a folder"
    except FileNotFoundError:
        why = "there is no such folder"
    except OSError as error:
        why = error.strerror or str(error)
    raise Unreachable(f"{folder}: {why}")


def place(name: str) -> Place:
    """The cache called ``name``: a path, file://… or http(s)://…. Raises InvalidInput."""
    if why := _wrong(name):
        allowed = "a path, file:///path, http://host/… or https://host/…"
        raise InvalidInput("a cache is a folder or a URL", name, found=why, allowed=allowed)
    return Place(name)


def _wrong(name: str) -> str:
    """Why ``name`` cannot be a place; "" when it can."""
    try:
        parts = urlsplit(name)
        host, _ = parts.hostname, parts.port
        Path(name).expanduser()
    except (ValueError, RuntimeError) as error:  # no such user
        return str(error)
    if "://" not in name:
        return "" if name.strip() else "an empty name"
    if parts.scheme == "file":
        here = host in (None, "localhost") and parts.path.startswith("/")
        return "" if here else "file:// needs an absolute path on this machine"
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:// is not supported"
    return "" if host else "it names no host"
