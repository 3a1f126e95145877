"""The rules for every recipe, checked without Spack by `mvstack check` and CI."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mvstack.model.load import load_policy
from mvstack.model.policy import Policy
from mvstack.plan import easyconfigs
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SHA256, Known, known_sources
from mvstack.support.errors import InvalidInput, MvstackError, Problem, relative
from mvstack.support.home import VARIABLE
from mvstack.support.processes import variable
from mvstack.support.words import listed
from recipes.model import Recipe, Version, class_for
from recipes.reading import read_recipes
from recipes.wanted import unmet

_COMMIT = re.compile(r"[0-9a-f]{40}")
# A refusal teaches: one of these words must begin what its message tells to do.
_TEACHING = re.compile(
    r"\b(use|take|set|write|choose|ask|leave|add|drop|build|install|put|give|name|require|say|"
    r"load|want)s?\b|\binstead\b",
    re.IGNORECASE,
)
_NO_HASH = re.compile(r"^(licensed|no hash):", re.MULTILINE)
_BECAUSE = re.compile(r"\b(builtin|upstream|Spack)\b", re.IGNORECASE)


def check_recipes(*folders: Path, policy: Policy | None = None) -> list[Recipe]:
    """Every recipe below ``folders``, else ours. Raises InvalidInput with all that is wrong."""
    recipes, known, hashes = read_recipes(*folders), known_sources(), easyconfig_hashes()
    problems = [
        problem
        for recipe in recipes
        for check in (names, reasons, variants, refusals, urls, partial(digests, hashes, known))
        for problem in check(recipe)
    ]
    # our own: the tables of our recipes are made from it, not from what a site adds
    with variable(VARIABLE, ""):
        problems += unmet(recipes, policy or load_policy())
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


def _wrong(recipe: Recipe, line: int, message: str, **more: str) -> Problem:
    return Problem(message, f"{relative(recipe.path)}:{line}", **more)


def names(recipe: Recipe) -> Iterator[Problem]:
    """Spack finds a package by its folder and its class by the folder's name."""
    wanted, line = class_for(recipe.folder), recipe.line
    if recipe.class_name != wanted:
        what = f"Spack looks for the class {wanted} in this folder"
        todo = f"call the class {wanted}, or rename the folder"
        yield _wrong(recipe, line, what, found=recipe.class_name, todo=todo)
    if not recipe.docstring:
        yield _wrong(recipe, line, "it has no docstring for `spack info`", todo="say what it is")
    if not recipe.builtin and not recipe.licence:
        todo = "add `license(…)` with the SPDX name of the licence in the source"
        yield _wrong(recipe, line, "it has no license(…)", todo=todo)


def reasons(recipe: Recipe) -> Iterator[Problem]:
    """A recipe that stands in for builtin's says what is wrong with that one."""
    if recipe.builtin and not _BECAUSE.search(recipe.docstring + recipe.comments):
        what = f"it inherits builtin's {recipe.builtin} and does not say why"
        todo = "say in the docstring what is wrong in builtin's recipe, and where you saw it"
        yield _wrong(recipe, recipe.line, what, todo=todo)


def variants(recipe: Recipe) -> Iterator[Problem]:
    """Each variant says what it does, and its default is one of its values."""
    for variant in recipe.variants:
        if not variant.description:
            yield _wrong(recipe, variant.line, f"variant {variant.name} has no description")
        defaults = variant.default.split(",") if variant.values and variant.default else []
        if strange := [one for one in defaults if one not in variant.values]:
            what = f"the default of variant {variant.name} is not one of its values"
            allowed = listed(variant.values)
            yield _wrong(recipe, variant.line, what, found=listed(strange), allowed=allowed)


def refusals(recipe: Recipe) -> Iterator[Problem]:
    """Each conflict and requirement has a message that says what to use instead."""
    for one in recipe.conflicts:
        rule = f"{one.kind}({one.spec!r}{f', when={one.when!r}' if one.when else ''})"
        if not one.message:
            todo = "add msg=… with what to use"
            yield _wrong(recipe, one.line, f"{rule} has no message", todo=todo)
        elif not _TEACHING.search(one.message):
            what = f"the message of {rule} does not say what to use instead"
            todo = "end it with what works: “…; use netmod=ucx”"
            yield _wrong(recipe, one.line, what, found=one.message, todo=todo)


def urls(recipe: Recipe) -> Iterator[Problem]:
    """Sources come over https, and the url of a version is built from its number."""
    for version in recipe.versions:
        url = recipe.url_for(version)
        if version.commit or (recipe.manual and not url) or "url_for_version" in recipe.methods:
            continue
        if recipe.builtin and not recipe.url and not version.url:
            continue  # builtin's url is not known here
        if not url.startswith("https://"):
            what = f"the source of {version.name} is not fetched over https"
            todo = 'give the recipe a `url = "https://…"` with a version in it'
            yield _wrong(recipe, version.line, what, found=url or "no url", todo=todo)
        elif not any(version.name.replace(".", mark) in url for mark in (".", "_", "-", "")):
            what = f"the url of {version.name} does not contain its version"
            todo = "give the version its own url, or correct the recipe's"
            yield _wrong(recipe, version.line, what, found=url, todo=todo)


def digests(
    hashes: dict[str, tuple[str, ...]], known: dict[str, Known], recipe: Recipe
) -> Iterator[Problem]:
    """Each version has a SHA-256, the one that the rest of the repository takes for that file."""
    seen: dict[str, Version] = {}
    for version in recipe.versions:
        name, line, digest = version.name, version.line, version.sha256
        if name in seen:
            because = f"line {seen[name].line} has it"
            yield _wrong(recipe, line, f"version {name} is declared twice", because=because)
        seen[name] = version
        if version.commit:
            if not _COMMIT.fullmatch(version.commit):
                what, allowed = f"version {name}: no full git commit", "40 hexadecimal digits"
                yield _wrong(recipe, line, what, found=version.commit, allowed=allowed)
        elif SHA256.fullmatch(digest):
            yield from _elsewhere(hashes, known, recipe, version)
        elif digest or not (recipe.manual and _NO_HASH.search(recipe.comments)):
            yield _wrong(
                recipe,
                line,
                f"version {name} has no SHA-256",
                found=digest or "none",
                allowed="64 hexadecimal digits in lower case",
                todo="add it. A source that people download (manual_download = True) needs none "
                "if a comment says why: “licensed: …” or “no hash: …”",
            )


def _elsewhere(
    hashes: dict[str, tuple[str, ...]], known: dict[str, Known], recipe: Recipe, version: Version
) -> Iterator[Problem]:
    """What the policy and the easyconfigs say against the hash of a version."""
    file, digest = recipe.url_for(version).rpartition("/")[2], version.sha256
    row = known.get(file)
    allowed = {"the easyconfigs": hashes.get(file, ())}
    if row and digest in row.refused:
        what, because = f"version {version.name}: this hash is refused", row.refused[digest]
        instead = listed(row.hashes)
        yield _wrong(recipe, version.line, what, found=digest, allowed=instead, because=because)
    elif row:
        allowed = {"environments/policy/sources.yaml": tuple(row.hashes), **allowed}
    for whose, right in allowed.items():
        if right and digest not in right:
            what = f"version {version.name}: {file} has another hash in {whose}"
            todo = "use the same hash in both places"
            yield _wrong(recipe, version.line, what, found=digest, allowed=listed(right), todo=todo)
