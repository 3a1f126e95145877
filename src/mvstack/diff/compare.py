"""Two sides held against each other, as text for a person and data for a script. Pure."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from mvstack.plan.graph import Graph, Node, differing, pairs, reasons
from mvstack.support.words import few


@dataclass(frozen=True)
class Change:
    """``what`` is added, removed or changed; ``why`` names the ingredients that differ."""

    what: str
    kind: str
    name: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """What changes for one partition."""

    name: str
    builder: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def mpi(self) -> bool:
        """Whether an MPI is added or its hash changes; then all that stands on it is rebuilt."""
        return bool(self._mpi() - {"removed"})

    @property
    def headline(self) -> str:
        """What becomes of the MPI, in words."""
        words = {"added": "the MPI is new", "removed": "the MPI is removed"}
        found = self._mpi()
        one = next(iter(found)) if len(found) == 1 else "changed"
        return words.get(one, "the MPI is rebuilt") if found else "the MPI stays"

    def _mpi(self) -> set[str]:
        return {change.what for change in self.changes if change.kind == "mpi"}

    def of(self, what: str) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.what == what]


def compare(old: dict[str, Graph], new: dict[str, Graph]) -> list[Difference]:
    """Every partition of both sides."""
    return [partition(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]


def partition(name: str, old: Graph | None, new: Graph | None) -> Difference:
    """One partition, of which a side may have none."""
    there = new or old or Graph(name, "", "plan", {})
    if old and new and old.builder != new.builder:
        other = (f"builder {old.builder} → {new.builder}",)
        all_of = [one for one in new.nodes.values() if one.kind != "toolchain"]
        changes = [Change("changed", node.kind, node.label, other) for node in all_of]
        return Difference(name, new.builder, tuple(changes))
    before = old or replace(there, nodes={})
    after = new or replace(there, nodes={})
    told: list[Change] = []
    notes: tuple[str, ...] = ()
    for was, now in pairs(before, after):
        node = now or was
        if node and node.kind != "toolchain":
            what = "changed" if was and now else "added" if now else "removed"
            why = _why(was, now, before, after) if was and now else ()
            told.append(Change(what, node.kind, node.label, why))
    others = sorted({*before.others, *after.others})
    if unused := [one for one in others if before.others.get(one) != after.others.get(one)]:
        notes = (
            f"recipes that differ and are no planned package: {few(unused)}; "
            "Spack's solver alone knows whether anything here uses them",
        )
    if before.tree != after.tree:
        notes += (
            f"the tree moves from {before.tree} to {after.tree}: all is installed there anew, "
            "unchanged packages from a binary cache that has them",
        )
    return Difference(name, there.builder, tuple(told), notes)


def _why(old: Node, new: Node, before: Graph, after: Graph) -> tuple[str, ...]:
    """What changed in a node itself, else what it stands on that changed."""
    if own := reasons(old, new):
        return own
    had = {node.content for node in before.nodes.values()}
    below = [after.nodes[key] for key in new.needs if after.nodes[key].content not in had]
    by_identity = {node.identity: node for node in before.nodes.values()}
    first = [
        one
        for one in below
        if (was := by_identity.get(one.identity)) is None or differing(was, one)
    ]
    if names := list(dict.fromkeys(one.name for one in first or below)):
        return (f"what it stands on: {few(names)}",)
    return (f"hash {old.content[:7]} → {new.content[:7]}",)


MARKS = {"added": "+", "removed": "-", "changed": "~"}


def as_data(revision: str, differences: list[Difference]) -> dict[str, Any]:
    """For ``--json``; ``changes`` says whether anything is rebuilt anywhere."""
    partitions = {
        one.name: {
            "builder": one.builder,
            "mpi_changes": one.mpi,
            **{what: [asdict(change) for change in one.of(what)] for what in MARKS},
            "notes": one.notes,
        }
        for one in differences
    }
    changes = any(one.changes for one in differences)
    return {"against": revision, "changes": changes, "partitions": partitions}


def as_text(revision: str, differences: list[Difference]) -> str:
    """A paragraph for each partition that changes, and a last line for the others."""
    lines: list[str] = []
    for one in differences:
        if one.changes:
            counts = [f"{len(one.of(what))} {what}" for what in MARKS if one.of(what)]
            lines.append(f"{one.name} ({one.builder}): {one.headline}; {', '.join(counts)}")
        for change in one.changes:
            why = f": {'; '.join(change.why)}" if change.why else ""
            lines.append(f"  {MARKS[change.what]} {change.name}{why}")
        lines += [f"  note: {one.name}: {note}" for note in one.notes]
    same = [one.name for one in differences if not one.changes]
    if len(same) == len(differences):
        lines.append(f"nothing is rebuilt against {revision}: {', '.join(same)}")
    elif same:
        lines.append(f"nothing is rebuilt for {', '.join(same)}")
    return "\n".join(lines)
