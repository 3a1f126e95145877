"""What a change asks of one partition: what is built, checked, published, and why. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mvstack.ci.graph import WHOLE, Graph
from mvstack.model.ci_policy import Validate
from mvstack.plan.graph import OF_MPI, Node, differing, pairs, reasons


@dataclass(frozen=True)
class Origin:
    """A node whose own ingredients changed; ``why`` says which, ``builds`` the keys it rebuilds."""

    node: Node
    what: str
    why: tuple[str, ...]
    builds: tuple[str, ...]


@dataclass(frozen=True)
class Todo:
    """What a pipeline does for one partition. Nothing at all when ``touched`` is False.

    ``build`` are keys in build order; of these ``absent`` are unchanged and in no cache.
    ``cached`` are changed and need no build, because a cache has them.
    """

    graph: Graph
    origins: tuple[Origin, ...] = ()
    build: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    gone: tuple[Node, ...] = ()
    aspects: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    new: bool = False
    mpi: bool = False
    image: bool = False
    lock: bool = False
    unfinished: bool = False

    @property
    def name(self) -> str:
        """``system/partition``."""
        return self.graph.name

    @property
    def packages(self) -> bool:
        """Whether other packages are installed than before, or are to be gone through again."""
        return bool(self.origins or self.gone or self.new or self.unfinished)

    @property
    def staged(self) -> bool:
        """Whether the partition is put together and run; an image alone is not."""
        return bool(self.packages or self.checks or set(self.aspects) - {"image"})

    @property
    def touched(self) -> bool:
        """Whether a pipeline has anything to do here."""
        return bool(self.staged or self.aspects or self.image)


@dataclass(frozen=True)
class Beyond:
    """What a pipeline makes beyond what changed.

    With ``all_of`` the whole partition; with ``finish`` one that caches do not have whole, or of
    which another state is ``deployed`` (None: nothing is ever deployed), because an earlier
    pipeline did not come to its end.
    """

    all_of: bool = False
    finish: bool = False
    deployed: str | None = None


CHANGED = Beyond()


def todo(
    old: Graph | None,
    new: Graph,
    cached: Iterable[str],
    validate: Validate,
    beyond: Beyond = CHANGED,
) -> Todo:
    """What must be done for ``new``, which was ``old`` before; ``cached`` are contents at hand."""
    there = set(cached)
    before = old if old and old.builder == new.builder else None
    changed, origins, gone = _differences(before, new, there)
    aspects = tuple(
        name
        for name, value in new.aspects.items()
        if before is None or before.aspects.get(name) != value
        # where both lock files are known, they say what follows from it
        if name != "environment" or before is None or "plan" in (before.by, new.by)
    )
    whole = all(node.content in there for node in new.nodes.values())
    found = Todo(
        graph=new,
        origins=origins,
        gone=gone,
        aspects=aspects,
        checks=tuple(
            name
            for name, one in new.checks.items()
            if before and (name not in before.checks or before.checks[name].content != one.content)
        ),
        new=before is None or beyond.all_of,
        # an image holds what is installed: its packages and their modules
        image="image" in new.aspects
        and bool(changed or gone or {"image", "modules"} & set(aspects)),
        lock=new.by == "plan" and "environment" in aspects,
        unfinished=beyond.finish and not (whole and beyond.deployed in (None, new.state)),
    )
    if not found.touched:
        return found
    mpi = any(_has_mpi(before, new, key) for key in changed)
    # an image alone installs what it holds by itself: nothing that jobs hand on would reach it
    needed = new.nodes if found.staged else {}
    missing = [key for key, node in needed.items() if node.content not in there]
    return replace(
        found,
        build=tuple(missing),
        absent=tuple(key for key in missing if key not in changed),
        cached=tuple(key for key in changed if new.nodes[key].content in there),
        mpi=mpi,
        tags=_tags(found, mpi, validate),
    )


def _has_mpi(old: Graph | None, new: Graph, key: str) -> bool:
    """Whether the changed node ``key`` is an MPI, or may hold another MPI than before."""
    node = new.nodes[key]
    if key != WHOLE:
        return node.kind == "mpi"
    was = old.nodes.get(WHOLE) if old and old.os == new.os else None
    differ = differing(was, node) if was else node.ingredients
    return any(name.startswith(OF_MPI) for name in differ)


Differences = tuple[list[str], tuple[Origin, ...], tuple[Node, ...]]
"""Keys of nodes that are not as they were, those that it began with, and what is no more."""


def _differences(old: Graph | None, new: Graph, there: set[str]) -> Differences:
    if old and {old.by, new.by} != {"plan", "lock file"}:
        return _compared(old, new)
    keys, what = list(new.nodes), "new"
    if old:  # the lock file of one side alone is known: the caches are asked what is new
        same = old.os == new.os and old.aspects.get("environment") == new.aspects.get("environment")
        what = "in no cache"
        keys = [key for key in keys if not same and new.nodes[key].content not in there]
    starts = [new.nodes[key] for key in keys if not set(new.nodes[key].needs) & set(keys)]
    return keys, tuple(Origin(one, what, (), _above(new, one.key, keys)) for one in starts), ()


def _compared(old: Graph, new: Graph) -> Differences:
    moved: tuple[str, ...] = ()
    if old.os != new.os:  # what is built for it has the same hash, and is another package
        moved = (f"os {old.os} → {new.os}",)
        nodes = {key: replace(node, content=old.os) for key, node in old.nodes.items()}
        old = replace(old, nodes=nodes)
    found = list(pairs(old, new))
    keys = [now.key for _, now in found if now]
    origins = []
    for was, now in found:
        why = reasons(was, now) if was and now else ()
        if now and not (was and not why and set(now.needs) & set(keys)):
            what = "changed" if was else "new"
            origins.append(Origin(now, what, why or moved, _above(new, now.key, keys)))
    return keys, tuple(origins), tuple(was for was, now in found if was and not now)


def _above(graph: Graph, key: str, among: Iterable[str]) -> tuple[str, ...]:
    """``key`` and those of ``among`` that stand on it."""
    found = {key}
    for one in among:
        if found & set(graph.nodes[one].needs):
            found.add(one)
    return tuple(one for one in among if one in found)


def _tags(found: Todo, mpi: bool, validate: Validate) -> tuple[str, ...]:
    """The tags to run: the policy's for what is built anew, and for changed checks the fewest.

    A changed file of checks is run by the tag that the fewest files have, which runs the least
    beside it; by one of the policy's before all others, which may name what takes long. Files that
    only one of the policy's tags runs come first: it may run others, too.
    """
    if not found.staged:
        return ()
    everything = found.packages or set(found.aspects) - {"image"}
    tags = dict.fromkeys((validate.mpi if mpi else validate.change) if everything else [])
    having = Counter(tag for one in found.graph.checks.values() for tag in one.tags)
    owned = [found.graph.checks[name].tags for name in found.checks]
    for own in sorted(owned, key=lambda own: len(own & {*validate.mpi}) or len(having)):
        if not own & set(tags):
            tags[min(own, key=lambda tag: (tag not in validate.mpi, having[tag], tag))] = None
    return tuple(tags)
