"""Does a condition of the policy hold for a machine and a build?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import archspec.cpu
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from mvstack.model.policy import When
from mvstack.model.system import Partition, System


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
    pmi: str = ""
    libfabric: str = ""
    product: str = ""
    version: str = ""
    device: str = ""
    fallback: bool = False

    def with_build(self, product: str, version: str, device: str, libfabric: str) -> Facts:
        """The same machine with a build in mind."""
        return replace(self, product=product, version=version, device=device, libfabric=libfabric)


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
        pmi=part.pmi or "",
        libfabric=part.mpi.libfabric or "",
    )


def holds(when: When, facts: Facts) -> bool:
    """Whether every field of ``when`` that is given holds for ``facts``."""
    return (
        _one_of(facts.fabric, when.fabric)
        and _one_of(facts.nic, when.nic)
        and _one_of(facts.gpu, when.gpu)
        and (when.gpu_buffers in (None, facts.gpu_buffers))
        and _one_of(facts.launcher, when.launcher)
        and _one_of(facts.pmi, when.pmi)
        and _one_of(facts.arch, when.arch)
        and _one_of(facts.product, when.product)
        and _like(facts.os, when.os)
        and not (when.not_os and _like(facts.os, when.not_os))
        and not (when.not_arch and facts.arch in when.not_arch)
        and _like(facts.device, when.device)
        and (when.libfabric in (None, facts.libfabric))
        and (when.fallback in (None, facts.fallback))
        and _in_range(facts.version, when.version)
    )


def _one_of(value: str, allowed: Sequence[str]) -> bool:
    return not allowed or value in allowed


def _like(value: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)


def _in_range(version: str, condition: str | None) -> bool:
    if condition is None:
        return True
    return bool(version) and SpecifierSet(condition).contains(Version(version), prereleases=True)
