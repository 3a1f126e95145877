"""`mvstack install`: from what a person asks to what is installed, in one path."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.base import Row, Run, builder_of
from mvstack.cache.use import Caches, site_caches
from mvstack.discover import look
from mvstack.install import stages
from mvstack.install.lmod import build_lmod
from mvstack.install.local import as_seen, can_do_without, same_machine, seen
from mvstack.install.prerequisites import Lacking, install_missing, lacking, refuse
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.release import Release
from mvstack.model.system import System
from mvstack.model.vocabulary import PROFILES
from mvstack.plan import easyconfigs
from mvstack.plan.make import make_plan, split_name
from mvstack.plan.types import Extent, Given, Plan
from mvstack.support.console import confirm
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.progress import Progress
from mvstack.support.words import listed, nearest

Step = Callable[[str, str], AbstractContextManager[object]]


@dataclass(frozen=True)
class Request:
    """What a person asks of an installation.

    ``name`` is ``system`` or ``system/partition``. With ``anyway`` it goes on though this machine
    is not of that partition. ``yes`` installs the distribution's packages that are missing.
    ``packages`` are added by name to what the tree has. ``caches`` are those that the site names
    when None.
    """

    name: str
    release: str | None = None
    root: Path | None = None
    profile: str = ""
    jobs: int | None = None
    yes: bool = False
    anyway: bool = False
    prerequisites: bool = True
    keep_going: bool = False
    caches: Caches | None = None
    packages: tuple[str, ...] = ()


def plan(
    request: Request,
    command: str = "install",
    progress: Progress | None = None,
    step: Step = lambda *_: nullcontext(),
) -> tuple[System, Plan]:
    """The system and plan that is meant; with ``progress`` what a build needs is seen to.

    ``step`` is entered for looking at the machine and for choosing the MPI. Raises Refused for
    another machine than this one, Missing for what the distribution lacks.
    """
    name, partition = split_name(request.name)
    release = load_release(request.release)
    asked = release.then(load_system(name))
    names = meant(release, request.packages)
    # `local` needs compilers to be looked at; else it is seen first whether it is this machine
    if progress and asked.discover:
        largest = max(
            request.profile or PROFILES[0], profile_of(release, names), key=PROFILES.index
        )
        _prepare(asked, request, largest, progress)
    with step("discover", request.name):
        only = request.caches is not None and request.caches.only
        system, partitions = seen(asked, partition, whole=only)
        one = stages.only_one(request.name, partitions, command)
    with step("choose", f"the MPI for {system.name}/{one}"):
        extent = _extent(request, system, one, names) if names else Extent(request.profile)
        made = stages.plan_for(system, one, release.name, request.root, request.caches, extent)
        all_chosen(made, names)
        if not request.anyway and not system.discover:
            same_machine(made, look())
    if progress and not asked.discover:
        _prepare(asked, request, made.profile, progress)
        if not request.anyway:
            here = as_seen(system, one, progress)  # refused where a library lacks the fabric
            stages.plan_for(here, one, release.name, request.root, request.caches, extent)
    return system, made


def _extent(request: Request, system: System, partition: str, names: frozenset[str]) -> Extent:
    """What the tree has, or the profile that is asked for, and ``names`` with what is below."""
    release, place = load_release(request.release), stages.root_for(system, request.root)
    kept = stages.kept_extent(system.name, partition, place, release.name)
    if request.profile:
        kept = Extent(request.profile)
    given = Given(profile=PROFILES[-1], fallback=system.discover)
    whole = make_plan(system, partition, release, load_policy(), given)
    return added(release, whole, names, kept)


def pending(request: Request) -> list[Row]:
    """What :func:`install` would build, without touching anything."""
    _, made = plan(request)
    return builder_of(made.builder).pending(made)


def install(request: Request, progress: Progress) -> list[Row]:
    """The rows of what was built, or taken from caches."""
    system, made = plan(request, progress=progress)
    return carry_out(system, made, request, progress)


def carry_out(system: System, made: Plan, request: Request, progress: Progress) -> list[Row]:
    """Install what is planned."""
    run = Run(
        stages.fetcher_for(made.root),
        progress,
        jobs=request.jobs,
        umask=system.install.umask,
        group=system.install.group,
        caches=request.caches or site_caches(),
        keep_going=request.keep_going,
    )
    return builder_of(made.builder).install(made, run)


def _prepare(system: System, request: Request, profile: str, progress: Progress) -> None:
    """See that the distribution's packages and Lmod are there; install them as root if agreed.

    Who is not root does without those that can be done without. Raises Missing with what is missing
    and the command that installs it.
    """
    if not request.prerequisites:
        return
    place, root = stages.root_for(system, request.root), os.geteuid() == 0
    # where nothing may be built, an entry that lacks a library of the machine says so itself
    only = request.caches is not None and request.caches.only
    missing = None if only else lacking(look().os or "this system", profile)
    if missing and not root and not missing.indispensable(can_do_without(system, look())):
        instead = dict.fromkeys(item.without for item in missing.needed)
        names = listed([item.package for item in missing.needed])
        why = f"not root: {'; '.join(instead)}. To install them, as root: {missing.line}"
        progress.skip("prepare", names, why)
        missing = None
    if missing:
        if not root or not (request.yes or _agreed(missing)):
            raise refuse(missing)
        log, what = Path(place) / "logs" / "prerequisites.log", f"{len(missing.needed)} packages"
        with progress.step("prepare", f"{what} of the distribution", log=log):
            install_missing(missing, log)
    build_lmod(Path(place), system.install.umask, stages.fetcher_for(place), progress)


def _agreed(missing: Lacking) -> bool:
    """Ask, on a terminal alone, whether to install what is missing."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    names = " ".join(item.package for item in missing.needed)
    return confirm(f"Missing: {names}\nInstall them now ({missing.line})?")


