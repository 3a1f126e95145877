"""The rules for every recipe, checked without Spack by `mvstack check` and CI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mvstack.model.load import load_policy
from mvstack.model.policy import Policy
from mvstack.plan import easyconfigs
from mvstack.recipes.model import Recipe, Version, class_for
from mvstack.recipes.reading import RECIPES, read_recipes
from mvstack.recipes.wanted import unmet
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SHA256, Known, known_sources
from mvstack.support.errors import InvalidInput, MvstackError, Problem, relative
from mvstack.support.home import DATA
from mvstack.support.words import listed

_COMMIT = re.compile(r"[0-9a-f]{40}")
# A refusal teaches: one of these words must begin what its message tells to do.
_TEACHING = re.compile(
    r"\b(use|take|set|write|choose|ask|leave|add|drop|build|install|put|give|name|require|say|"
    r"load|want)s?\b|\binstead\b",
    re.IGNORECASE,
)
_NO_HASH = re.compile(r"^(licensed|no hash):", re.MULTILINE)
_BECAUSE = re.compile(r"\b(builtin|upstream|Spack)\b", re.IGNORECASE)


def check_recipes(folder: Path = RECIPES, policy: Policy | None = None) -> list[Recipe]:
    """Every recipe below ``folder``. Raises InvalidInput with all that is wrong with them."""
    recipes = read_recipes(folder)
    known = known_sources()
    hashes = easyconfig_hashes()
    problems = [
        problem
        for recipe in recipes
        for check in (names, reasons, variants, refusals, urls)
        for problem in check(recipe)
    ]
    problems += [one for recipe in recipes for one in digests(recipe, hashes, known)]
    # our own: the tables of our recipes are made from it, not from what a site adds
    problems += unmet(recipes, policy or load_policy(DATA / "environments" / "policy"))
    if problems:
        raise InvalidInput(*problems)
    return recipes


def easyconfig_hashes() -> dict[str, tuple[str, ...]]:
    """File name → the SHA-256s that this repository's easyconfigs take for it."""
    try:
        specs = specs_from_easyconfigs(easyconfigs.index().values())
    except MvstackError as error:
        raise InvalidInput(*error.problems) from None
    return {spec.filename: spec.hashes for spec in specs}


def where(recipe: Recipe, line: int = 0) -> str:
    """``file:line`` in a recipe."""
    return f"{relative(recipe.path)}:{line or recipe.line}"


def names(recipe: Recipe) -> Iterator[Problem]:
    """Spack finds a package by its folder and its class by the folder's name."""
    wanted = class_for(recipe.folder)
    if recipe.class_name != wanted:
        yield Problem(
            f"Spack looks for the class {wanted} in this folder",
            where(recipe),
            found=recipe.class_name,
            todo=f"call the class {wanted}, or rename the folder",
        )
    if not recipe.docstring:
        yield Problem(
            "it has no docstring for `spack info`",
            where(recipe),
            todo="say what it is",
        )
    if not recipe.builtin and not recipe.licence:
        yield Problem(
            "it has no license(…)",
            where(recipe),
            todo="add `license(…)` with the SPDX name of the licence in the source",
        )


def reasons(recipe: Recipe) -> Iterator[Problem]:
    """A recipe that stands in for builtin's says what is wrong with that one."""
    if recipe.builtin and not _BECAUSE.search(recipe.docstring + recipe.comments):
        yield Problem(
            f"it inherits builtin's {recipe.builtin} and does not say why",
            where(recipe),
            todo="say in the docstring what is wrong in builtin's recipe, and where you saw it",
        )


def variants(recipe: Recipe) -> Iterator[Problem]:
    """Each variant says what it does, and its default is one of its values."""
    for variant in recipe.variants:
        if not variant.description:
            yield Problem(f"variant {variant.name} has no description", where(recipe, variant.line))
        defaults = variant.default.split(",") if variant.values and variant.default else []
        if strange := [one for one in defaults if one not in variant.values]:
            yield Problem(
                f"the default of variant {variant.name} is not one of its values",
                where(recipe, variant.line),
                found=listed(strange),
                allowed=listed(variant.values),
            )


