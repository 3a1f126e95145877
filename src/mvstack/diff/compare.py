"""Two sides held against each other. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mvstack.diff.parts import Part, Partition
from mvstack.model.spack_lock import Lock, Node

SHOWN = 60
"""Ingredients up to this long are words that a person reads; longer ones are hashes or the like."""

NAMED = 6
"""So many names are listed; of more the number is said."""


@dataclass(frozen=True)
class Change:
    """``what`` is added, removed or changed; ``why`` names the ingredients that differ."""

    what: str
    kind: str
    name: str
    why: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return {"what": self.what, "kind": self.kind, "name": self.name, "why": list(self.why)}


@dataclass(frozen=True)
class Difference:
    """What changes for one partition; ``by`` says what was compared: plans or lock files."""

    name: str
    builder: str
    by: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def mpi(self) -> bool:
        """Whether an MPI's hash changes; then all that stands on it is rebuilt."""
        return any(change.kind == "mpi" for change in self.changes)

    def of(self, what: str) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.what == what]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return {
            "builder": self.builder,
            "by": self.by,
            "mpi_changes": self.mpi,
            **{
                what: [change.as_dict() for change in self.of(what)]
                for what in ("added", "removed", "changed")
            },
            "notes": list(self.notes),
        }


def compare(
    old: dict[str, Partition],
    new: dict[str, Partition],
    locks: dict[str, tuple[Lock, Lock]] | None = None,
) -> list[Difference]:
    """Every partition of both sides; by ``locks`` (old, new) where there are, else by plans."""
    return [
        partition(name, old.get(name), new.get(name), (locks or {}).get(name))
        for name in sorted({*old, *new})
    ]


def partition(
    name: str, old: Partition | None, new: Partition | None, locks: tuple[Lock, Lock] | None
) -> Difference:
    """One partition, of which a side may have none."""
    before, after = (old.parts if old else {}), (new.parts if new else {})
    there = new or old
    builder = there.builder if there else ""
    changes = [
        change
        for key in dict.fromkeys([*after, *before])
        if (change := _change(before.get(key), after.get(key)))
    ]
    if old and new and old.builder != new.builder:
        changes = [
            Change("changed", part.kind, part.label, (f"builder {old.builder} → {new.builder}",))
            for part in after.values()
        ]
    elif old and new and locks:
        return Difference(name, builder, "lock files", _by_locks(old, new, *locks))
    return Difference(name, builder, "plans", tuple(changes), _notes(old, new))


def _change(old: Part | None, new: Part | None) -> Change | None:
    if old and new:
        why = tuple(
            _why(key, old.ingredients.get(key, ""), new.ingredients.get(key, ""))
            for key in dict.fromkeys([*new.ingredients, *old.ingredients])
            if old.ingredients.get(key) != new.ingredients.get(key)
        )
        return Change("changed", new.kind, new.label, why) if why else None
    one = new or old
    return Change("added" if new else "removed", one.kind, one.label) if one else None


def _why(key: str, old: str, new: str) -> str:
    """An ingredient that differs, with both values where they are words."""
    words = len(old) <= SHOWN and len(new) <= SHOWN and old and new
    return f"{key} {old} → {new}" if words else key


def _notes(old: Partition | None, new: Partition | None) -> tuple[str, ...]:
    """Recipes of which only a lock file could say whether this partition uses them."""
    if not (old and new) or new.builder != "spack":
        return ()
    names = sorted(
        name
        for name in {*old.other_recipes, *new.other_recipes}
        if old.other_recipes.get(name) != new.other_recipes.get(name)
    )
    if not names:
        return ()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (
        f"recipes that differ and are no planned package: {', '.join(names[:NAMED])}{more}; "
        "lock files of both sides would say whether anything here uses them",
    )


def _by_locks(old: Partition, new: Partition, before: Lock, after: Lock) -> tuple[Change, ...]:
    """Every package that is built, by Spack's own hash; the MPI's is among them."""
    mpis = {part.name for side in (old, new) for part in side.parts.values() if part.kind == "mpi"}
    changes: list[Change] = []
    had, has = _built(before), _built(after)
    for name in sorted({*had, *has}):
        gone = [node for node in had.get(name, []) if node.hash not in after.nodes]
        come = [node for node in has.get(name, []) if node.hash not in before.nodes]
        kind = "mpi" if name in mpis else "package"
        for one, other in zip(gone, come, strict=False):
            why = _between(one, other)
            changes.append(Change("changed", kind, f"{name} {other.version}", why))
        for node in gone[len(come) :]:
            changes.append(Change("removed", kind, f"{name} {node.version}"))
        for node in come[len(gone) :]:
            changes.append(Change("added", kind, f"{name} {node.version}"))
    return tuple(changes)


def _built(lock: Lock) -> dict[str, list[Node]]:
    """The packages that are built, by name; several of one name in the order of their versions."""
    found: dict[str, list[Node]] = {}
    for node in sorted(lock.nodes.values(), key=lambda node: (node.version, node.hash)):
        if not node.external:
            found.setdefault(node.name, []).append(node)
    return found


def _between(old: Node, new: Node) -> tuple[str, ...]:
    """Why the hash of a package is another: itself, its recipe, or what it stands on."""
    why = [f"hash {old.hash[:7]} → {new.hash[:7]}"]
    if old.version != new.version:
        why.append(f"version {old.version} → {new.version}")
    if old.package_hash != new.package_hash:
        why.append("recipe")
    differs = sorted(
        key
        for key in {*old.variants, *new.variants}
        if old.variants.get(key) != new.variants.get(key)
    )
    why += [f"variant {key}" for key in differs]
    if old.target != new.target:
        why.append(f"target {old.target} → {new.target}")
    if (old.os, old.flags) != (new.os, new.flags):
        why.append("operating system or compiler flags")
    below = {edge.name: edge.hash for edge in old.dependencies}
    now = {edge.name: edge.hash for edge in new.dependencies}
    moved = sorted(name for name in {*below, *now} if below.get(name) != now.get(name))
    return (*why, *([f"what it stands on: {', '.join(moved)}"] if moved else []))
