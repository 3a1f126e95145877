"""What others have of a package: stock EasyBuild, Spack's recipes, upstream's tags."""

import ast
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from packaging.version import Version

from mvstack.model.policy import Policy
from mvstack.model.release import Package, Release
from mvstack.model.spack import spack_pins
from mvstack.plan import easyconfigs
from mvstack.recipes.rows import VERSION, module_name, recipes_of
from mvstack.support import git
from mvstack.support.errors import InvalidInput
from mvstack.support.words import few, listed, nearest

STOCK = Path(sys.prefix) / "easybuild" / "easyconfigs"
SECONDS = 20.0  # that a git server may take to list its tags
_DATE = re.compile(r"(\d{1,2}[A-Z][a-z]{2}\d{4})(?:_update(\d+))?")  # LAMMPS's: 22Jul2025_update4
_GIT = re.compile(r"https://(?:github|gitlab)\.com/[\w.-]+/[\w.-]+")


def order(version: str) -> Version | None:
    """What ``version`` is ordered by, however it is spelled; None for the name of a branch."""
    try:
        if found := _DATE.fullmatch(version):
            version = f"{datetime.strptime(found[1], '%d%b%Y'):%Y%m%d}.{found[2] or 0}"
        return Version(version.replace("_", "."))
    except ValueError:
        return None


def newest(versions: Iterable[str], own: str) -> str:
    """The newest of ``versions``, no pre-release unless ``own`` is one; "" for none."""
    here = order(own)
    also = bool(here and here.is_prerelease)
    known = {one: at for one in versions if (at := order(one)) and (also or not at.is_prerelease)}
    return max(known, key=lambda one: known[one], default="")


def current(rows: list[Package]) -> list[Package]:
    """The rows of each package's newest version, by builder: older ones stand in for these."""
    best: dict[tuple[str, str], str] = {}
    for row in rows:
        for key in ((row.name, one) for one in row.builders):
            best[key] = newest([row.version, best.get(key, row.version)], row.version)
    return [x for x in rows if any(best[x.name, one] == x.version for one in x.builders)]


def spack_name(package: str, release: Release) -> str:
    """What Spack calls a package of ``release``."""
    specs = (one.spack for one in release.packages if one.name == package and one.spack)
    return next(specs, package.lower()).partition("@")[0]


@dataclass(frozen=True)
class Recipe:
    """What Spack's recipe says: the SHA-256 of each version ("" where it has none), places."""

    hashes: dict[str, str] = field(default_factory=dict)
    url: str = ""
    git: str = ""


@dataclass(frozen=True)
class Elsewhere:
    """Who is asked: ``packages`` is where a clone of spack-packages may be."""

    packages: Path
    stock: Path = STOCK

    @property
    def absent(self) -> list[str]:
        """Who is not there to be asked, each in a line."""
        todo = "`mvstack lock` clones them, --root names the install root"
        here = {f"Spack's recipes ({todo})": self.packages / "repos", "EasyBuild's": self.stock}
        return [f"{what}: there is no {path}" for what, path in here.items() if not path.is_dir()]

    def easybuild(self, name: str) -> dict[Path, str]:
        """The easyconfigs of stock EasyBuild, each with its version."""
        folders = [
            x for x in self.stock.glob(f"{name[0].lower()}/*") if x.name.lower() == name.lower()
        ]
        texts = {path: path.read_text() for one in folders for path in sorted(one.glob("*.eb"))}
        return {path: found[1] for path, text in texts.items() if (found := VERSION.search(text))}

    def spack(self, name: str) -> Recipe:
        """Spack's recipe, and what ours adds to it; an empty one where none is there."""
        builtin = self.packages / "repos/spack_repo/builtin/packages" / module_name(name)
        hashes: dict[str, str] = {}
        places: dict[str, str] = {}
        for path in [builtin / "package.py", *recipes_of(name)]:
            for node in ast.walk(ast.parse(path.read_text("utf-8") if path.is_file() else "")):
                if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == "version":
                    said = {one.arg: _constant(one.value) for one in node.keywords}
                    if "branch" not in said:
                        hashes[_constant(node.args[0])] = said.get("sha256", "")
                elif isinstance(node, ast.Assign):
                    places.setdefault(ast.unparse(node.targets[0]), _constant(node.value))
        return Recipe(hashes, places.get("url", ""), places.get("git", ""))


