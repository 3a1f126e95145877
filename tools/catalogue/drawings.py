"""Drawings as SVG in the page: narrow enough for a phone, in the page's own colours.

What a drawing shows also stands beside it as text or in a table, and its title says it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap

from mvstack.model.system import System
from mvstack.plan.types import Plan
from mvstack.report.offers import Offer

WIDTH, ROW = 380, 20
MOST = 8  # packages of one level that the tree names


def _svg(height: float, said: str, parts: Iterable[str]) -> str:
    """An element on one line, as Markdown needs it."""
    label = escape(said, quote=True)
    return (
        f'<svg class="drawing" role="img" viewBox="0 0 {WIDTH} {height:g}" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} rx="4" class="{kind}"/>'


def partitions(system: System, offers: Sequence[Offer]) -> str:
    """The partitions of a system, each with its nodes, joined to its fabric by its links."""
    parts, said, y = [], [], 2.0
    for offer in offers:
        part, network = offer.part, offer.part.network
        nodes = f"{part.nodes} nodes" if part.nodes > 1 else "1 node"
        inside = [f"{nodes} of {part.cores} cores, {part.target}"]
        if part.memory_gb:
            inside.append(f"{part.memory_gb} GB of memory each")
        if part.gpus:
            inside.append(f"{part.gpus} × {part.gpu_model or part.gpu}")
        rails = network.rails or 1
        links = f"{rails} × {network.gbps} Gb/s" if network.gbps else ""
        height = ROW * (len(inside) + 1) + 12
        parts += [_box(1, y, 250, height, "nodes"), _text(10, y + 18, offer.name, "name")]
        parts += [_text(10, y + 18 + ROW * n, line) for n, line in enumerate(inside, 1)]
        for rail in range(min(rails, 8)):
            at = y + height / 2 + 6 * (rail - (min(rails, 8) - 1) / 2)
            parts.append(f'<line x1="251" x2="285" y1="{at:g}" y2="{at:g}" class="link"/>')
        parts += [_box(285, y, 94, height, "fabric"), _text(292, y + 18, part.fabric, "name")]
        parts.append(_text(292, y + 18 + ROW, links))
        said.append(f"{offer.name}: {', '.join(inside)}; {part.fabric} {links}".strip())
        y += height + 10
    for name in system.not_offered:
        parts += [_box(1, y, 250, 28, "none"), _text(10, y + 18, f"{name}: nothing is offered")]
        said.append(f"{name}: nothing is offered")
        y += 38
    return _svg(y, f"Partitions of {system.name}. {'. '.join(said)}.", parts) if said else ""


def module_tree(plan: Plan) -> str:
    """What each ``module load`` makes visible: compiler, MPI builds, packages."""
    rows: list[tuple[int, str]] = [(0, f"mvapich-stack/{plan.release}")]
    rows.append((1, f"{plan.compiler['name']}/{plan.compiler['version']}"))

    def packages(depth: int, mpi: str) -> None:
        names = [one.module for one in plan.packages if one.mpi == mpi]
        shown = names if len(names) <= MOST + 1 else names[:MOST]
        rows.extend((depth, name) for name in shown)
        if len(names) > len(shown):
            rows.append((depth, f"and {len(names) - len(shown)} more"))

    packages(2, "")
    for build in plan.mpi:
        rows.append((2, build.module))
        packages(3, build.module)
    parts = []
    for number, (depth, name) in enumerate(rows):
        x, y = 10 + 28 * depth, 16 + ROW * number
        parts.append(_text(x, y, name, "name" if depth < 2 else ""))
        if depth:
            above = max(n for n in range(number) if rows[n][0] == depth - 1)
            path = f"M{x - 20} {20 + ROW * above}V{y - 5}H{x - 4}"
            parts.append(f'<path d="{path}" class="link"/>')
    said = "; ".join(f"level {depth}: {name}" for depth, name in rows)
    return _svg(ROW * len(rows) + 8, f"Tree of modules. {said}.", parts)


def bars(title: str, unit: str, rows: Sequence[tuple[str, float]]) -> str:
    """A bar for each (label, value), with the value in figures; "" for fewer than two."""
    if len(rows) < 2:
        return ""
    most = max(value for _, value in rows) or 1
    parts = [_text(1, 16, f"{title}, {unit}", "name")]
    y = 30.0
    for label, value in rows:
        for line in wrap(label, 54):
            parts.append(_text(1, y + 10, line))
            y += 16
        length = max(1, 290 * value / most)
        parts += [_box(1, y, length, 12, "bar"), _text(length + 7, y + 11, f"{value:,.5g} {unit}")]
        y += 24
    said = "; ".join(f"{label}: {value:g}" for label, value in rows)
    return _svg(y, f"{title} in {unit}. {said}.", parts)
