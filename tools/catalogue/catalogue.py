"""The catalogue's pages of systems and packages, as Markdown."""

from pathlib import Path
from typing import Any

from drawings import module_tree, partitions
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plots import checks, compared, measured, published

from mvstack.model.load import load_system, system_names
from mvstack.plan.types import Package
from mvstack.render.partition import RENDERED
from mvstack.report.offers import Offer, planned
from mvstack.report.seen import Row, best


def pages() -> dict[str, str]:
    """The text of each page, by its path."""
    plans = planned()
    release, rows, offers = plans.release, plans.rows, list(plans.every())
    systems = [load_system(name) for name in system_names() if name != "local"]
    by_name: dict[str, list[tuple[Package, Offer]]] = {}
    for offer in offers:
        for package in offer.plan.packages if offer.plan else []:
            by_name.setdefault(package.name, []).append((package, offer))
    packages = {one.name: one for one in release.packages}
    first = {one.module for one in release.packages if one.profile == "default"}
    common = {"release": release, "systems": systems, "offers": offers, "packages": packages}
    made = {
        "index.md": _made("index.md", **common),
        "systems/index.md": _made("systems/index.md", **common),
        "software/index.md": _made("software/index.md", by_name=by_name, **common),
    }
    for system in systems:
        own = [one for one in offers if one.system.name == system.name]
        made[f"systems/{system.name}.md"] = _made(
            "system.md",
            system=system,
            own=own,
            figures=[one for one in published() if one["system"] == system.name],
        )
    for name in packages:
        # what EasyBuild builds first: it can be built on any machine
        versions = sorted(
            (one for one in release.packages if one.name == name),
            key=lambda one: one.where.builder == "spack",
        )
        modules = dict.fromkeys(one.module for one in versions)
        made[f"software/{name.lower()}.md"] = _made(
            "package.md",
            versions=versions,
            on=_together(by_name.get(name, []), rows, first),
            record=best([row for module in modules for row in rows[module]]),
            checks=checks().get(name, []),
            figures=[one for one in published() if _is_of(one, name)],
            release=release,
        )
    return made


def _together(
    found: list[tuple[Package, Offer]], rows: dict[str, list[Row]], first: set[str]
) -> dict[tuple[str, str, str], list[Offer]]:
    """The partitions that get a package, by its module, its MPI and how far it came there.

    A lock of the partition is of the modules in ``first``, the default ones.
    """
    groups: dict[tuple[str, str, str], list[Offer]] = {}
    for package, offer in found:
        there = [row for row in rows[package.module] if row.mpi.endswith(f" on {offer.title}")]
        state = {"resolves": "concretized"}.get(there[0].state, there[0].state) if there else ""
        if not state:
            state = offer.seen.partition(";")[0]
            if state == "concretized" and package.module not in first:
                state = "rendered" if (RENDERED / offer.title).is_dir() else "explained"
        key = (package.module, package.mpi, state)
        groups.setdefault(key, []).append(offer)
    return groups


def _is_of(figure: dict[str, Any], name: str) -> bool:
    """Whether a published figure is one of the package: its benchmark begins with that name."""
    words = str(figure.get("benchmark", "")).lower().split()
    return words[:1] == [name.lower()]


def _made(template: str, **values: Any) -> str:
    return ENVIRONMENT.get_template(f"{template}.j2").render(**values)


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters["cell"] = lambda text: " ".join(str(text).split()).replace("|", "\\|")
ENVIRONMENT.globals |= {
    "compared": compared,
    "measured": measured,
    "module_tree": module_tree,
    "partitions": partitions,
}
