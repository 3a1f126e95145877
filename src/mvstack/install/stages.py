"""What a name on the command line means here: the system, its root, its plan, its tree."""

import os
import re
import shlex
from pathlib import Path
from typing import Any

from mvstack.builders.easybuild.install import specs_of
from mvstack.cache.use import Caches, offered, site_caches
from mvstack.install.local import own_python, plan_local, python_of_wheels, seen
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.release import Release
from mvstack.model.system import System
from mvstack.plan import easyconfigs
from mvstack.plan.make import make_plan, partitions_of, split_name
from mvstack.plan.types import NOT_OBTAINED, Accepted, Extent, Given, Plan
from mvstack.sources.accepted import all_accepted
from mvstack.sources.fetch import Fetcher, site_mirrors
from mvstack.sources.store import Store
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.files import full
from mvstack.support.home import home
from mvstack.support.words import listed
from mvstack.tree.records import in_place, kept_plan


def default_root(given: Path | None = None) -> str:
    """Where stacks go: ``given``, else as the user says, else by who may write there."""
    if given is not None:
        return str(full(given))
    chosen = os.environ.get("MVSTACK_ROOT", "")
    if chosen:
        return str(full(chosen))
    # not ~/mvapich-stack: that is what a clone of this repository is called
    mine = Path.home() / ".local" / "share" / "mvapich-stack"
    return "/opt/mvapich-stack" if os.geteuid() == 0 else str(mine)


def root_for(system: System, given: Path | None) -> str:
    """The install root: as given, else from the environment, the system's file, the default.

    Raises InvalidInput for a path that compilers, module files or shells would not take whole.
    """
    root = system.install.root
    if given or os.environ.get("MVSTACK_ROOT") or root is None:
        root = default_root(given)
    if odd := sorted(set(re.findall(r"[^\w/.+~@=-]", root))):
        raise InvalidInput(
            "an install root must be a plain path",
            root,
            found=" ".join(map(repr, odd)),
            allowed="letters, digits and / . _ + ~ @ = -",
            because="configure scripts, PATH and module files end a path at other characters",
            todo="give another with --root or MVSTACK_ROOT",
        )
    return root


def load(name: str, release: str | None = None) -> tuple[System, list[str]]:
    """The system and the partitions that ``name`` (``system`` or ``system/partition``) means."""
    system_name, partition = split_name(name)
    return seen(load_release(release).then(load_system(system_name)), partition)


def only_one(name: str, partitions: list[str], command: str) -> str:
    """The partition meant by ``name``; InvalidInput when there are several to choose from."""
    if len(partitions) > 1:
        what = "the system on standard input" if name == "-" else name
        raise InvalidInput(
            f"{what} has {len(partitions)} partitions; name the one that is meant",
            allowed=", ".join(f"{name}/{one}" for one in partitions),
            todo=command_for(command, f"{name}/{partitions[0]}"),
        )
    return partitions[0]


def command_for(command: str, name: str) -> str:
    """What to type for the system ``name``; ``-`` must be told again what it was told."""
    site = f"--site {shlex.quote(str(home().site))} " if home().site else ""
    return f"{'… | ' if name.startswith('-') else ''}mvstack {site}{command} {name}"


def fetcher_for(root: str) -> Fetcher:
    """The fetcher over the source mirror of ``root``."""
    return Fetcher(Store(Path(root) / "sources"), site_mirrors())


def accepted_bytes(release: Release) -> dict[tuple[str, str], Accepted]:
    """What the user accepted instead of upstream's bytes, for all that is in ``release``."""
    products = load_policy().products
    asked: list[tuple[tuple[str, str], str]] = [
        ((product, entry.version), software)
        for product, versions in release.mpi.items()
        if (software := products[product].easybuild)
        for entry in versions
    ]
    asked += [((one.name, one.version), one.name) for one in release.packages]
    found, every = {}, all_accepted()
    for key, software in asked:
        if rows := [one for one in every if one.is_for(software, key[1])]:
            by_position = {one.position: one.sha256 for one in rows}
            hashes = [by_position.get(at, "") for at in range(max(by_position) + 1)]
            found[key] = Accepted(hashes, "; ".join(dict.fromkeys(one.reason for one in rows)))
    return found


UNSAID = Extent()


def plan_for(
    system: System,
    partition: str,
    release_name: str | None = None,
    root: Path | None = None,
    caches: Caches | None = None,
    extent: Extent = UNSAID,
) -> Plan:
    """The plan of one partition as this user's machine would install it.

    ``caches`` are those that the site names when None. Without an ``extent`` a tree keeps the
    packages that were named when it was installed, and this machine's own tree its profile.
    """
    release, policy = load_release(release_name), load_policy()
    place = root_for(system, root)
    if extent == UNSAID:
        kept = kept_extent(system.name, partition, place, release.name)
        extent = kept if system.discover or kept.names else extent
    given = Given(place, extent.profile, accepted_bytes(release), names=extent.names)
    if not system.discover:
        return make_plan(system, partition, release, policy, given)
    caches, fetcher = caches or site_caches(), fetcher_for(place)
    binaries = offered(caches, system.os_of(partition), system.partitions[partition].target)
    beyond = {one.name for one in release.packages if one.profile != "default"}

    def lacking(product: str, version: str, easyconfig: str) -> str:
        easyconfigs.find(easyconfig, "local")
        own = given.accepted.get((product, version))
        if (easyconfig, "".join(own.sha256) if own else "") in binaries:
            return ""
        specs = specs_of(easyconfig)
        others = python_of_wheels(one.filename for one in specs) - {own_python()}
        if others and system.partitions[partition].compiler.origin == "system":
            return f"its wheels are for Python {listed(others)}; this machine has {own_python()}"
        there = (fetcher.available(one, product in beyond) for one in specs)
        return "" if not caches.only and all(there) else NOT_OBTAINED

    return plan_local(system, partition, release, policy, lacking, given)


def kept_extent(system: str, partition: str, root: str, release: str) -> Extent:
    """How much of the release a tree was last installed with; nothing when there is no tree."""
    try:
        plan = kept_plan(_tree(system, partition, root, release))
    except (OSError, ValueError):
        return Extent()
    return Extent(str(plan.get("profile", "")), frozenset(plan.get("named", ())))


def _tree(system: str, partition: str, root: str, release: str) -> Path:
    return Path(root, release, system if system == "local" else f"{system}-{partition}")


def installed_here(
    name: str, release: str | None, root: Path | None, command: str
) -> tuple[Path, dict[str, Any]]:
    """The tree and plan of what is installed under ``name``; for `local` nothing is looked at.

    Raises Refused when there is none.
    """
    system_name, partition = split_name(name)
    asked = load_release(release)
    system, newest = asked.then(load_system(system_name)), asked.name
    if not system.discover:
        partition = partition or only_one(name, list(system.partitions), command)
        system_name = f"{system_name}/{partition}"
    tree = _tree(system.name, partition or "node", root_for(system, root), newest)
    try:
        return tree, in_place(tree)
    except (OSError, ValueError) as error:
        if not system.discover:
            partitions_of(system, partition)  # a misspelt one is told as such
        what = f"{system.name}/{partition or 'node'}"
        absent = isinstance(error, FileNotFoundError)
        again = command_for("install", system_name)
        raise Refused(
            f"nothing is installed for {what} in release {newest}"
            if absent
            else f"the record of what is installed for {what} cannot be read",
            str(tree),
            because="" if absent else str(error),
            todo=f"{again}   (or name another install root with --root)",
        ) from None
