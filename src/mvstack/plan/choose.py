"""Choose the MPI build for a partition: policy read as data, every step with its reason.

Pure: the same partition, release and policy give the same choice. A machine on which nothing
fits is an error that lists the nearest things that work, never a silent default.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import archspec.cpu
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from mvstack.model.policy import Policy
from mvstack.model.release import OF_MPI, MpiVersion, Release
from mvstack.model.rules import Beneath, BuildRow, LauncherRow, When
from mvstack.model.system import Partition, System, Wish
from mvstack.plan.types import NOT_OBTAINED
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.words import listed, nearest


@dataclass(frozen=True)
class Facts:
    """What conditions are asked about: the machine, and the build once one is considered."""

    fabric: str
    nic: str
    gpu: str
    gpu_buffers: str
    launcher: str
    os: str
    arch: str
    cma: bool = True
    pmi: str = ""
    libfabric: str = ""
    provider: str | None = None
    product: str = ""
    version: str = ""
    device: str = ""
    fallback: bool = False
    provided: bool = False


def facts_of(system: System, partition: str) -> Facts:
    """The facts of one partition. Staged buffers never reach the MPI: it sees no GPU."""
    part: Partition = system.partitions[partition]
    staged = part.gpu != "none" and part.gpu_buffers == "staged"
    return Facts(
        fabric=part.fabric,
        nic=part.nic or "",
        gpu="none" if staged else part.gpu,
        gpu_buffers=part.gpu_buffers,
        launcher=part.launcher,
        os=system.os_of(partition),
        arch=archspec.cpu.TARGETS[part.target].family.name,
        cma=part.cma,
        pmi=part.pmi or "",
        libfabric=part.mpi.libfabric or "",
        provider=part.mpi.provider,
    )


def holds(when: When, facts: Facts) -> bool:
    """Whether every field of ``when`` that is given holds for ``facts``."""
    given = when.model_fields_set  # which has no order: one run would raise what another does not
    named = ((name, said) for name, said in vars(when).items() if name in given)
    return all(_is(name, said, facts) for name, said in named if said not in (None, []))


def _is(name: str, said: Any, facts: Facts) -> bool:
    if name == "version":
        there = facts.version
        return bool(there) and SpecifierSet(said).contains(Version(there), prereleases=True)
    value = getattr(facts, name.removeprefix("not_"))
    if not isinstance(said, list):
        return bool(value == said)
    return any(fnmatchcase(value, one) for one in said) != name.startswith("not_")


@dataclass(frozen=True)
class PassedOver:
    """A build that fits the fabric and was not taken, and why."""

    build: str
    because: str
    source: str
    rule: str


@dataclass(frozen=True)
class Candidate:
    """A build that fits the machine, before refusals are asked."""

    row: BuildRow
    entry: MpiVersion
    devices: tuple[str, ...]
    facts: Facts
    policy: Policy

    @property
    def product(self) -> str:
        """The product's name, e.g. mvapich."""
        return self.row.use.product

    @property
    def version(self) -> str:
        """The product's version."""
        return self.entry.version

    def __str__(self) -> str:
        return f"{self.product} {self.version} {self.devices[0]}"

    def beneath(self, device: str) -> Beneath:
        """What stands beneath ``device`` on this fabric, with this GPU."""
        facts = self.facts
        return self.policy.beneath(self.row, device, facts.fabric, facts.gpu, facts.provider)


@dataclass(frozen=True)
class Choice(Candidate):
    """The build chosen for one partition, with what led there."""

    launcher: LauncherRow
    pmi: str
    passed_over: tuple[PassedOver, ...] = field(default_factory=tuple)


def choose(
    system: System,
    partition: str,
    release: Release,
    policy: Policy,
    unavailable: frozenset[tuple[str, str]] = frozenset(),
    fallback: bool = False,
) -> Choice:
    """The MPI build for ``partition``.

    ``unavailable`` names (product, version) pairs whose sources are missing, and ``fallback``
    allows the stand-in of the system `local`; both are False and empty for every other system.
    Raises Refused when nothing fits, with the reasons and the nearest builds that work.
    """
    _check_wish(system, partition, release, policy)
    facts, wish, known = _asked(system, partition, release, policy)
    choice, passed = first_fitting(facts, wish, known, policy, unavailable, fallback)
    if choice is None:
        raise _refusal(system, partition, release, policy, passed)
    return choice


def provided_mpi(part: Partition, policy: Policy) -> str:
    """The MPI that the site has and names among its externals; "" for none."""
    return next((name for name in part.externals if name in policy.products), "")


