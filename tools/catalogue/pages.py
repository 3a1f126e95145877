"""The catalogue's pages of systems and packages. Run by mkdocs-gen-files (mkdocs.yml)."""

from pathlib import Path
from typing import Any

import mkdocs_gen_files
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mvstack.model.load import load_system, system_names
from mvstack.model.yamlfile import parse_yaml
from mvstack.plan.types import Package
from mvstack.report.offers import Offer, planned
from mvstack.report.seen import best
from mvstack.support.home import DATA


def main() -> None:
    """Write every page."""
    plans = planned()
    release, rows, offers = plans.release, plans.rows, list(plans.every())
    systems = [load_system(name) for name in system_names() if name != "local"]
    by_name: dict[str, list[tuple[Package, Offer]]] = {}
    for offer in offers:
        for package in offer.plan.packages if offer.plan else []:
            by_name.setdefault(package.name, []).append((package, offer))
    packages = {one.name: one for one in release.packages}
    common = {"release": release, "systems": systems, "offers": offers, "packages": packages}
    _write("index.md", **common)
    _write("systems/index.md", **common)
    _write("software/index.md", by_name=by_name, **common)
    for system in systems:
        own = [one for one in offers if one.system.name == system.name]
        figures = _figures(system.name)
        _write(f"systems/{system.name}.md", "system.md", system=system, own=own, figures=figures)
    for name in packages:
        versions = [one for one in release.packages if one.name == name]
        modules = dict.fromkeys(one.module for one in versions)
        _write(
            f"software/{name.lower()}.md",
            "package.md",
            versions=versions,
            on=by_name.get(name, []),
            record=best([row for module in modules for row in rows[module]]),
            release=release,
        )
    print(f"catalogue: {len(systems)} systems, {len(packages)} packages", flush=True)


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


def _write(path: str, template: str = "", **values: Any) -> None:
    text = ENVIRONMENT.get_template(f"{template or path}.j2").render(**values)
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters["cell"] = lambda text: " ".join(str(text).split()).replace("|", "\\|")
main()
