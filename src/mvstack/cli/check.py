"""``mvstack check``: read every hand-written file and say what is wrong with it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import typer

from mvstack.cli import options
from mvstack.fabric.judge import fault_policy
from mvstack.image.policy import image_policy
from mvstack.install.local import seen
from mvstack.model.ci_policy import ci_policy
from mvstack.model.gates import load_gates
from mvstack.model.load import load_policy, load_release, load_system, release_names, system_names
from mvstack.model.prerequisites import families
from mvstack.model.release import Release
from mvstack.model.spack import spack_pins
from mvstack.model.system import System
from mvstack.model.tuning import load_tuning
from mvstack.plan.make import make_plan, split_name
from mvstack.plan.offers import doubts, system_doubts, variant_doubts
from mvstack.plan.types import Given
from mvstack.recipes.rows import check_rows
from mvstack.render.partition import render
from mvstack.render.templates import site_lua
from mvstack.report.told import check_references
from mvstack.sources.spec import known_sources
from mvstack.support.console import say
from mvstack.support.errors import (
    InvalidInput,
    MvstackError,
    Problem,
    Refused,
    gathered,
    relative,
    together,
)
from mvstack.support.files import read_python
from mvstack.support.home import INSTALLED, home, own_tool
from mvstack.support.words import nearest
from mvstack.test.run import every_check

app = options.commands()


@app.command(
    epilog="Examples: mvstack check   ·   mvstack check mine.yaml expanse   ·   "
    "mvstack discover | mvstack check -"
)
def check(systems: options.Systems = None, as_json: options.Json = False) -> None:
    """Check system, release and policy files, and recipes; show all errors with file and line."""
    errors: list[MvstackError] = []
    warnings: list[Problem] = []
    checked: list[str] = []
    recipes: list[str] = []
    policy = load_policy()
    files = known_sources, load_gates, load_tuning, families, spack_pins, ci_policy, image_policy
    for read in (*files, fault_policy):
        with gathered(errors):
            read()
    releases = [load_release(name) for name in release_names()]
    todays = [one for one in releases if not one.systems]
    for name in systems or system_names():
        with gathered(errors):
            named, partition = split_name(name)
            system = load_system(named)
            if not system.discover and not system.partitions and not partition:
                continue  # nothing is offered there, and the file says why
            system, partitions = seen(system, partition)
            for partition in partitions:
                _served(system, partition)
                fallback = Given(fallback=system.discover)
                plans = [make_plan(system, partition, one, policy, fallback) for one in todays]
                warnings += [*doubts(system, partition, policy), *variant_doubts(system, plans[0])]
                try:
                    render(plans[0])
                except Refused as error:  # the easyconfigs may yet be written
                    where = system.at("partitions", partition, "compiler")
                    warnings += [replace(one, where=where) for one in error.problems]
                checked.append(f"{system.name}/{partition}")
            warnings += system_doubts(system)
            for past in (one for one in releases if system.name in one.systems):
                was = past.then(system)
                plans = [make_plan(was, partition, past, policy) for partition in was.partitions]
                checked += [f"{system.name}/{plan.partition} of {past.name}" for plan in plans]
    if not systems:
        for one in _beside_systems():
            with gathered(errors):
                one()
        with gathered(errors):
            warnings += _of_nothing(releases)
        with gathered(errors):
            if not INSTALLED:  # those that come in a package were checked where it was made
                recipes += [recipe.name for recipe in own_tool("check_recipes")()]
            check_rows(releases, policy)
    for line in [line for one in warnings if not as_json for line in one.lines()]:
        typer.echo(line if line.startswith(" ") else f"warning: {line}", err=True)
    if errors:
        raise together(errors)
    data = {
        "checked": checked,
        "releases": [release.name for release in releases],
        "recipes": recipes,
        "warnings": [one.as_dict() for one in warnings],
    }
    more = f", {len(recipes)} Spack recipes" if recipes else ""
    said = f"{len(checked)} partitions, {len(releases)} releases{more} and the policy: no errors"
    say(data, as_json, said)


def _served(system: System, partition: str) -> None:
    """Raise InvalidInput for an `image_from` that names no partition with an image."""
    if not (name := system.partitions[partition].image_from):
        return
    other, _, part = name.partition("/")
    row = load_system(other).partitions.get(part) if other in system_names() else None
    if row is None or row.image is None:
        where = system.at("partitions", partition, "image_from")
        raise InvalidInput(
            "there is no partition of this name that has an image", where, found=name
        )


def _of_nothing(releases: list[Release]) -> Iterator[Problem]:
    """Each check of a package that no release has: it would never run, and nobody would be told."""
    names = {package.name for one in releases for package in one.packages}
    lost = {one.file: one for one in every_check() if one.software not in ("", *names)}
    for check in lost.values():
        what = f"check {check.name} never runs: no release has a package {check.software}"
        close = nearest(check.software, names)
        todo = f"correct `software`, or add the package: mvstack new application {check.software}"
        yield Problem(what, relative(check.file), nearest=close, todo=todo)


def _beside_systems() -> list[Callable[[], object]]:
    """What reads a site's recipes, the checks, their figures and the module file of the site."""
    site = home().site
    added = sorted(site.glob("spack-repo/spack_repo/*/packages/*/package.py")) if site else []
    return [
        *(partial(read_python, path) for path in added),
        *(partial(check_references, path) for path in home().files("references").values()),
        site_lua,
    ]