def meant(release: Release, names: Iterable[str]) -> frozenset[str]:
    """The packages of ``release`` called ``names``, in any case. Raises InvalidInput."""
    known = {one.name.lower(): one.name for one in release.packages}
    if unknown := [name for name in names if name.lower() not in known]:
        problems = [
            Problem(
                f"release {release.name} has no package {name}",
                allowed=listed(sorted(known.values())),
                nearest=known.get(nearest(name.lower(), list(known)), ""),
                todo="`mvstack list packages` lists them",
            )
            for name in unknown
        ]
        raise InvalidInput(*problems, outcome="Nothing was installed.")
    return frozenset(known[name.lower()] for name in names)


def held_by(release: Release, profile: str) -> set[str]:
    """The packages of ``release`` that ``profile`` holds."""
    most = PROFILES.index(profile)
    return {one.name for one in release.packages if PROFILES.index(one.profile) <= most}


def profile_of(release: Release, names: frozenset[str]) -> str:
    """The smallest profile that holds all of ``names``."""
    known = names & held_by(release, PROFILES[-1])
    return next(one for one in PROFILES if known <= held_by(release, one))


def added(release: Release, whole: Plan, names: frozenset[str], kept: Extent) -> Extent:
    """What a tree with ``kept`` holds once ``names`` and what they stand on are added.

    ``whole`` is the plan of the largest profile.
    """
    before = kept.names or held_by(release, kept.profile or "default")
    wanted = set(names)
    for one in reversed(whole.packages):  # each after what it stands on
        if one.name in wanted:
            wanted |= set(easyconfigs.needs(one.easyconfig, one.toolchain))
    everything = names | before | (wanted & {one.name for one in whole.packages})
    return Extent(profile_of(release, everything), everything)


def all_chosen(plan: Plan, names: frozenset[str]) -> None:
    """Raise Refused with the reasons where ``plan`` leaves out a package that was named."""
    because = {row["name"]: row["because"] for row in plan.left_out}
    problems = [
        Problem(
            f"{plan.system}/{plan.partition} does not get {name}",
            because=because.get(name, f"it is not built over {plan.mpi[0].module}"),
            todo=f"`mvstack explain {plan.system}/{plan.partition} --profile full` lists "
            "what is left out; `mvstack sources add FILE` brings a source that is missing",
        )
        for name in sorted(names - {one.name for one in plan.packages})
    ]
    if problems:
        raise Refused(*problems, outcome="Nothing was installed.")
