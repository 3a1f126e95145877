"""What the policy can ask of our recipes: every spec word, held against the recipes' variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mvstack.model.policy import BuildRow, LauncherRow, Policy
from mvstack.model.system import Compiler, Partition
from mvstack.plan import spackspecs
from mvstack.recipes.model import Recipe
from mvstack.support.errors import Problem, relative
from mvstack.support.words import listed, nearest


@dataclass(frozen=True)
class Wanted:
    """One word of a spec that the policy leads to, and the rows that it comes from."""

    package: str
    word: str
    rows: str


def wanted(policy: Policy) -> set[Wanted]:
    """Every word that a build row, with every launcher row of its product, leads to."""
    found: dict[tuple[str, str], Wanted] = {}
    for build in policy.builds:
        for launcher in policy.launchers:
            if launcher.when.product and build.use.product not in launcher.when.product:
                continue
            for package, word in _words(build, launcher, policy):
                rows = f"builds.yaml {build.id}, launchers.yaml {launcher.id}"
                found.setdefault((package, word), Wanted(package, word, rows))
    return set(found.values())


def _words(build: BuildRow, launcher: LauncherRow, policy: Policy) -> Iterator[tuple[str, str]]:
    for device in build.use.devices:
        for fabric in build.when.fabric or ["tcp"]:
            for gpu in build.when.gpu or ["none"]:
                for starts in launcher.when.launcher:
                    for pmi in launcher.pmi:
                        part = _partition(build, fabric, gpu, starts)
                        part = part.model_copy(update={"file_systems": list(policy.file_systems)})
                        pm = launcher.configure.get("pm", "")
                        asked = spackspecs.Build(
                            build.use.product, "0", device, pmi, gpu, build.use.configure, pm
                        )
                        for word in spackspecs.mpi(part, asked, policy).words:
                            # `:=` is these values and no others; which, is all one here
                            yield asked.product, word.replace(":=", "=")


def _partition(build: BuildRow, fabric: str, gpu: str, launcher: str) -> Partition:
    return Partition.model_validate(
        {
            "cores": 1,
            "memory_gb": 1,
            "target": "x86_64",
            "fabric": fabric,
            "gpu": gpu,
            "gpus": 0 if gpu == "none" else 1,
            "launcher": launcher,
            "compiler": Compiler(version="12.2.0").model_dump(),
            "mpi": {"libfabric": build.when.libfabric},
        }
    )


def unmet(recipes: Iterable[Recipe], policy: Policy) -> list[Problem]:
    """A problem for each word that no recipe knows; packages that are not ours are builtin's."""
    ours = {recipe.name: recipe for recipe in recipes if not recipe.builtin}
    problems = []
    for one in sorted(wanted(policy), key=lambda one: (one.package, one.word)):
        recipe = ours.get(one.package)
        if recipe is not None:
            problems += list(_unknown(recipe, one))
    return problems


def _unknown(recipe: Recipe, one: Wanted) -> Iterator[Problem]:
    known = recipe.variant_values()
    name, _, values = one.word.replace(":=", "=").partition("=")
    if not values:
        name, values = one.word[1:], "false" if one.word[0] == "~" else "true"
    where = relative(recipe.path)
    if name not in known:
        yield Problem(
            f"the policy leads to {one.package} {one.word}, and the recipe has no variant {name}",
            where,
            allowed=listed(sorted(known)),
            nearest=nearest(name, known),
            because=one.rows,
        )
        return
    for value in values.split(","):
        if known[name] and value not in known[name]:
            yield Problem(
                f"the policy leads to {one.package} {name}={value}, which its variant lacks",
                where,
                allowed=listed(sorted(known[name])),
                nearest=nearest(value, known[name]),
                because=one.rows,
            )
