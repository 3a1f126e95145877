"""The rows of a release, held against the recipes and easyconfigs that are to build them."""

import keyword
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mvstack.model.constraint import sort_key
from mvstack.model.policy import Policy
from mvstack.model.release import Package, Release
from mvstack.plan import easyconfigs
from mvstack.plan.spack import own_repositories
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.files import sha256_of
from mvstack.support.words import listed, nearest

PATCH = re.compile(r"""['"]([^'"]+\.patch)['"]""")
VERSION = re.compile(r"""^version\s*=\s*['"]([^'"]+)""", re.M)
DECLARED = re.compile(r"""^\s*version\(\s*['"]([^'"]+)""", re.M)


def check_rows(releases: Iterable[Release], policy: Policy) -> None:
    """Raises InvalidInput for every row of a release that names what is not there to build it."""
    files = easyconfigs.index()
    problems: list[Problem] = []
    for release in releases:
        for name, versions in release.mpi.items():
            software = policy.products[name].easybuild or name
            for entry in [one for one in versions if not one.gone]:
                where = entry.at()
                problems += _version(name, entry.version, where)
                start = f"{software}-{entry.version}-GCC-"
                # one of the builders must have it: old versions of MVAPICH2 are for Spack alone
                # and a historic release may take builtin's recipe of an MPI that is not ours
                known = recipe_of(name) or release.systems
                if not known and not any(file.startswith(start) for file in files):
                    problems += easyconfigs.absent(f"{start}…", where, files).problems
        problems += _twice(release)
        for row in release.packages:
            where = row.at()
            name, _, rest = row.spack.partition("@=")
            problems += _version(name, rest.partition(" ")[0], where)
            if row.by_easyconfig and not easyconfigs.by_hand(row, release.name):
                name = easyconfigs.files_of(row, release.name)[0]
                problems += easyconfigs.absent(name, where, files).problems
    problems += [one for path in files.values() for one in _patches(path)]
    if problems:
        raise InvalidInput(*problems)


def _patches(path: Path) -> Iterator[Problem]:
    """The patches beside an easyconfig must be those whose hashes it gives."""
    text = path.read_text()
    version = VERSION.search(text)
    for name in PATCH.findall(text):
        patch = path.with_name(name.replace("%(version)s", version[1] if version else ""))
        if patch.is_file() and (found := sha256_of(patch)) not in text:
            message = f"{patch.name} is not the patch whose SHA-256 the easyconfig gives"
            todo = "if the patch is right, write this into `checksums`; otherwise restore the patch"
            yield Problem(message, relative(path), found=found, todo=todo)


def _twice(release: Release) -> Iterator[Problem]:
    """Rows that install one module in the same places."""
    first: dict[tuple[str, str], Package] = {}
    for row in release.packages:
        there = first.setdefault((row.module, row.where.model_dump_json()), row)
        if there is not row:
            todo = "remove one of the two rows, or give them different versions or `where`"
            message = f"the module {row.module} has a row already, at {there.at()}"
            yield Problem(message, row.at(), todo=todo)


def recipe_of(package: str) -> Path | None:
    """Our recipe of ``package``; None for builtin's, and for what only mends builtin's."""
    mends = f"spack_repo.builtin.packages.{module_name(package)}.package"
    return next((x for x in recipes_of(package) if mends not in x.read_text("utf-8")), None)


def recipes_of(package: str) -> list[Path]:
    """Our recipes of ``package``, also what only mends builtin's."""
    name = module_name(package)
    places = (one / "packages" / name / "package.py" for one in own_repositories().values())
    return [one for one in places if one.is_file()]


def module_name(package: str) -> str:
    """The folder of a package in a repository of Spack's package API v2: ``7zip`` → ``_7zip``."""
    name = package.replace("-", "_")
    return f"_{name}" if re.match(r"[0-9]", name) or keyword.iskeyword(name) else name


def versions(recipe: str) -> list[str]:
    """The versions that the text of a ``package.py`` declares, the newest first."""
    return sorted({*DECLARED.findall(recipe)}, key=sort_key, reverse=True)


def _version(package: str, version: str, where: str) -> Iterator[Problem]:
    """Our recipe of ``package`` must have the version; builtin's are not known here."""
    path = recipe_of(package)
    if path is None:
        return
    known = versions(path.read_text(encoding="utf-8"))
    if version not in known:
        yield Problem(
            f"the Spack recipe of {package} has no version {version}",
            where,
            allowed=listed(known),
            nearest=nearest(version, known),
            todo=f"add it to {relative(path)}, or name one of these",
        )
