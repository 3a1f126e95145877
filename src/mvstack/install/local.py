"""The system `local`: this machine, found by looking, and the MPI whose source can be obtained."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import archspec.cpu

from mvstack.builders.base import builder_of
from mvstack.builders.easybuild.command import SYSTEM_PATH
from mvstack.discover import look, system_yaml
from mvstack.discover.libraries import TOOLS, library_at
from mvstack.discover.machine import Machine
from mvstack.model.constraint import sort_key
from mvstack.model.load import parse_system
from mvstack.model.policy import Policy
from mvstack.model.release import Release
from mvstack.model.system import Partition, System
from mvstack.plan import easyconfigs
from mvstack.plan.make import make_plan, partitions_of
from mvstack.plan.types import Given, Package, Plan
from mvstack.support.errors import Missing, Problem, Refused
from mvstack.support.processes import run
from mvstack.support.progress import Progress

# Why (product or package, version, easyconfig) cannot be built here; "" where it can.
Lacking = Callable[[str, str, str], str]

# cffi-2.1.1-cp311-cp311-manylinux…: of one Python; …-cp311-abi3-… of that and newer ones
_OF_ONE_PYTHON = re.compile(r"-cp(\d)(\d+)-cp\1\2-[\w.]+\.whl$")


def python_of_wheels(files: Iterable[str]) -> set[str]:
    """The Pythons, such as 3.11, for which those of ``files`` are that are for one Python alone."""
    return {f"{one[1]}.{one[2]}" for name in files if (one := _OF_ONE_PYTHON.search(name))}


@cache
def own_python() -> str:
    """The version of this machine's own Python, such as 3.11, that packages are built with."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = shutil.which("python3", path=SYSTEM_PATH)
    return run([python, "-c", asked]).text.strip() if python else ""


def can_do_without(system: System, machine: Machine) -> bool:
    """Whether the plan of ``system`` can do without the distribution's transports and OpenBLAS.

    Over a fabric the MPI needs what carries it; Spack builds all of these itself.
    """
    builds_all = builder_of(system.builder).solves
    return system.discover and not builds_all and machine.fabric in ("shm", "tcp")


def find_local(site: System, whole: bool = False) -> System:
    """`local` as it is now; what its hand-written file decides goes over what was found.

    Who is not root gets a plan without the libraries that are not there, unless ``whole``, as all
    comes from a cache that others filled. Raises Missing, with one problem a field, when too little
    was found to describe the machine.
    """
    machine = look()
    if problems := machine.problems():
        raise Missing(
            *problems,
            outcome="`mvstack install local` names the packages that are missing; or "
            "`mvstack discover > mine.yaml`, edit it, and use that.",
        )
    text = system_yaml(machine, site.name)
    found = parse_system(text, Path(f"<discovered {site.name}>"))
    decided: dict[str, Any] = {
        name: getattr(site, name)
        for name in ("title", "site", "builder", "install", "discover", "source")
        if name in site.model_fields_set
    }
    if os.geteuid() != 0 and not whole and can_do_without(site, machine):
        there = {one.name for one in machine.externals if one.headers}
        parts = found.partitions.items()
        decided["partitions"] = {name: without_root(part, there) for name, part in parts}
    return found.model_copy(update=decided)


def seen(system: System, partition: str = "", *, whole: bool = False) -> tuple[System, list[str]]:
    """``system``, with what is found by looking if it is this machine; the partitions meant.

    ``whole`` as in :func:`find_local`.
    """
    if system.discover:
        system = find_local(system, whole)
    return system, partitions_of(system, partition)


def without_root(part: Partition, there: Set[str]) -> Partition:
    """``part`` with the libraries that are ``there``; else with the copies in the MPI's source.

    Without headers of UCX there is no ch4:ucx: none is built for it, as ch4:ofi is the faster.
    """
    mpi = {one: "embedded" for one in ("libfabric", "hwloc") if one not in there}
    if "ucx" not in there:
        mpi["device"] = "ch4:ofi"
    without = {} if "openblas" in there else {"HPCC": "OpenBLAS is not installed"}
    update = {"mpi": part.mpi.model_copy(update=mpi), "without": {**without, **part.without}}
    return part.model_copy(update=update)