def _asked(
    system: System, partition: str, release: Release, policy: Policy
) -> tuple[Facts, Wish, Release]:
    """What a build is looked for with: an MPI of the site is wished for, and in its version."""
    part, facts = system.partitions[partition], facts_of(system, partition)
    name = provided_mpi(part, policy)
    if not name:
        return facts, part.mpi, release
    has, why = part.externals[name], f"the site has it below {part.externals[name].prefix}"
    entry = MpiVersion(version=has.version or "", why=why, source="the system's file")
    wish = part.mpi.model_copy(update={"product": name, "version": has.version})
    known = release.model_copy(update={"mpi": {name: [entry]}})
    return replace(facts, provided=True), wish, known


def first_fitting(
    facts: Facts,
    wish: Wish,
    release: Release,
    policy: Policy,
    unavailable: frozenset[tuple[str, str]] = frozenset(),
    fallback: bool = False,
) -> tuple[Choice | None, list[PassedOver]]:
    """The first build that fits; None when nothing does. And what was passed over before it."""
    passed: list[PassedOver] = []
    for candidate in _candidates(facts, wish, release, policy, fallback):
        if (candidate.product, candidate.version) in unavailable:
            name = f"{candidate.product} {candidate.version}"
            passed.append(PassedOver(name, NOT_OBTAINED, "tried now", "unavailable"))
            continue
        found = _launcher(candidate)
        if isinstance(found, LauncherRow):
            pmi, over = facts.pmi or found.pmi[0], tuple(dict.fromkeys(passed))
            return Choice(**vars(candidate), launcher=found, pmi=pmi, passed_over=over), passed
        passed += found
    return None, passed


def _candidates(
    facts: Facts, wish: Wish, release: Release, policy: Policy, fallback: bool
) -> Iterator[Candidate]:
    """Builds that fit the machine, in order of preference, before refusals are asked."""
    machine = replace(facts, fallback=fallback)
    for row in policy.builds:
        use = row.use
        if wish.product not in (None, use.product) or (row.by_name and wish.product is None):
            continue
        # a wish for another device than the row's goes on to the refusals, which know why not
        devices = (wish.device,) if wish.device else tuple(use.devices)
        devices = devices[:1] if facts.provided else devices
        for entry in release.mpi.get(use.product, []):
            if wish.version not in (None, entry.version):
                continue
            planned = replace(machine, product=use.product, version=entry.version)
            if not holds(row.when, planned):
                continue
            transport = use.transports.get(devices[0])
            libfabric = facts.libfabric or (
                transport.provision if transport and transport.library == "libfabric" else "none"
            )
            if devices[0].startswith("ch4:ofi") and libfabric == "none":
                libfabric = "external"
            built = replace(planned, device=devices[0], libfabric=libfabric)
            yield Candidate(row, entry, devices, built, policy)


def _launcher(candidate: Candidate) -> LauncherRow | list[PassedOver]:
    """The launcher row for a candidate, or the reasons why it is passed over."""
    row, facts, policy = candidate.row, candidate.facts, candidate.policy

    def over(why: str, source: str, rule: str) -> list[PassedOver]:
        return [PassedOver(str(candidate), why, source, rule)]

    if refused := [one for one in policy.refusals if holds(one.when, facts)]:
        return [PassedOver(str(candidate), one.refuse, one.source, one.id) for one in refused]
    if unknown := [one for one in candidate.devices if one not in row.use.transports]:
        why = f"device {unknown[0]} is not what the policy has for this machine"
        return over(f"{why} ({listed(row.use.transports)})", row.source, row.id)
    try:
        for device in candidate.devices:
            candidate.beneath(device)
    except LookupError as error:
        return over(str(error.args[0]), "environments/policy/fabrics.yaml", row.id)
    for one in policy.launchers:
        if holds(one.when, facts if one.when.pmi else replace(facts, pmi="")):
            if facts.pmi in ("", *one.pmi):
                return one
            why = f"pmi {facts.pmi}: {one.id} works with {listed(one.pmi)}"
            return over(why, one.source, one.id)
    why = f"launcher {facts.launcher} is not one that this product has"
    return over(why, "environments/policy/launchers.yaml", "launchers")


def _check_wish(system: System, partition: str, release: Release, policy: Policy) -> None:
    """Refuse a version that the release does not carry, before anything is tried.

    And of an MPI of the site one without a version, or one that is not the one asked for.
    """
    part = system.partitions[partition]
    externals, wish = part.externals, part.mpi
    if name := provided_mpi(part, policy):
        named = {one for one in externals if one in policy.products} | {wish.product or name}
        good = re.fullmatch(OF_MPI, externals[name].version or "")
        if len(named) > 1 or not good or wish.version:
            raise InvalidInput(
                f"{partition}: externals: an MPI of the site is the only one, with its version",
                system.at("partitions", partition, "externals", name),
                found=f"{listed(sorted(named))}, version {externals[name].version}",
                todo=f"write `{name}: {{version: …, prefix: …}}` with a version such as 4.0 or "
                "4.0+mysite, and name no other MPI there or below `mpi:`",
            )
        return
    if wish.version is None or wish.product is None:
        return
    versions = [entry.version for entry in release.mpi.get(wish.product, [])]
    if wish.version not in versions:
        raise Refused(
            f"release {release.name} has no {wish.product} {wish.version}",
            system.place(partition, "mpi", "version"),
            found=f"mpi: {{product: {wish.product}, version: {wish.version}}}",
            allowed=listed(versions) or f"none of {wish.product}",
            nearest=nearest(wish.version, versions),
            todo="name one of these versions, or leave version out",
        )


