"""Plots as inline SVG: matplotlib draws, then the page's own colours and texts are put in.

Deterministic (fixed salt, no date) and free of anything that a reader's data could break: text of
the records never goes through matplotlib; the page writes names into its legend. matplotlib is
imported on first use, because it costs more time than all of the command line.
"""

import io
import math
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from mvstack.report.series import Line, Plot
from mvstack.support.units import quantity, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Markers and dashes differ too: a curve must be told apart without its colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
COLOURS = 6
_WIDTH, _HEIGHT = 4.6, 3.4  # inches of 72 px: about as wide as a phone, so 11 px stay 11 px
# matplotlib draws in these colours, which nothing else has, and CSS variables replace them.
_INK, _GRID = "#010203", "#010204"
_OURS = {_INK: "var(--muted)", _GRID: "var(--line)"} | {
    f"#0a0b{index:02x}": f"var(--s{index + 1})" for index in range(COLOURS)
}
_OURS["'DejaVu Sans', sans-serif"] = "var(--font)"  # at the size that matplotlib laid out
_LARGEST = 2**60  # beyond this a record is wrong, and a drawing library may fail
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "mvapich-stack",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib's own: the same layout everywhere
    "font.size": 11,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
    "grid.color": _GRID,
    "axes.linewidth": 0.8,
    "path.simplify": False,
}


def drawable(plot: Plot) -> bool:
    """Whether anything of it fits on logarithmic axes."""
    return any(_known(line, "value")[0] for line in plot.lines)


def _known(line: Line, *names: str) -> list[list[float]]:
    """Sizes and values of the points whose ``names`` a logarithmic axis can show all."""
    rows = [[point.size, *(getattr(point, name) for name in names)] for point in line.points]
    fit = [row for row in rows if all(one and 1 / _LARGEST < one < _LARGEST for one in row)]
    return [[row[column] for row in fit] for column in range(len(names) + 1)]


def svg(plot: Plot, label: str) -> str:
    """The plot as an SVG element for an HTML page; ``label`` is its text alternative."""
    # start-up time: see above
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_SETTINGS}):  # type: ignore[dict-item]
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        for index, line in enumerate(plot.lines):
            _draw_line(axes, index, line)
        _axes(axes, plot)
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=empty)
    return _inline(buffer.getvalue(), plot, label)


def _draw_line(axes: "Axes", index: int, line: Line) -> None:
    colour = f"#0a0b{index % COLOURS:02x}"
    sizes, values = _known(line, "value")
    band, lows, highs = _known(line, "low", "high")
    axes.fill_between(band, lows, highs, color=colour, alpha=0.25, linewidth=0)
    references = _known(line, "reference")
    axes.plot(
        *references,
        color=colour,
        linestyle=(0, (2, 2)),
        linewidth=1.2,
        marker="_" if len(references[0]) == 1 else "",  # a lone one is a dash of no length
        markersize=16,
        zorder=2,
    )
    (drawn,) = axes.plot(
        sizes,
        values,
        color=colour,
        linewidth=1.8,
        marker=MARKERS[index % len(MARKERS)],
        markersize=4,
        markeredgewidth=0,
        zorder=3,
    )
    drawn.set_gid(f"line{index}")


def _axes(axes: "Axes", plot: Plot) -> None:
    # start-up time: see above
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({size for line in plot.lines for size in _known(line, "value")[0]})
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])
    step = max(1, math.ceil((high - low) / 5))
    ticks = [2.0**power for power in range(math.ceil(low), math.floor(high) + 1, step)]
    ticks = ticks if len(ticks) > 1 else [float(one) for one in (sizes[0], sizes[-1])]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(round(value))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("message size")
    axes.grid(True, which="major", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", length=0)
    axes.tick_params(axis="x", which="major", length=3)


def _inline(raw: bytes, plot: Plot, label: str) -> str:
    """The SVG without prolog, name spaces and fixed colours; ids of its own; a title per point."""
    root = ElementTree.fromstring(raw)
    for number, line in enumerate(plot.lines):
        points = zip(*_known(line, "value"), strict=True)
        marks = root.iterfind(f".//{_SVG}g[@id='line{number}']//{_SVG}use")
        for mark, (bytes_, value) in zip(marks, points, strict=False):
            title = ElementTree.SubElement(mark, "title")
            title.text = f"{size(int(bytes_))}: {quantity(value, plot.unit)} ({line.label})"
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = {
            name.replace(_HREF, "href"): _own(name, value, plot.key)
            for name, value in element.attrib.items()
            if name not in ("width", "height", "version") or element is not root
        }
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _own(name: str, value: str, key: str) -> str:
    """An attribute's value with ids of this plot alone, and the page's colours and font."""
    if name == "id":
        return f"{key}-{value}"
    if name == _HREF:
        return value.replace("#", f"#{key}-")
    value = value.replace("url(#", f"url(#{key}-")
    for drawn, ours in _OURS.items():
        value = value.replace(drawn, ours)
    return value
