"""The name that archspec gives to a CPU, from a cpuinfo text that may be another machine's.

archspec's own detection reads /proc/cpuinfo of the machine it runs on and trusts the interpreter
for the architecture. The same rule is applied here to any text, with archspec's public table of
targets; tests hold the two against each other on the machine at hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from archspec.cpu import TARGETS, Microarchitecture

NEAR = 3
"""How many missing flags still make a named target worth mentioning."""


@dataclass(frozen=True)
class Processor:
    """The first processor of a cpuinfo text, as archspec's table describes processors."""

    architecture: str
    vendor: str
    features: frozenset[str]
    generation: int = 0
    part: str = ""
    name: str = ""


@dataclass(frozen=True)
class Named:
    """A target's name, and the nearest more special one with the flags it lacks."""

    target: str
    near: str = ""
    lacking: tuple[str, ...] = ()


def records(cpuinfo: str) -> list[dict[str, str]]:
    """The blocks of a cpuinfo text as key and value; lines without a colon are passed over."""
    blocks = []
    for block in re.split(r"\n\s*\n", cpuinfo):
        pairs = [line.partition(":") for line in block.splitlines()]
        fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        if fields:
            blocks.append(fields)
    return blocks


def architecture_of(record: dict[str, str], uname: str) -> str | None:
    """The architecture that both ``uname -m`` (may be "") and the record speak for, else None."""
    if "vendor_id" in record and "flags" in record:
        seen = ["x86_64"]
    elif "CPU implementer" in record:
        seen = ["aarch64"]
    elif re.search(r"POWER[0-9]+", record.get("cpu", "")):
        seen = ["ppc64le", "ppc64"]
    elif record.get("isa", "").startswith("rv64"):
        seen = ["riscv64"]
    else:
        return None
    if not uname:
        return seen[0]
    return uname if uname in seen else None


def processor(record: dict[str, str], architecture: str) -> Processor:
    """The processor of one cpuinfo record of an ``architecture`` found by ``architecture_of``."""
    if architecture == "x86_64":
        flags = frozenset(record["flags"].split())
        return Processor(architecture, record["vendor_id"], flags)
    if architecture == "aarch64":
        code = record["CPU implementer"]
        flags = frozenset(record.get("Features", "").split())
        part = record.get("CPU part", "")
        return Processor(architecture, _arm_vendor(code), flags, part=part)
    if architecture == "riscv64":
        name = {"sifive,u74-mc": "u74mc", "spacemit,x60": "x60"}.get(record.get("uarch", ""), "")
        return Processor(architecture, "generic", frozenset(), name=name)
    power = re.search(r"POWER([0-9]{1,3})", record.get("cpu", ""))
    return Processor(architecture, "", frozenset(), generation=int(power[1]) if power else 0)


def named(cpu: Processor) -> Named:
    """The most special target of archspec's table that this processor can run."""
    info = Microarchitecture(
        name="",
        parents=[],
        vendor=cpu.vendor,
        features=set(cpu.features),
        compilers={},
        generation=cpu.generation,
        cpu_part=cpu.part,
    )
    # archspec adds what a flag implies (ssse3: sse3) when a Microarchitecture is made.
    have = info.features
    family = [
        target
        for target in TARGETS.values()
        if target.name == cpu.architecture or TARGETS[cpu.architecture] in target.ancestors
    ]
    fitting = [target for target in family if _fits(target, cpu, have)]
    generic = max((t for t in fitting if t.vendor == "generic"), key=_rank, default=None)
    base = generic if generic is not None else TARGETS[cpu.architecture]
    if cpu.part and any(target.cpu_part == cpu.part for target in fitting):
        fitting = [target for target in fitting if target.cpu_part == cpu.part]
    # Only below the best generic target: a newer CPU that lacks one rare flag must not be
    # called by the name of a much older one.
    best = max((target for target in fitting if target > base), key=_rank, default=base)
    near, lacking = "", frozenset[str]()
    # Worth saying for a generic name only: a zen2 is no zen3 that lacks three flags.
    for target in family if best.vendor == "generic" else []:
        missing = target.features - have
        special = target.vendor == cpu.vendor and target > best
        if special and 0 < len(missing) <= NEAR and (not near or target > TARGETS[near]):
            near, lacking = target.name, frozenset(missing)
    return Named(best.name, near, tuple(sorted(lacking)))


def _fits(target: Microarchitecture, cpu: Processor, have: set[str]) -> bool:
    if cpu.architecture in ("ppc64le", "ppc64"):
        return bool(target.generation <= cpu.generation)
    if cpu.architecture == "riscv64":
        return bool(target.name == cpu.name or target.vendor == "generic")
    if cpu.architecture == "aarch64" and target.vendor == "generic":
        # archspec: which Armv8 revision a CPU has cannot be told from its flags.
        return bool(target.name == "aarch64")
    return target.vendor in (cpu.vendor, "generic") and target.features <= have


def _rank(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


def _arm_vendor(code: str) -> str:
    """archspec's name for an Arm implementer's code, e.g. 0x41: ARM."""
    from archspec.cpu.schema import TARGETS_JSON

    vendors = TARGETS_JSON["conversions"]["arm_vendors"]
    return str(vendors.get(code, code))
