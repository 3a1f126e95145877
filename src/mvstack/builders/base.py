"""What a builder is: the one interface between the graph of a plan and the tools that build it.

A builder is a folder beside this file with a module ``builder`` whose ``BUILDER`` has these
methods; nothing outside that folder knows its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from mvstack.cache.gpg import Key
from mvstack.cache.place import Place
from mvstack.cache.use import Caches
from mvstack.plan import easyconfigs
from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import Plan
from mvstack.render.partition import render
from mvstack.sources import store
from mvstack.sources.fetch import Fetched, Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.progress import Progress
from mvstack.support.words import few, nearest

Row = dict[str, Any]
Note = Callable[[str], None]


@dataclass(frozen=True)
class Rendered:
    """A partition as it was rendered: its plan, its files by name, the repository they are from.

    ``lock`` is the solver's answer for it, where one is known.
    """

    plan: Plan
    files: Mapping[str, str]
    repository: Path
    lock: Path | None = None


@dataclass(frozen=True)
class Run:
    """How one installation is carried out.

    What ``caches`` offer is taken from there, the rest is built. With ``wanted`` (keys of nodes)
    nothing else is built, and the tree gets no module that opens it. ``lock`` is a lock file that
    was solved for elsewhere. With ``keep_going`` a failed build ends only what stands on it.
    """

    fetcher: Fetcher
    progress: Progress
    jobs: int | None = None
    umask: str = "022"
    group: str | None = None
    caches: Caches | None = None
    wanted: frozenset[str] | None = None
    lock: Path | None = None
    keep_going: bool = False


@dataclass(frozen=True)
class Entry(ABC):
    """A package in what a job of a pipeline handed over, its signature and its files checked.

    ``content`` is the hash that it is filed under, ``signer`` whose key signed it, ``requires`` the
    contents that must be beside it; Spack's have no ``easyconfig``.
    """

    place: Place
    package: str
    version: str
    content: str
    size: int
    signer: str
    easyconfig: str
    requires: tuple[str, ...]

    @property
    def what(self) -> str:
        """Its name and version."""
        return f"{self.package} {self.version}"

    @abstractmethod
    def is_of(self, node: Node | None, plan: Plan) -> bool:
        """Whether it says that it is ``node`` of ``plan``; None: something that one brought."""

    @abstractmethod
    def good(self, target: Place, content: str) -> bool:
        """Whether ``target`` has ``content`` (or this) whole and signed by a trusted key."""

    @abstractmethod
    def put(self, target: Place, key: Key) -> None:
        """Sign it into ``target``. Raises NotBelieved, Unreachable if it changed since."""


class Builder(Protocol):
    """Spack, EasyBuild, or another tool that builds the nodes of a plan."""

    title: str
    """Its name as people write it."""
    solves: bool
    """Whether a solver decides what is built; its answer is a lock file."""

    words: tuple[str, ...]
    """Names of fields of MPI builds and packages in a plan that only other builders read."""

    requirements: tuple[str, ...]
    """Files of requirements/ with the Python packages that it needs beside ours."""

    def resolve(self, rendered: Rendered) -> Graph:
        """The graph of a plan: by its lock where there is one, else by the plan."""

    def environment(self, rendered: Rendered) -> dict[str, str]:
        """Hashes, by name, of all that decides a solver's answer; {} without a solver."""
        return {}

    def shown(self, rendered: Rendered) -> tuple[Any, Any]:
        """What decides module files beside the nodes, and the words that their help shows."""

    def pending(self, plan: Plan) -> list[Row]:
        """What an installation would build, without touching anything: a row for each package."""

    def steps(self, plan: Plan) -> int:
        """How many steps of progress an installation shows beside that of the sources."""

    def install(self, plan: Plan, run: Run) -> list[Row]:
        """Install what ``plan`` says and is not there yet; the rows of builds.jsonl of this run."""

    def installed(self, plan: Plan) -> frozenset[str]:
        """The keys of the nodes that are installed in the tree of ``plan``."""

    def push(
        self,
        plan: dict[str, Any],
        place: Place,
        key: Key,
        progress: Progress,
        replace: bool = False,
        only: frozenset[str] | None = None,
    ) -> list[Row]:
        """Push what a tree holds into a cache, signed; a row for each package.

        ``only`` these nodes (all if None); with ``replace`` also those that are there.
        """

    def cached(self, place: Place, os_name: str, node: Node) -> int | None:
        """The longest path of a tree to which a cache's binary of ``node`` can be moved.

        None where the cache has none. Raises NotBelieved, Unreachable.
        """

    def entries(self, handover: Place) -> Iterator[tuple[str, Callable[[], Entry]]]:
        """The name of each package of ours in a handover, and what reads and checks it.

        That raises NotBelieved, Unreachable.
        """

    def share(self, plan: Plan, folder: Path) -> None:
        """Have the root of ``plan`` use the builder's own program below ``folder``."""
        return

    def hand_on(self, plan: Plan, to: Path) -> None:
        """Copy the lock of the tree of ``plan``, if there is one, into the folder ``to``."""
        return

    def tools(self, plan: Plan, target: Path, note: Note) -> None:
        """Put the builder itself into the bundle ``target``, unless it is in a wheel."""
        return

    def sources(self, plan: Plan, fetcher: Fetcher, target: Path, progress: Progress) -> list[str]:
        """Bring every source of ``plan`` into the mirror ``target``; their file names."""

    def binaries(
        self, plan: Plan, caches: Caches, target: Place, progress: Progress
    ) -> tuple[list[str], int]:
        """Bring a binary of every node into a cache: who signed them, the longest root they fit."""


