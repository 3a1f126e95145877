"""Versions of an environment's roots that their recipes call deprecated, told before solving.

Spack refuses them too, after its solver has looked for an answer that is not there: for a gcc
that took longer than five minutes, without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mvstack.builders.spack.gates.deprecated import Standing, recipe_of, standing
from mvstack.model.constraint import Constraint, parse
from mvstack.support.errors import Problem


def deprecated_roots(
    specs: Iterable[str], repos: Mapping[str, Path], where: Path | str
) -> list[Problem]:
    """A problem for each exact version (``@=4.0``) in ``specs`` that its recipe calls deprecated.

    ``repos`` are folders of package repositories by namespace, the one that counts first before
    the others. Raises InvalidInput for a spec that cannot be read.
    """
    problems = []
    asked = {
        (one.namespace, one.name, version.removeprefix("="))
        for spec in specs
        for one in _with_all_below(parse(spec))
        for version in one.versions
        if version.startswith("=")
    }
    for namespace, name, version in sorted(asked):
        known = _standing(namespace, name, repos)
        if known and version in known.deprecated:
            numbered = [one for one in known.current if one[:1].isdigit()]
            series = [one for one in numbered if _same_series(one, version)]
            problems.append(
                Problem(
                    f"the recipe of {name} calls version {version} deprecated",
                    str(where),
                    found=f"{name}@={version}",
                    allowed=", ".join(series or numbered[:5]),
                    todo="ask for one of these in the system's or the release's file",
                )
            )
    return problems


def _with_all_below(one: Constraint) -> Iterable[Constraint]:
    yield one
    for below in one.below:
        yield from _with_all_below(below)


def _standing(namespace: str, name: str, repos: Mapping[str, Path]) -> Standing | None:
    for folder in [repos[namespace]] if namespace in repos else repos.values():
        try:
            return standing(recipe_of(folder, name).read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
    return None


def _same_series(one: str, other: str) -> bool:
    return one.split(".")[0] == other.split(".")[0]
