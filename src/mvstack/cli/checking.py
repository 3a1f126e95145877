"""`mvstack check`: read every hand-written file and say what is wrong with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from mvstack.cli.options import Json, Systems
from mvstack.install import stages
from mvstack.model.load import load_policy, load_release, release_names, system_names
from mvstack.sources.spec import known_sources
from mvstack.support.console import say
from mvstack.support.errors import MvstackError, Problem, together


def check(systems: Systems = None, as_json: Json = False) -> None:
    """Check system, release and policy files, and recipes; show all errors with file and line."""
    # start-up time: only `check` reads all of this
    from mvstack.builders.base import builder_of
    from mvstack.image.policy import image_policy
    from mvstack.model.ci_policy import ci_policy
    from mvstack.model.gates import load_gates
    from mvstack.model.prerequisites import families
    from mvstack.model.spack import spack_pins
    from mvstack.model.yamlfile import read_yaml
    from mvstack.plan.make import make_plan
    from mvstack.plan.offers import doubts, system_doubts
    from mvstack.plan.types import Given
    from mvstack.recipes.checks import check_recipes
    from mvstack.recipes.wanted import check_rows
    from mvstack.render.templates import site_lua
    from mvstack.support.home import home
    from mvstack.support.texts import read_python
    from mvstack.test.expected import expected_checks

    errors: list[MvstackError] = []
    warnings: list[Problem] = []
    checked: list[str] = []
    policy = load_policy()
    for read in (known_sources, load_gates, families, spack_pins, ci_policy, image_policy):
        try:
            read()
        except MvstackError as error:
            errors.append(error)
    releases = [load_release(name) for name in release_names()]
    for name in systems or system_names():
        try:
            system, partitions = stages.load(name)
            for partition in partitions:
                fallback = Given(fallback=system.discover)
                for release in releases:
                    make_plan(system, partition, release, policy, fallback)
                warnings += doubts(system, partition, policy)
                warnings += builder_of(system.builder).doubts(system, partition)
                checked.append(f"{system.name}/{partition}")
            warnings += system_doubts(system)
        except MvstackError as error:
            errors.append(error)
    recipes: list[str] = []
    site = home().site
    added = sorted(site.glob("spack-repo/spack_repo/*/packages/*/package.py")) if site else []
    reads: list[partial[Any]] = [partial(read_python, path) for path in added]
    reads += [partial(expected_checks, folder, []) for folder in home().folders("checks")]
    reads += [partial(read_yaml, path) for path in home().files("references").values()]
    reads.append(partial(site_lua))
    for one in [] if systems else reads:
        try:
            one()
        except MvstackError as error:
            errors.append(error)
    if not systems:
        try:
            recipes = [recipe.name for recipe in check_recipes()]
            check_rows(releases, policy)
        except MvstackError as error:
            errors.append(error)
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
