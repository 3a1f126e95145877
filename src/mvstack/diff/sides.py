"""The two sides of a comparison: a folder with a whole repository, and what it renders.

Each side is rendered by its own code, in a process of its own: that is what an installation from
that revision would build. Here the effects are: git, a temporary folder, one process a side.
"""

import io
import json
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mvstack.builders.base import Rendered, builder_of
from mvstack.model.yamlfile import read_yaml
from mvstack.plan.graph import Graph
from mvstack.plan.types import plan_of
from mvstack.support import git
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.home import VARIABLE, Home, home
from mvstack.support.processes import run, variable

NOW = "the working tree"
SECONDS = 300
"""How long a side may render before it counts as hanging; it takes about two."""


@dataclass(frozen=True)
class Side:
    """``tree`` is the repository's folder, ``rendered`` holds <system>/<partition>/plan.json.

    ``site`` is the site's folder that goes before the repository's own, if there is one.
    """

    name: str
    tree: Path
    rendered: Path
    site: Path | None = None

    @property
    def home(self) -> Home:
        """Where the hand-written files of this side are."""
        return Home(self.site, self.tree)


@contextmanager
def sides(
    repository: Path, revision: str, systems: list[str], profile: str = ""
) -> Iterator[tuple[Side, Side]]:
    """The side of ``revision`` and that of the working tree; both are gone afterwards.

    The site's folder is that of now on both. Raises InvalidInput for a revision that does not exist
    or cannot be rendered, Missing without git.
    """
    commit, site = resolve(repository, revision), home().site
    with TemporaryDirectory(prefix="mvstack-diff-") as folder:
        base = Path(folder)
        new = Side(NOW, repository, base / "new", site)
        old = Side(f"{revision} ({commit[:10]})", base / "tree", base / "old", site)
        extract(repository, commit, old.tree)
        for name in systems:
            if not has_system(old, name) and not has_system(new, name):
                raise _on_neither(old, new, name)
        for side in (new, old):  # what is wrong with the site's files is wrong now
            there = [name for name in systems if has_system(side, name)]
            if there or not systems:  # without names all are rendered
                render(side, there, profile)
        yield old, new


def resolve(repository: Path, revision: str) -> str:
    """The commit that ``revision`` means; InvalidInput when it means none."""
    if commit := git.commit_of(repository, revision):
        return commit
    raise InvalidInput(
        f"{revision} is not a revision of this repository"
        if git.git(repository, "rev-parse", "--git-dir").ok
        else "this folder is not a git clone, so there is no revision to compare with",
        str(repository),
        todo="give a commit, a tag or a branch, e.g. HEAD~1 or origin/main",
    )


def extract(repository: Path, commit: str, folder: Path) -> None:
    """The files of ``commit`` below ``folder``."""
    archive = git.git(repository, "archive", "--format=tar", commit)
    if not archive.ok:
        raise InvalidInput(
            f"git cannot give the files of {commit}",
            str(repository),
            found=archive.errors.strip(),
            todo="in a shallow clone: git fetch --unshallow",
        )
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        # Debian 12's Python 3.11.2 has no filters yet; the archive is git's, of this repository
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)


def has_system(side: Side, name: str) -> bool:
    """Whether that side has the system and, where one is named, its partition.

    A file of somebody's own is on neither side.
    """
    system, _, partition = name.partition("/")
    path = side.home.file("systems", f"{system}.yaml")
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

    ``profile`` is how much of the release, else as the partitions say. Raises InvalidInput, with
    what its code said, when that does not work.
    """
    if not any((side.tree / "src" / "mvstack").glob("**/rendering.py")):
        raise InvalidInput(
            "this revision is older than what is compared: it renders nothing",
            side.name,
            todo="compare with a newer one",
        )
    own = {"PYTHONPATH": str(side.tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mvstack", "render", *systems, "--to", str(side.rendered)]
    command += ["--profile", profile] if profile else []
    with variable(VARIABLE, str(side.site or "")):
        done = run(command, env={**os.environ, **own}, cwd=side.tree, limit=SECONDS)
    if done.timed_out:
        raise Refused(f"rendering took more than {SECONDS} s", side.name)
    if not done.ok:
        said = [line for line in (done.errors or done.text).splitlines() if line.strip()]
        raise InvalidInput(
            "cannot be rendered",
            side.name,
            found="\n              ".join(said[:6]) or f"exit code {done.status}",
            todo="correct what it names; `mvstack render` says all of it"
            if side.name == NOW
            else "its files or its code do not go with what is installed here: "
            "compare with a newer revision",
        )


@contextmanager
def reading(side: Side, name: str) -> Iterator[None]:
    """Read the partition ``name`` of a side, with the site's folder that the side has.

    Raises InvalidInput for a plan whose fields are not those known here.
    """
    try:
        with variable(VARIABLE, str(side.site or "")):
            yield
    except (KeyError, TypeError, AttributeError, ValueError, ImportError) as error:
        raise InvalidInput(
            "this plan has other fields than this version knows",
            f"{side.name}: {name}",
            found=f"{type(error).__name__}: {error}",
            todo="compare with a newer revision",
        ) from None


def read_side(side: Side) -> dict[str, Rendered]:
    """What ``side`` rendered, by ``system/partition``. Raises as :func:`reading`."""
    found = {}
    for plan in sorted(side.rendered.glob("*/*/plan.json")):
        name = str(plan.parent.relative_to(side.rendered))
        texts = {
            str(path.relative_to(plan.parent)): path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(plan.parent.rglob("*"))
            if path.is_file()
        }
        with reading(side, name):
            data = json.loads(texts["plan.json"])
            if lacking := {"system", "builder", "target", "compiler"} - set(data):
                raise KeyError(*sorted(lacking))
            found[name] = Rendered(plan_of(data), texts, side.tree)
    return found


def both(old: Side, new: Side) -> tuple[dict[str, Graph], dict[str, Graph]]:
    """The graphs of both sides, by partition, as they are planned."""
    found: list[dict[str, Graph]] = []
    for side in (old, new):
        graphs = {}
        for name, one in read_side(side).items():
            with reading(side, name):
                graph = builder_of(one.plan.builder).resolve(one)
                graphs[name] = replace(graph, tree=one.plan.tree)
        found.append(graphs)
    return found[0], found[1]
