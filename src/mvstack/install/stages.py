"""The steps of the flow, each as one call: what the commands of the command line are made of."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.system import System
from mvstack.plan.make import make_plan, partitions_of, split_name
from mvstack.plan.types import Accepted, Plan
from mvstack.support.errors import CheckFailed, InvalidInput, Problem, Refused
from mvstack.support.progress import Progress

if TYPE_CHECKING:
    from mvstack.cache.use import Caches


def default_root() -> str:
    """Where stacks go when neither the system's file nor the user says: by who may write there."""
    chosen = os.environ.get("MVSTACK_ROOT", "")
    if chosen:
        return str(Path(chosen).absolute())
    # not ~/mvapich-stack: that is what a clone of this repository is called
    mine = Path.home() / ".local" / "share" / "mvapich-stack"
    return "/opt/mvapich-stack" if os.geteuid() == 0 else str(mine)


def root_for(system: System, given: Path | None) -> str:
    """The install root: as given, else from the environment, the system's file, the default.

    Raises InvalidInput for a path that compilers, module files or shells would not take whole.
    """
    if given is not None:
        root = str(given.absolute())
    elif os.environ.get("MVSTACK_ROOT") or system.install.root is None:
        root = default_root()
    else:
        root = system.install.root
    if odd := sorted(set(re.findall(r"[^\w/.+~@=-]", root))):
        raise InvalidInput(
            Problem(
                "an install root must be a plain path",
                root,
                found=" ".join(map(repr, odd)),
                allowed="letters, digits and / . _ + ~ @ = -",
                because="configure scripts, PATH and module files end a path at other characters",
                todo="give another with --root or MVSTACK_ROOT",
            )
        )
    return root


def load(name: str) -> tuple[System, list[str]]:
    """The system and the partitions that ``name`` (``system`` or ``system/partition``) means."""
    system_name, partition = split_name(name)
    system = load_system(system_name)
    if system.discover:
        from mvstack.plan.local import find_local

        system, _ = find_local(system)
    return system, partitions_of(system, partition)


def only_one(name: str, partitions: list[str], command: str) -> str:
    """The partition meant by ``name``; InvalidInput when there are several to choose from."""
    if len(partitions) > 1:
        raise InvalidInput(
            Problem(
                f"{name} has {len(partitions)} partitions; name the one that is meant",
                allowed=", ".join(f"{name}/{one}" for one in partitions),
                todo=f"mvstack {command} {name}/{partitions[0]}",
            )
        )
    return partitions[0]


def fetcher_for(root: str, progress: Progress | None = None) -> Any:
    """The fetcher over the source mirror of ``root``."""
    from mvstack.sources import Fetcher, Store, site_mirrors, state_dir

    return Fetcher(Store(Path(root) / "sources"), site_mirrors(), state_dir())


def accepted_bytes(release: Any) -> dict[tuple[str, str], Accepted]:
    """What the user accepted instead of upstream's bytes, for all that is in ``release``."""
    from mvstack.sources import accepted_for

    found = {}
    policy = load_policy()
    for product, versions in release.mpi.items():
        software = policy.products[product].easybuild
        for entry in versions:
            taken = accepted_for(software, entry.version) if software else None
            if taken:
                found[product, entry.version] = Accepted(taken.sha256, taken.reason)
    for package in release.packages:
        if taken := accepted_for(package.name, package.version):
            found[package.name, package.version] = Accepted(taken.sha256, taken.reason)
    return found


