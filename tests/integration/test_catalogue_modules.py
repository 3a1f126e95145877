"""The lines of the catalogue that load modules, loaded by Lmod.

The module files are written from the plans as `mvstack install` writes them for Spack, which have
the places and names of EasyBuild's; nothing is built, so that they name folders that are not there.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from shown_commands import commands_of, texts

from mvstack.builders.spack.modules import module_text, parts_of
from mvstack.plan.types import Plan
from mvstack.report.offers import Offer, planned
from mvstack.support.errors import Missing
from mvstack.tree import modules

FOUND = {"prefix": "/nonexistent", "transport": [], "changes": []}


def alike(plan: Plan) -> tuple[object, ...]:
    """What decides which modules there are."""
    return (plan.compiler["version"], *(one.module for one in plan.mpi), *map(key, plan.packages))


def key(package: object) -> tuple[str, str]:
    return (package.module, package.mpi)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def offers() -> list[Offer]:
    try:
        modules.lmod_command("/opt/mvapich-stack")
    except Missing as error:
        pytest.skip(error.problems[0].message)
    return [one for one in planned().every() if one.plan]


@pytest.fixture(scope="module")
def trees(offers: list[Offer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    """A tree for each kind of plan: those of many partitions have the same modules."""
    top = tmp_path_factory.mktemp("trees")
    made: dict[object, Path] = {}
    for offer in offers:
        if alike(offer.plan) not in made:
            made[alike(offer.plan)] = written(offer.plan, top / str(len(made)))
    yield made


def written(plan: Plan, tree: Path) -> Path:
    # what EasyBuild alone builds has no spec, and a module all the same
    packages = [replace(one, spack=one.spack or one.name) for one in plan.packages]
    plan = replace(plan, tree=str(tree), packages=packages)
    for part in parts_of(plan):
        file = tree / "modules" / part.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(module_text(plan, part, FOUND, frozenset()))
    modules.publish(plan)
    return tree


def lines_of(offer: Offer) -> list[str]:
    """The lines of the system's page that load modules of this partition's tree."""
    text = texts()[f"systems/{offer.system.name}.md"]
    start = text.index(f"## {offer.title}\n")
    end = text.find("\n## ", start + 3)
    own = commands_of(text[start : end if end > 0 else None])
    return [one for one in dict.fromkeys(own) if re.match(r"source .*/init/bash|module load", one)]


def test_each_line_of_a_system_page_loads(offers: list[Offer], trees: dict) -> None:
    wrong, scripts = [], {}
    for offer in offers:
        plan, tree = offer.plan, trees[alike(offer.plan)]
        lines = lines_of(offer)
        assert len(lines) == 1 + len(plan.mpi), (offer.title, lines)
        assert lines[0] == f"source {plan.tree}/init/bash"
        opened = lines[0].replace(plan.tree, str(tree))
        # the packages as well: each is offered in a table, and all of an MPI stand together
        named = {one: [p.module for p in plan.packages if p.mpi in ("", one)] for one in offer.mpi}
        for line in lines[1:]:
            rest = " ".join(named[line.split()[-1]])
            scripts[f"{opened}; {line} && module load {rest}"] = offer.title
    for script, title in scripts.items():
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=120,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        )
        if done.returncode or "error" in done.stderr.lower():
            wrong.append(f"{title}: {script}\n{done.stderr[:800]}")
    assert wrong == []
    assert len(scripts) >= len(trees)


def offers_by_default(offer: Offer, module: str) -> bool:
    mine = [one for one in offer.plan.packages if one.module.split("/")[0] == module]
    return any(one.mpi in ("", offer.mpi[0]) for one in mine)


def test_a_package_page_names_modules_that_load(offers: list[Offer], trees: dict) -> None:
    """Its lines are for this machine; another tree that has the package stands for it."""
    loads: dict[Path, list[str]] = {}
    for page, text in texts().items():
        for line in commands_of(text) if page.startswith("software/") else []:
            if line.startswith("module load"):
                module = line.split()[-1]
                found = [one for one in offers if offers_by_default(one, module)]
                assert found, f"{page}: {line}: on no system by default"
                loads.setdefault(trees[alike(found[0].plan)], []).append(line)
    assert sum(map(len, loads.values())) > 20
    for tree, lines in loads.items():
        script = "\n".join([f"source {tree}/init/bash", "set -e", *lines])
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_a_module_that_is_not_there_would_be_seen(trees: dict) -> None:
    tree = next(iter(trees.values()))
    script = f"source {tree}/init/bash; module load mvapich-stack nothing/1.0"
    assert subprocess.run(["bash", "-c", script], capture_output=True).returncode != 0