def _constant(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


@dataclass(frozen=True)
class Row:
    """A version of the release beside the newest of others; "" where none is known."""

    name: str
    release: str
    builders: str
    easybuild: str = ""
    spack: str = ""
    upstream: str = ""
    why: str = ""

    @property
    def behind(self) -> bool:
        """Whether somebody has a newer one."""
        here, others = order(self.release), (self.easybuild, self.spack, self.upstream)
        # 3.11b of what others have as 3.11 is a correction of it, and no beta
        known = [order(one) for one in others if one != self.release.rstrip("abcdef")]
        return any(one > here for one in known if one and here)


def compared(
    release: Release, policy: Policy, there: Elsewhere, only: list[str]
) -> tuple[list[Row], list[str]]:
    """Every package and MPI of ``release`` and Spack beside others', and what was not seen.

    ``only`` those of these names, if there are any. Raises InvalidInput for others.
    """
    rows: dict[Row, str] = {}  # each with upstream's repository

    def add(row: Row, recipe: str, repository: str) -> None:
        stock, spack = there.easybuild(row.name).values(), there.spack(recipe).hashes
        own = row.release
        rows[replace(row, easybuild=newest(stock, own), spack=newest(spack, own))] = repository

    for name, (first, *_) in release.mpi.items():
        software = policy.products[name].easybuild or name
        add(Row(software, first.version, "MPI", why=first.why), name, there.spack(name).git)
    for one in current(release.packages):
        recipe = spack_name(one.name, release)
        row = Row(one.name, one.version, ", ".join(one.builders), why=one.why)
        add(row, recipe, _repository(one, release.name, there.spack(recipe)))
    for pin in spack_pins().repositories.values():
        name = pin.url.rpartition("/")[2].removesuffix(".git")
        rows[Row(name, pin.tag.removeprefix("v"), "Spack", why=pin.why)] = pin.url
    names = {row.name.lower(): row.name for row in rows}
    if lost := [one for one in only if one.lower() not in names]:
        close = listed(filter(None, (nearest(one, names.values()) for one in lost)))
        what = f"release {release.name} has no package or MPI {listed(lost)}"
        raise InvalidInput(what, allowed=listed(names.values()), nearest=close)
    for row in [x for x in rows if only and x.name.lower() not in map(str.lower, only)]:
        del rows[row]
    silent: dict[str, str] = {}
    known = {row.name: url for row, url in rows.items() if url}
    found: list[Row] = []
    unseen: dict[str, list[str]] = {}
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(
            lambda one: _newest_tag(known.get(one.name, ""), one.release, silent), rows
        )
        for row, (tag, why) in zip(rows, answers, strict=True):
            found.append(replace(row, upstream=tag))
            if why:
                unseen.setdefault(why, []).append(row.name)
    said = (f"{why}: {few(dict.fromkeys(names), 8)}" for why, names in unseen.items())
    return found, [*there.absent, *said]


def _repository(row: Package, release: str, recipe: Recipe) -> str:
    """Upstream's git repository: the row's page, else Spack's, else where our source is from."""
    path = easyconfigs.index().get(easyconfigs.by_hand(row, release))
    urls = re.findall(r"^source_urls = .*", path.read_text(), re.M) if path else []
    found = (_GIT.search(one) for one in (row.page, recipe.git, *urls))
    return next((one[0].removesuffix(".git") for one in found if one), recipe.git)


def _newest_tag(url: str, own: str, silent: dict[str, str]) -> tuple[str, str]:
    """The newest tag of a repository as a version, else why not; ``silent`` hosts rest."""
    host = urlsplit(url).hostname or url
    if not url or host in silent:
        return "", silent.get(host, "no git repository of upstream's is known")
    done = git.git(Path("/"), "ls-remote", "--tags", "--refs", url, limit=SECONDS)
    if not done.ok:
        fatal = re.search(r"^fatal: (?:unable to access '.*?': )?(.*)", done.said, re.M)
        what = fatal[1] if fatal else f"no answer in {SECONDS:.0f} s"
        if not fatal or re.search("resolve|connect|timed out|network", what, re.I):
            # what others heard of it at the same time is said in the same words
            return "", silent.setdefault(host, f"{host} does not answer ({what})")
        return "", f"{url}: {what}"
    versions = of_form(tags := re.findall(r"refs/tags/(\S+)", done.text), own)
    why = f"{url}: none of its {len(tags)} tags is the release's version" * (not versions)
    return newest(versions, own), why


def of_form(tags: list[str], own: str) -> list[str]:
    """The versions in the ``tags`` that are written like that of ``own``: stable_…, v…, hdf5_…."""
    here = order(own)
    places = ((tag, at.start()) for tag in tags for at in re.finditer(r"(?<!\d)\d", tag))
    starts = {tag[:at] for tag, at in places if here and order(tag[at:]) == here}
    kept = [one for one in starts if "stable" in one] or starts
    return [tag.removeprefix(one) for one in kept for tag in tags if tag.startswith(one)]
