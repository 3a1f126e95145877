"""What one job hands to the next: binary caches below a folder, and the keys that count in a job.

A handover is a cache in this project's format, signed with a key that was made in the job that
built it and that ends with that job. Its public half lies in the handover, so it says no more than
that the files are as that job left them: what brings them from there (GitLab's artifacts) is
trusted, and only the job that signs with the site's own key makes more of it.

What the job `deploy` leaves for later pipelines is a record in the site's cache. They compare with
the commit before them, so what a cancelled or unapproved pipeline left undone would be forgotten;
the record says what users really have.
"""

import contextlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.base import builders
from mvstack.cache import gpg
from mvstack.cache.place import Place, Unreachable, place
from mvstack.cache.use import Caches
from mvstack.model.ci import Settings, Site
from mvstack.support.errors import InvalidInput, Problem, Refused, telling
from mvstack.support.files import full, write_atomically
from mvstack.support.processes import variable

# What is said of an entry that must not be signed.
AGAIN = "run the job that built it again: its artifact is not as that job left it"


@dataclass(frozen=True)
class Given:
    """What a job installs from: folders of handovers, caches, the public keys that it believes.

    ``lock`` is the spack.lock that all jobs of the pipeline install by.
    """

    take: Sequence[Path] = ()
    caches: Sequence[str] = ()
    trust: Sequence[Path] = ()
    lock: Path | None = None

    @contextlib.contextmanager
    def opened(self, only: bool = False) -> Iterator[Caches]:
        """The handovers and caches, while their keys and those of ``trust`` alone are trusted.

        With ``only`` nothing is built; else an entry that does not fit everywhere is built anew.
        """
        taken = caches_below(self.take)
        with keyring(taken, self.trust):
            places = tuple(place(name) for name in [*map(str, taken), *self.caches])
            yield Caches(places, only=only, pass_over=not only)


def caches_below(folders: Iterable[Path]) -> list[Path]:
    """The binary caches in ``folders``: each folder itself if it is one, else all below it.

    A folder that does not exist holds none: no job may have had anything to hand over. Raises
    Refused for a link in one, because nothing of ours makes links and one could bring any file.
    """
    parts = set(builders())  # a cache has a folder for each
    found: dict[Path, None] = {}
    for folder in folders:
        for top, names, _ in os.walk(folder):
            names.sort()
            if parts & set(names):
                found[Path(top).absolute()] = None
                names.clear()
    problems = [
        Problem(
            "a handover holds a link",
            str(path),
            found=str(path.readlink()),
            because="what is handed over is copied; a link names a file of this machine",
            todo="see which job made it: nothing of ours does",
        )
        for cache in found
        for path in cache.rglob("*")
        if path.is_symlink()
    ]
    if problems:
        raise Refused(*problems, outcome="Nothing of it was used.")
    return list(found)


@contextlib.contextmanager
def keyring(take: Iterable[Path] = (), trust: Iterable[Path] = ()) -> Iterator[None]:
    """A GPG home for as long as the block runs, in place of the user's.

    It trusts the keys that lie in the caches ``take`` and those in the files ``trust`` (the site's
    public keys), and no other. It is removed with all that it holds. Raises InvalidInput for a
    file of ``trust`` that cannot be read, or one of either that holds no public key.
    """
    files = [*trust, *(key for cache in take for key in sorted((cache / "keys").glob("*.asc")))]
    # /tmp and not TMPDIR: the path of an agent's socket may have 107 characters
    with tempfile.TemporaryDirectory(prefix="mvstack-ci-", dir="/tmp") as folder:
        home = Path(folder) / "gnupg"
        home.mkdir(mode=0o700)
        with variable(gpg.VARIABLE, str(home)):
            for file in files:
                what = "a key that is to be trusted cannot be read"
                todo = "give what `mvstack cache keys export --to FILE` wrote"
                with telling(InvalidInput, what, where=str(file), todo=todo):
                    text = file.read_bytes()
                try:
                    gpg.trust(text)
                except InvalidInput as error:
                    raise InvalidInput(error.problems[0].message, str(file)) from None
            yield


def shared() -> Path:
    """What all jobs of this user keep, apart for protected pipelines, as ci/get.sh does."""
    kind = "protected" if os.environ.get("CI_COMMIT_REF_PROTECTED") == "true" else "open"
    default = Path.home() / ".cache" / "mvapich-stack"
    return full(os.environ.get("MVSTACK_CLONES") or default) / kind


def job_key() -> gpg.Key:
    """Make the key of this job in the home of :func:`keyring`; it ends with that home."""
    return gpg.create("A job of a pipeline", "mvapich-stack@localhost")


def record_of(partition: str) -> str:
    """The file in a cache that records what is deployed of ``partition`` (its name in commands)."""
    return f"deployed/{re.sub(r'[^A-Za-z0-9._-]+', '-', partition).strip('-')}.json"


def note_deployed(cache: Place, partition: str, state: str, root: str) -> None:
    """Record that ``state`` (:attr:`mvstack.ci.graph.Graph.state`) is what users have."""
    when = time.strftime("%FT%TZ", time.gmtime())
    row = {"partition": partition, "state": state, "root": root, "when": when}
    write_atomically(cache.writable() / record_of(partition), json.dumps(row, indent=1) + "\n")


def deployed_state(settings: Settings, site: Site, partition: str) -> str | None:
    """The state that was deployed last; "" when none was, None where nothing is ever deployed.

    A cache that cannot be asked counts as one that has no record.
    """
    if not (site.root and settings.push):
        return None
    try:
        found = place(settings.push).read(record_of(partition))
        return str(json.loads(found)["state"]) if found else ""
    except (Unreachable, ValueError, KeyError, TypeError):
        return ""