def refusals(recipe: Recipe) -> Iterator[Problem]:
    """Each conflict and requirement has a message that says what to use instead."""
    for one in recipe.conflicts:
        rule = f"{one.kind}({one.spec!r}{f', when={one.when!r}' if one.when else ''})"
        if not one.message:
            yield Problem(
                f"{rule} has no message", where(recipe, one.line), todo="add msg=… with what to use"
            )
        elif not _TEACHING.search(one.message):
            yield Problem(
                f"the message of {rule} does not say what to use instead",
                where(recipe, one.line),
                found=one.message,
                todo="end it with what works: “…; use netmod=ucx”",
            )


def urls(recipe: Recipe) -> Iterator[Problem]:
    """Sources come over https, and the url of a version is built from its number."""
    for version in recipe.versions:
        url = recipe.url_for(version)
        if version.commit or (recipe.manual and not url) or "url_for_version" in recipe.methods:
            continue
        if recipe.builtin and not recipe.url and not version.url:
            continue  # builtin's url is not known here
        if not url.startswith("https://"):
            yield Problem(
                f"the source of {version.name} is not fetched over https",
                where(recipe, version.line),
                found=url or "no url",
                todo='give the recipe a `url = "https://…"` with a version in it',
            )
        elif not any(version.name.replace(".", mark) in url for mark in (".", "_", "-", "")):
            yield Problem(
                f"the url of {version.name} does not contain its version",
                where(recipe, version.line),
                found=url,
                todo="give the version its own url, or correct the recipe's",
            )


def digests(
    recipe: Recipe, hashes: dict[str, tuple[str, ...]], known: dict[str, Known]
) -> Iterator[Problem]:
    """Each version has a SHA-256, the one that the rest of the repository takes for that file."""
    seen: dict[str, Version] = {}
    for version in recipe.versions:
        if version.name in seen:
            yield Problem(
                f"version {version.name} is declared twice",
                where(recipe, version.line),
                because=f"line {seen[version.name].line} has it",
            )
        seen[version.name] = version
        yield from _digest(recipe, version, hashes, known)


def _digest(
    recipe: Recipe, version: Version, hashes: dict[str, tuple[str, ...]], known: dict[str, Known]
) -> Iterator[Problem]:
    at = where(recipe, version.line)
    if version.commit:
        if not _COMMIT.fullmatch(version.commit):
            yield Problem(
                f"version {version.name}: no full git commit",
                at,
                found=version.commit,
                allowed="40 hexadecimal digits",
            )
        return
    if not SHA256.fullmatch(version.sha256):
        if version.sha256 or not (recipe.manual and _NO_HASH.search(recipe.comments)):
            yield Problem(
                f"version {version.name} has no SHA-256",
                at,
                found=version.sha256 or "none",
                allowed="64 hexadecimal digits in lower case",
                todo="add it. A source that people download (manual_download = True) needs none "
                "if a comment says why: “licensed: …” or “no hash: …”",
            )
        return
    filename = recipe.url_for(version).rpartition("/")[2]
    row = known.get(filename)
    if row and version.sha256 in row.refused:
        yield Problem(
            f"version {version.name}: this hash is refused",
            at,
            found=version.sha256,
            allowed=listed(row.hashes),
            because=row.refused[version.sha256],
        )
    elif row and row.hashes and version.sha256 not in row.hashes:
        yield _other(version, at, filename, row.hashes, "environments/policy/sources.yaml")
    if filename in hashes and version.sha256 not in hashes[filename]:
        yield _other(version, at, filename, hashes[filename], "the easyconfigs")


def _other(version: Version, at: str, name: str, allowed: Iterable[str], whose: str) -> Problem:
    return Problem(
        f"version {version.name}: {name} has another hash in {whose}",
        at,
        found=version.sha256,
        allowed=listed(allowed),
        todo="use the same hash in both places",
    )