def _refusal(
    system: System, partition: str, release: Release, policy: Policy, passed: list[PassedOver]
) -> Refused:
    part = system.partitions[partition]
    facts, wished, _ = _asked(system, partition, release, policy)
    rules = {row.id: row for row in policy.refusals}
    rows = [rules[one] for one in dict.fromkeys(item.rule for item in passed) if one in rules]
    if not rows:  # no build row fits at all: the refusals that hold for the machine say why
        asked_for = wished.model_dump(include={"product", "version", "device"}, exclude_none=True)
        wanted = replace(facts, **asked_for)
        rows = [row for row in policy.refusals if holds(row.when, wanted)]
        ways = [[row.todo for row in rows]]
    else:
        broken: dict[str, list[str]] = {}
        for item in passed:
            broken.setdefault(item.build, []).append(item.rule)
        # a build that something else than a refusal stops is no way out
        ways = [[rules[x].todo for x in one] for one in broken.values() if set(one) <= set(rules)]
    reasons = [f"{row.refuse} ({row.source})" for row in rows]
    reasons += [f"{p.build}: {p.because} ({p.source})" for p in passed if p.rule not in rules]
    works = nearest_working(system, partition, release, policy)
    one_step = [row.nearest for row in rows[:1] if any(len(way) == 1 for way in ways)]
    wish = ", ".join(f"{k} {v}" for k, v in wished.model_dump(exclude_defaults=True).items())
    asked = f" and the wish for {wish}" if wish else ""
    return Refused(
        f"no MPI build fits fabric {part.fabric} with gpu {part.gpu}, launcher "
        f"{part.launcher}, os {facts.os}, {facts.arch}{asked}",
        system.place(partition, "fabric"),
        nearest="; or ".join([*one_step, *works]) or "nothing that the policy knows",
        because="; ".join(dict.fromkeys(reasons))
        or "no row of environments/policy/builds.yaml is for this machine",
        todo="; or ".join(dict.fromkeys(", and ".join(dict.fromkeys(way)) for way in ways))
        or "change the partition to one of the nearest, or add a row to the policy with its "
        "reason and source",
    )


Change = tuple[str, dict[str, object]]
"""A change to a partition, in words and as its fields."""


def nearest_working(system: System, partition: str, release: Release, policy: Policy) -> list[str]:
    """The fewest changes to the partition with which a build fits, each with that build.

    TCP comes last, after all that keep the fabric.
    """
    part = system.partitions[partition]
    scheduler = system.scheduler_of(partition)
    changes: list[Change] = []
    if name := provided_mpi(part, policy):
        others = {key: one for key, one in part.externals.items() if key != name}
        changes.append((f"without the site's {name}", {"externals": others}))
    if part.mpi != Wish():
        changes.append(("without `mpi:`", {"mpi": Wish()}))
    if part.gpu != "none" and part.gpu_buffers == "direct":
        changes.append(("with gpu_buffers: staged", {"gpu_buffers": "staged"}))
    if part.pmi is not None:
        changes.append(("without `pmi:`", {"pmi": None}))
    changes += [
        (f"with launcher: {word}", {"launcher": word, "pmi": None})
        for word in ("srun", "hydra")
        if word != part.launcher and policy.programs[word].scheduler in ("none", scheduler)
    ]
    tcp: Change = ("with fabric: tcp", {"fabric": "tcp"})
    tries: list[list[tuple[Change, ...]]] = [[*combinations(changes, n)] for n in (0, 1, 2, 3)]
    over_tcp = [[(tcp, *steps) for steps in one] for one in tries[:3]]
    for sets in (*tries[1:], *over_tcp):
        found = []
        for steps in sets:
            changed = {name: value for _, change in steps for name, value in change.items()}
            other = part.model_copy(update=changed)
            trial = system.model_copy(update={"partitions": {partition: other}})
            facts, wanted, known = _asked(trial, partition, release, policy)
            choice, _ = first_fitting(facts, wanted, known, policy)
            if choice:
                found.append(f"{choice} {' and '.join(text for text, _ in steps)}")
        if found:
            return found[:2]
    return []
