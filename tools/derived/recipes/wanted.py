"""What the policy can ask of our recipes: every spec word, held against the recipes' variants."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

from mvstack.model.policy import Policy
from mvstack.model.rules import BuildRow, LauncherRow
from mvstack.model.system import Compiler, Partition, Wish
from mvstack.model.vocabulary import Provision
from mvstack.plan import spackspecs
from mvstack.support.errors import Problem, relative
from mvstack.support.words import listed, nearest
from recipes.model import Recipe


def wanted(policy: Policy) -> dict[tuple[str, str], str]:
    """(package, word of a spec) → the rows that lead there: each build with each launcher."""
    found: dict[tuple[str, str], str] = {}
    for build in policy.builds:
        for launcher in policy.launchers:
            if launcher.when.product and build.use.product not in launcher.when.product:
                continue
            for package, word in _words(build, launcher, policy):
                file = "fabrics.yaml" if build.id in policy.fabrics else "builds.yaml"
                rows = f"{file} {build.id}, launchers.yaml {launcher.id}"
                found.setdefault((package, word), rows)
    return found


def _words(build: BuildRow, launcher: LauncherRow, policy: Policy) -> Iterator[tuple[str, str]]:
    for device, fabric, gpu, starts, pmi in product(
        build.use.devices,
        build.when.fabric or ["tcp"],
        build.when.gpu or ["none"],
        launcher.when.launcher,
        launcher.pmi,
    ):
        part = _partition(fabric, gpu, starts, build.when.libfabric, tuple(policy.file_systems))
        use, pm = build.use, launcher.configure.get("pm", "")
        asked = spackspecs.Build(use.product, device, pmi, gpu, use.configure, pm)
        for word in spackspecs.mpi(part, asked, policy):
            # `:=` is these values and no others; which, is all one here
            yield use.product, word.replace(":=", "=")


@cache
def _partition(
    fabric: str, gpu: str, launcher: str, libfabric: Provision | None, file_systems: tuple[str, ...]
) -> Partition:
    """One for all rows that lead to it: there are thousands, and to validate one takes a while."""
    return Partition(
        cores=1,
        memory_gb=1,
        target="x86_64",
        fabric=fabric,
        gpu=gpu,
        gpus=0 if gpu == "none" else 1,
        launcher=launcher,
        compiler=Compiler(version="12.2.0"),
        file_systems=list(file_systems),
        mpi=Wish(libfabric=libfabric),
    )


def unmet(recipes: Iterable[Recipe], policy: Policy) -> list[Problem]:
    """A problem for each word that no recipe knows; packages that are not ours are builtin's."""
    ours = {recipe.name: recipe for recipe in recipes if not recipe.builtin}
    # the recipe's table of fabrics is made from these, and `render --check` holds it to them
    made = {f"fabrics={name}" for name, row in policy.fabrics.items() if row.libfabric}
    problems: list[Problem] = []
    for (package, word), rows in sorted(wanted(policy).items()):
        if package in ours and not (package == "mvapich" and word in made):
            problems += _unknown(ours[package], word, rows)
    return problems


def _unknown(recipe: Recipe, word: str, rows: str) -> Iterator[Problem]:
    known = recipe.variant_values()
    name, _, values = word.partition("=")
    if not values:
        name, values = word[1:], "false" if word[0] == "~" else "true"
    lacking = [
        (f"{name}={value}, which its variant lacks", value, known[name])
        for value in values.split(",")
        if known.get(name) and value not in known[name]
    ]
    if name not in known:
        lacking = [(f"{word}, and the recipe has no variant {name}", name, set(known))]
    for what, strange, allowed in lacking:
        yield Problem(
            f"the policy leads to {recipe.name} {what}",
            relative(recipe.path),
            allowed=listed(sorted(allowed)),
            nearest=nearest(strange, allowed),
            because=rows,
        )