def plan_for(
    system: System,
    partition: str,
    release_name: str | None = None,
    root: Path | None = None,
    caches: Caches | None = None,
    profile: str = "",
) -> Plan:
    """The plan of one partition as this user's machine would install it.

    ``caches`` are those that the site names when None. Without a ``profile`` this machine's own
    tree keeps the one that it was last installed with.
    """
    release, policy = load_release(release_name), load_policy()
    place = root_for(system, root)
    accepted = accepted_bytes(release)
    if not system.discover:
        return make_plan(
            system, partition, release, policy, root=place, accepted=accepted, profile=profile
        )
    from mvstack.builders.easybuild.install import specs_of
    from mvstack.cache.use import offered, site_caches
    from mvstack.plan.local import plan_local

    fetcher = fetcher_for(place)
    caches = caches or site_caches()
    binaries = offered(caches, system.os_of(partition), system.partitions[partition].target)

    def available(product: str, version: str, easyconfig: str) -> bool:
        from mvstack.plan.easyconfigs import find

        find(easyconfig, f"{system.name}/{partition}")
        own = accepted.get((product, version))
        if (easyconfig, own.sha256 if own else "") in binaries:
            return True
        return not caches.only and _sources(easyconfig, product, version)

    def _sources(easyconfig: str, product: str, version: str) -> bool:
        beyond = any(one.name == product and one.profile != "default" for one in release.packages)
        return all(fetcher.available(spec, beyond) for spec in specs_of(easyconfig)) or (
            (product, version) in accepted
            and fetcher.store.get(accepted[product, version].sha256) is not None
        )

    return plan_local(
        system,
        partition,
        release,
        policy,
        available,
        root=place,
        accepted=accepted,
        profile=profile or _kept_profile(system.name, partition, place, release.name),
    )


def _kept_profile(system: str, partition: str, root: str, release: str) -> str:
    """The profile that a tree was last installed with; "" when there is none."""
    try:
        return str(installed_plan(system, partition, root, release)[1].get("profile", ""))
    except Refused:
        return ""


def installed_plan(system: str, partition: str, root: str, release: str) -> tuple[Path, Any]:
    """The tree of what was installed and its plan. Raises Refused when there is none."""
    from mvstack.tree.records import kept_plan

    folder = system if system == "local" else f"{system}-{partition}"
    tree = Path(root) / release / folder
    try:
        return tree, kept_plan(tree)
    except (OSError, ValueError) as error:
        raise Refused(
            Problem(
                f"nothing is installed for {system}/{partition} in release {release}",
                str(tree),
                because=str(error),
                todo=f"mvstack install {system}/{partition}   (or name its root with --root)",
            )
        ) from None


def run_tests(plan: dict[str, Any], tags: list[str], progress: Progress) -> dict[str, Any]:
    """Run the checks on what ``plan`` installed, keep the results, and return them.

    Raises CheckFailed when ReFrame could not be trusted, Refused when the installation has not come
    to its end; failed checks are in the results.
    """
    from mvstack.test import run_checks
    from mvstack.tree.modules import core_file

    tree = Path(plan["tree"])
    if not core_file(tree, plan["release"]).is_file():
        raise Refused(
            Problem(
                "the installation did not come to its end: mvapich-stack has no module",
                str(tree),
                because="it is taken away before what it names is built anew",
                todo=f"mvstack install {plan['system']}/{plan['partition']}, which goes on",
            )
        )
    out = tree / "records" / "last-test"
    what = ("checks with tag " + ", ".join(tags)) if tags else "all checks"
    with progress.step("test", what, log=out / "reframe.out") as step:
        try:
            results = run_checks(plan, out, tags, step.note)
        finally:
            keep_results(out / "results.json", tree / "records" / "results")
    return results


def keep_results(results: Path, folder: Path) -> None:
    """Keep the results of a run of checks beside those of earlier ones, by its time."""
    if results.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        shutil.copyfile(results, folder / f"{stamp}.json")


def failed_checks(results: dict[str, Any]) -> CheckFailed | None:
    """The error that names every check that did not pass; None when all passed or were skipped."""
    bad = [case for case in results["cases"] if case["result"] not in ("pass", "skip")]
    if not bad:
        return None
    return CheckFailed(
        *(
            Problem(f"{case['result']}: {case['why']}", f"{case['check']} with {case['mpi']}")
            for case in bad
        )
    )
