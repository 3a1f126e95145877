"""What the policy can ask of our recipes: every spec word, held against the recipes' variants."""

from collections.abc import Iterable, Iterator
from itertools import product

from mvstack.model.policy import Policy
from mvstack.model.release import Package, Release
from mvstack.model.rules import BuildRow, LauncherRow
from mvstack.model.system import Compiler, Partition, Wish
from mvstack.plan import easyconfigs, spackspecs
from mvstack.recipes.model import Recipe
from mvstack.recipes.reading import read_recipes
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.words import listed, nearest


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
        part = Partition(
            cores=1,
            memory_gb=1,
            target="x86_64",
            fabric=fabric,
            gpu=gpu,
            gpus=0 if gpu == "none" else 1,
            launcher=starts,
            compiler=Compiler(version="12.2.0"),
            file_systems=list(policy.file_systems),
            mpi=Wish(libfabric=build.when.libfabric),
        )
        use, pm = build.use, launcher.configure.get("pm", "")
        asked = spackspecs.Build(use.product, device, pmi, gpu, use.configure, pm)
        for word in spackspecs.mpi(part, asked, policy):
            # `:=` is these values and no others; which, is all one here
            yield use.product, word.replace(":=", "=")


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


def check_rows(releases: Iterable[Release], policy: Policy) -> None:
    """Raises InvalidInput for every row of a release that names what is not there to build it."""
    ours = {recipe.name: recipe for recipe in read_recipes() if not recipe.builtin}
    files = easyconfigs.index()
    problems: list[Problem] = []
    for release in releases:
        for name, versions in release.mpi.items():
            software = policy.products[name].easybuild or name
            for entry in versions:
                where = entry.at()
                problems += _version(ours, name, entry.version, where)
                start = f"{software}-{entry.version}-GCC-"
                # one of the builders must have it: old versions of MVAPICH2 are for Spack alone
                if name not in ours and not any(file.startswith(start) for file in files):
                    problems.append(_no_easyconfig(f"{start}…", where, files))
        problems += _twice(release)
        for row in release.packages:
            where = row.at()
            name, _, rest = row.spack.partition("@=")
            problems += _version(ours, name, rest.partition(" ")[0], where)
            if not row.by_easyconfig:
                continue
            wanted_files = _files_of(row, release.name)
            if not any(easyconfigs.source_of(file, files) for file in wanted_files):
                problems.append(_no_easyconfig(wanted_files[0], where, files))
    if problems:
        raise InvalidInput(*problems)


def _twice(release: Release) -> Iterator[Problem]:
    """Rows that install one module in the same places."""
    first: dict[tuple[str, str], Package] = {}
    for row in release.packages:
        there = first.setdefault((row.module, row.where.model_dump_json()), row)
        if there is not row:
            todo = "remove one of the two rows, or give them different versions or `where`"
            message = f"the module {row.module} has a row already, at {there.at()}"
            yield Problem(message, row.at(), todo=todo)


def _version(ours: dict[str, Recipe], package: str, version: str, where: str) -> Iterator[Problem]:
    """Our recipe of ``package`` must have the version; builtin's are not known here."""
    known = [one.name for one in ours[package].versions] if package in ours else []
    if package in ours and version not in known:
        yield Problem(
            f"the Spack recipe of {package} has no version {version}",
            where,
            allowed=listed(known),
            nearest=nearest(version, known),
            todo=f"add it to {relative(ours[package].path)}, or name one of these",
        )


def _no_easyconfig(name: str, where: str, files: Iterable[str]) -> Problem:
    return Problem(
        f"there is no easyconfig {name}",
        where,
        nearest=nearest(name, files),
        todo="write it below easyconfigs/, or correct the row",
    )


def _files_of(row: Package, release: str) -> list[str]:
    """The easyconfigs of a package over each product that it may stand on, or the compiler."""
    if row.toolchain == "gcc":
        start = f"{row.name}-{row.version}-GCC-"
        return [one for one in easyconfigs.index() if one.startswith(start)] or [f"{start}….eb"]
    kinds = [easyconfigs.TOOLCHAINS.get(one, {}) for one in row.only_over]
    over = kinds or easyconfigs.TOOLCHAINS.values()
    chains = dict.fromkeys(kind.get(row.toolchain, "") for kind in over)
    return [
        easyconfigs.package_file(row.name, row.version, f"{chain}-{release}-{netmod}", row.suffix)
        for chain in chains
        for netmod in ("ofi", "ucx", "mrail")
    ]