def builder_of(name: str) -> Builder:
    """The builder called ``name`` in a system's file (model.vocabulary lists them)."""
    return cast(Builder, import_module(f"mvstack.builders.{name}.builder").BUILDER)


def builders() -> dict[str, Builder]:
    """Every builder by its name: the folders beside this file."""
    files = sorted(Path(__file__).parent.glob("*/builder.py"))
    return {file.parent.name: builder_of(file.parent.name) for file in files}


def rendered_here(plan: Plan, lock: Path | None = None) -> Rendered:
    """``plan`` as it is rendered now, over the easyconfigs and recipes of this repository."""
    return Rendered(plan, render(plan), easyconfigs.FOLDER.parent, lock)


def graph_of(plan: Plan) -> Graph:
    """The graph of ``plan`` as it is rendered now."""
    return builder_of(plan.builder).resolve(rendered_here(plan))


def carried(fetcher: Fetcher, mirror: store.Store, spec: SourceSpec) -> Fetched:
    """Fetch a source, and have it in the ``mirror`` of a bundle too. Raises SourceError."""
    fetched = fetcher.fetch(spec)
    if mirror.get(fetched.sha256) is None:
        size = fetched.path.stat().st_size
        told = (fetched.sha256, spec.filename, spec.name, size, fetched.place, fetched.note)
        mirror.add(fetched.path, store.Entry(*told), bool(spec.known.licence_page))
    return fetched


def refuse_unknown(plan: Plan, wanted: frozenset[str], known: Collection[str]) -> None:
    """Raise InvalidInput for the keys that are wanted and that no node of ``plan`` has."""
    problems = [
        Problem(
            f"{name} is not part of this plan",
            f"{plan.system}/{plan.partition}",
            allowed=few(known),
            nearest=nearest(name, known),
            todo="have all jobs take the commit, and the lock, that the pipeline was made from",
        )
        for name in sorted(wanted - set(known))
    ]
    if problems:
        raise InvalidInput(*problems, outcome="Nothing was installed.")


def refuse_lost(
    plan: Plan, caches: Caches | None, absent: Iterable[tuple[str, str, list[str]]]
) -> None:
    """Raise Refused for what was neither to be built here nor to be obtained elsewhere.

    ``absent`` has the name of each, what was looked for, and what needs it.
    """
    places = [plan.tree, *(one.name for one in (caches.places if caches else ()))]
    problems = [
        Problem(
            f"{name} is needed and is not to be built here, and nobody handed it over",
            f"{plan.system}/{plan.partition}",
            found=f"looked for {content} in: {', '.join(places)}",
            because=f"needed by {', '.join(needed_by)}",
            todo="see whether the job that builds it ran and ended well, whether its handover "
            "folder was taken, and whether it has expired; or have it built here too, by naming "
            "it as wanted",
        )
        for name, content, needed_by in absent
    ]
    if problems:
        raise Refused(*problems, outcome="Nothing was built.")
