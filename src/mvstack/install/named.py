"""Packages that are installed by name: what the names mean, and what stands below them."""

from collections.abc import Iterable

from mvstack.model.release import Release
from mvstack.model.vocabulary import PROFILES
from mvstack.plan import easyconfigs
from mvstack.plan.types import Extent, Plan
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.words import listed, nearest


def meant(release: Release, names: Iterable[str]) -> frozenset[str]:
    """The packages of ``release`` called ``names``, in any case. Raises InvalidInput."""
    known = {one.name.lower(): one.name for one in release.packages}
    if unknown := [name for name in names if name.lower() not in known]:
        raise InvalidInput(
            *(
                Problem(
                    f"release {release.name} has no package {name}",
                    allowed=listed(sorted(known.values())),
                    nearest=known.get(nearest(name.lower(), list(known)), ""),
                    todo="`mvstack list packages` lists them",
                )
                for name in unknown
            ),
            outcome="Nothing was installed.",
        )
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
    lost = names - {one.name for one in plan.packages}
    because = {row["name"]: row["because"] for row in plan.left_out}
    if lost:
        raise Refused(
            *(
                Problem(
                    f"{plan.system}/{plan.partition} does not get {name}",
                    because=because.get(name, f"it is not built over {plan.mpi[0].module}"),
                    todo=f"`mvstack explain {plan.system}/{plan.partition} --profile full` lists "
                    "what is left out; `mvstack sources add FILE` brings a source that is missing",
                )
                for name in sorted(lost)
            ),
            outcome="Nothing was installed.",
        )
