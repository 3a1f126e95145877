"""The catalogue's pages of systems and packages, as Markdown."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mvstack.model.load import load_system, system_names
from mvstack.model.yamlfile import parse_yaml
from mvstack.plan.types import Package
from mvstack.report.offers import Offer, planned
from mvstack.report.seen import best
from mvstack.support.home import DATA


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
    common = {"release": release, "systems": systems, "offers": offers, "packages": packages}
    made = {
        "index.md": _made("index.md", **common),
        "systems/index.md": _made("systems/index.md", **common),
        "software/index.md": _made("software/index.md", by_name=by_name, **common),
    }
    for system in systems:
        own = [one for one in offers if one.system.name == system.name]
        made[f"systems/{system.name}.md"] = _made(
            "system.md", system=system, own=own, figures=_figures(system.name)
        )
    for name in packages:
        versions = [one for one in release.packages if one.name == name]
        modules = dict.fromkeys(one.module for one in versions)
        made[f"software/{name.lower()}.md"] = _made(
            "package.md",
            versions=versions,
            on=by_name.get(name, []),
            record=best([row for module in modules for row in rows[module]]),
            release=release,
        )
    return made


def _figures(name: str) -> list[dict[str, Any]]:
    """The published figures of a system: one row a figure."""
    path = DATA / "tests" / "references" / f"{name}.yaml"
    if not path.is_file():
        return []
    return [
        {**row, **figure}
        for row in parse_yaml(path.read_text(), path).data or []
        for figure in (row.get("figures") or [{}])
    ]


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