def plan_local(
    system: System,
    partition: str,
    release: Release,
    policy: Policy,
    lacking: Lacking,
    given: Given,
) -> Plan:
    """The plan for this machine, over the first MPI whose source can be obtained.

    MVAPICH in the order of the release; MPICH, which anybody can fetch, when none can. Of packages
    that stand in for each other, the first whose source is there. Beyond the profile default, what
    is not there is left out, with what stands on it; not so what the site's file names as licensed.
    """
    over = over_better(system, partition, release)
    unavailable: set[tuple[str, str]] = set()
    because: dict[tuple[str, str], str] = {}
    default = {one.module for one in release.packages if one.profile == "default"}
    while True:
        here = replace(given, unavailable=frozenset(unavailable), fallback=True)
        try:
            plan = make_plan(over, partition, release, policy, here)
        except Refused:
            if over is system:
                raise
            over = system  # the stand-in has not that device
            continue
        if over is not system and plan.mpi[0].product == "mpich":
            over = system  # Debian's source of it holds no libfabric
            continue
        told = [
            {**row, "because": because.get((row["name"], row["module"]), row["because"])}
            for row in plan.left_out
        ]
        plan = replace(plan, left_out=told)
        wanted = [
            ((build.product, build.version), (build.product, build.version, build.easyconfig))
            for build in plan.mpi
            if build.product != "mpich"
        ]
        wanted += [
            (_key(package), (package.name, package.version, package.easyconfig))
            for package in plan.packages
            # The site names what is licensed: to lack its file is an error to be told.
            if not package.readers
            and (
                package.module not in default
                or any(
                    p.module == package.module and (p.instead or p.where.transport)
                    for p in release.packages
                )
            )
        ]
        said = {key: why for key, what in wanted if (why := lacking(*what))}
        missing = said.keys() - unavailable
        because |= said | _dependents(plan, unavailable | missing)
        missing = (missing | set(because)) - unavailable
        if not missing:
            return plan
        unavailable |= missing


def over_better(system: System, partition: str, release: Release) -> System:
    """``system`` over better than what the distribution has, on a machine alone without GPUs.

    The libfabric in the MPI's source: the distribution's, which drives all adapters, takes 0.4 s
    of each start of a program (docs/performance.md). And the release's UCX, where that is newer.
    """
    part = system.partitions[partition]
    if part.fabric != "shm" or part.gpu != "none" or builder_of(system.builder).solves:
        return system  # makers of adapters and GPUs have libraries of their own, Spack builds them
    ucx = part.externals.get("ucx")
    rows = [one for one in release.packages if one.name == "UCX" and one.where.transport]
    versions = [one.version for one in rows if one.where.builder == system.builder]
    newest = max(versions, key=sort_key, default="0")
    mpi = {"libfabric": "embedded"}
    if ucx and ucx.prefix == "/usr" and sort_key(ucx.version or newest) < sort_key(newest):
        mpi["transport"] = "built"
    part = part.model_copy(update={"mpi": part.mpi.model_copy(update=mpi)})
    return system.model_copy(update={"partitions": {**system.partitions, partition: part}})


def _dependents(plan: Plan, gone: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The packages of ``plan`` that stand on one of ``gone``, each with the reason."""
    there = {package.name for package in plan.packages if _key(package) not in gone}
    names = {name: module for name, module in gone if name not in there}
    found: dict[tuple[str, str], str] = {}
    for package in plan.packages:
        needed = easyconfigs.needs(package.easyconfig, package.toolchain)
        if lost := [names[name] for name in needed if name in names]:
            # packages stand in the order of building, so that one pass finds them all
            names[package.name] = package.module
            found[_key(package)] = f"needs {lost[0]}, which is left out"
    return found


def _key(package: Package) -> tuple[str, str]:
    """What tells a package from others of its name: one version may be there in two variants."""
    return (package.name, package.module)


def same_machine(plan: Plan, machine: Machine) -> None:
    """Refuse to build ``plan`` on a machine that is not the partition it is for."""
    problems = []
    where = f"{plan.system}/{plan.partition}"
    if machine.os and machine.os != plan.os:
        what = "this machine runs another operating system"
        problems.append(Problem(what, where, found=machine.os, allowed=plan.os))
    targets = archspec.cpu.TARGETS
    here, wanted = targets.get(machine.target or ""), targets[plan.target]
    if here is not None and not here >= wanted:
        what = "this machine's processor cannot run what is built for the partition"
        allowed = f"{wanted.name} or one that has all it has"
        problems.append(Problem(what, where, found=here.name, allowed=allowed))
    if problems:
        todo = "run it on a node of the partition, or give --anyway if you know better"
        problems[-1] = replace(problems[-1], todo=todo)
        raise Refused(*problems, outcome="Nothing was installed.")


def as_seen(system: System, partition: str, progress: Progress) -> System:
    """``system``, whose libfabric and UCX of the site have what their own tools say."""
    part = system.partitions[partition]
    externals = dict(part.externals)
    for name in sorted(TOOLS.keys() & externals):
        there = externals[name]
        if seen := library_at(name, there.prefix):
            update = seen.model_dump(include={"providers", "transports"})
            update["variants"] = f"{there.variants} {seen.variants}".strip()
            externals[name] = there.model_copy(update=update)
        else:
            why = f"no bin/{TOOLS[name]} there to ask what it drives"
            progress.skip("look", f"at {name} below {there.prefix}", why)
    seen_here = {partition: part.model_copy(update={"externals": externals})}
    return system.model_copy(update={"partitions": {**system.partitions, **seen_here}})
