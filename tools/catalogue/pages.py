"""The catalogue's pages of systems and packages. Run by mkdocs-gen-files (mkdocs.yml)."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mkdocs_gen_files
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.model.policy import Policy
from mvstack.model.release import Release
from mvstack.model.system import Partition, System
from mvstack.model.yamlfile import parse_yaml
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, Package, Plan
from mvstack.support.errors import Refused
from mvstack.support.home import DATA

sys.path.insert(0, str(DATA / "tools" / "derived"))
from applications_page import Row, best, counting, read_record


@dataclass(frozen=True)
class Offer:
    """What one partition gets; without a plan, ``because`` says why nothing fits."""

    system: System
    name: str
    part: Partition
    plan: Plan | None
    because: str
    seen: str

    @property
    def title(self) -> str:
        """``system/partition``."""
        return f"{self.system.name}/{self.name}"


@dataclass(frozen=True)
class Planned:
    """What decides all plans; ``rows`` are those of the record that count, by package's module."""

    release: Release
    policy: Policy
    rows: dict[str, list[Row]]

    def offer(self, system: System, name: str) -> Offer:
        """The plan of a partition with all of the release."""
        plan, because = None, ""
        try:
            plan = make_plan(system, name, self.release, self.policy, Given(profile="full"))
        except Refused as error:
            because = "; ".join(problem.message for problem in error.problems)
        part = system.partitions[name]
        return Offer(system, name, part, plan, because, self.seen(system.name, name, plan))

    def seen(self, system: str, name: str, plan: Plan | None) -> str:
        """How far a partition came, in the words of the home page."""
        rendered = (DATA / "environments" / "rendered" / system / name).is_dir()
        modules = {package.module for package in plan.packages} if plan else set()
        where = f" on {system}/{name}"
        done = [
            module
            for module in modules
            if any(row.mpi.endswith(where) and row.state == "resolves" for row in self.rows[module])
        ]
        if done and len(done) == len(modules):
            return "concretized"
        first = "rendered" if rendered else "explained"
        return f"{first}; {len(done)} of {len(modules)} packages concretized" if done else first


def main() -> None:
    """Write every page."""
    release, policy = load_release(), load_policy()
    record = read_record()
    rows: dict[str, list[Row]] = {}
    for one in release.packages:
        found = counting(one, release, record)
        rows.setdefault(one.module, []).extend(row for some in found.values() for row in some)
    systems = [load_system(name) for name in system_names() if name != "local"]
    planned = Planned(release, policy, rows)
    offers = [planned.offer(one, part) for one in systems for part in one.partitions]
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
        own = [one for one in offers if one.system is system]
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
