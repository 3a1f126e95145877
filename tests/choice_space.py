"""What must hold for every choice of an MPI, over every machine that can be said.

The invariants stand in docs/policy.md with their reasons; `CHECKS` holds the same ids. What drives
a fabric is written here by hand from the libraries' documentation, and not read from the policy, so
that a slip of the policy cannot agree with itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from pathlib import Path

from mvstack.model.load import load_release, load_system
from mvstack.model.policy import Policy
from mvstack.model.system import External, Partition, System, Wish
from mvstack.model.vocabulary import words
from mvstack.plan.choose import Choice, Facts, facts_of, first_fitting
from mvstack.plan.make import mpi_build
from mvstack.plan.offers import check_offers, doubts
from mvstack.plan.types import MpiBuild
from mvstack.support.errors import InvalidInput

TESTS = Path(__file__).resolve().parent
DOCS = TESTS.parent / "docs" / "policy.md"
sys.path.insert(0, str(TESTS / "reframe"))

from fabric import fault  # noqa: E402

RELEASE, BASE = load_release(), load_system("expanse")
NOTHING = Wish()

# libfabric's fi_cxi(7), fi_efa(7), fi_opx(7), fi_psm2(7), fi_psm3(7), fi_verbs(7), fi_tcp(7)
PROVIDERS = {
    "slingshot-11": {"cxi"},
    "efa": {"efa"},
    "omni-path": {"opx", "psm2"},
    "psm3": {"psm3"},
    "infiniband": {"verbs;ofi_rxm", "mverbs;ofi_ucr"},
    "roce": {"verbs;ofi_rxm"},
    "tcp": {"tcp"},
    "shm": {"tcp"},
}
# `ucx_info -d`, and the FAQ of UCX
RDMA = {"rc_mlx5", "rc_verbs", "dc_mlx5", "ud_mlx5", "ud_verbs"}
MEMORY = {"posix", "sysv", "cma", "xpmem", "knem"}
TRANSPORTS = {"infiniband": RDMA, "roce": RDMA, "shm": MEMORY, "tcp": {"tcp"}}
GPU_MEMORY = {
    "nvidia": "cuda_copy",
    "amd": "rocm_copy",
    "amd-mi300a": "rocm_copy",
    "intel": "ze_copy",
}
GPU_WORD = {"nvidia": "+cuda", "amd": "+rocm", "amd-mi300a": "+rocm"}
# devices of MVAPICH2 that have one transport: without its adapter they do not start
ALONE = {"ch3:mrail": {"rdma-core"}, "ch3:psm": {"opa-psm2"}}
VERBS = {"infiniband", "roce", "iwarp", "slingshot-10", "rockport"}

# What a run says that went another way: over TCP, over TCP beside a GPU, in memory alone.
OFI_SAYS = "libfabric provider: {} \n"
UCX_SAYS = "[1.2] ucp_worker.c:1 UCX  INFO  ep_cfg[0]: tag({}) \n"


@dataclass(frozen=True)
class Machine:
    """One machine of the space: the facts, what its site provides, what it asks for."""

    facts: Facts
    externals: str = "none"
    wish: Wish = NOTHING
    arch: str | None = "gfx90a"


@dataclass(frozen=True)
class Accepted:
    """What a machine got."""

    machine: Machine
    choice: Choice
    part: Partition
    system: System
    builds: tuple[MpiBuild, ...]


def externals(kind: str, fabric: str, gpu: str) -> dict[str, External]:
    """What a site provides: all that is needed, what would end in TCP, or without saying what."""
    if kind == "none":
        return {}
    on = {"nvidia": "+cuda +gdrcopy", "amd": "+rocm", "amd-mi300a": "+rocm"}.get(gpu, "")
    said: dict[str, dict[str, object]] = {
        "right": {
            "libfabric": {"providers": [*PROVIDERS.get(fabric, []), "shm", "tcp"], "variants": on},
            "ucx": {
                "transports": [*TRANSPORTS.get(fabric, []), GPU_MEMORY.get(gpu, "self")],
                "variants": on,
            },
            "slurm": {"mpi": ["pmi2", "pmix_v4", "cray_shasta"]},
        },
        "poor": {
            "libfabric": {"providers": ["shm", "sockets"]},
            "ucx": {"transports": ["tcp", "self"]},
            "slurm": {"mpi": ["pmi1"]},
        },
        "unsaid": {"libfabric": {}, "ucx": {}, "slurm": {}},
    }[kind]
    return {
        name: External.model_validate({"version": "1.18", "prefix": "/opt/x", **more})
        for name, more in said.items()
    }


def machines(every: int = 1, plain: bool = False) -> Iterator[Machine]:
    """All of them, or one of so many: those that ask for nothing, then what sites ask for.

    ``plain`` ones differ in what most machines differ in: for tests that stop at the first fault.
    """
    first = facts_of(BASE, "cpu")
    gpus = [(gpu, "direct") for gpu in words("gpu")] + [("none", "staged")]
    fabrics = [(one, "") for one in words("fabric")] + [("roce", "broadcom")]
    wishes = (
        Wish(libfabric="embedded"),
        Wish(provider="psm2"),
        Wish(product="mvapich", version="3.0"),
        *(Wish(product=one) for one in words("product")),
        *(Wish(device=one) for one in ("ch4:ofi", "ch4:ucx", "ch3:mrail", "ch3:psm")),
    )
    kinds = ("none", "right", "poor", "unsaid", "no gpu_arch")
    systems = ("rocky8", "debian12") if plain else ("rocky8", "sles15", "debian12")
    archs = ("x86_64", "aarch64") if plain else ("x86_64", "aarch64", "ppc64le")
    pmis = ("",) if plain else ("", *words("pmi"))
    starters = ("srun", "hydra") if plain else words("launcher")
    free = product(fabrics, gpus, starters, pmis, systems, archs, [NOTHING], kinds)
    asked = product(fabrics, gpus, starters, [""], ["rocky8"], ["x86_64"], wishes, ["none", "poor"])
    for (fabric, nic), (gpu, buffers), launcher, pmi, os, arch, wish, kind in islice(
        chain(free, asked), 0, None, every
    ):
        facts = replace(
            first,
            fabric=fabric,
            nic=nic,
            gpu=gpu,
            gpu_buffers=buffers,
            launcher=launcher,
            pmi=pmi,
            os=os,
            arch=arch,
            libfabric=wish.libfabric or "",
            provider=wish.provider,
        )
        if kind == "no gpu_arch":
            yield Machine(facts, "none", wish, arch=None)
        else:
            yield Machine(facts, kind, wish)


def accepted(policy: Policy, space: Iterable[Machine]) -> Iterator[Accepted]:
    """What those machines get that are not refused, by the choice or for their externals."""
    base = BASE.partitions["cpu"]
    seen: tuple[tuple[Facts, str], Choice | None] | None = None
    for one in space:
        key = (one.facts, one.wish.model_dump_json())
        if seen is None or seen[0] != key:
            seen = key, first_fitting(one.facts, one.wish, RELEASE, policy)[0]
        choice = seen[1]
        if choice is None:
            continue
        facts = one.facts
        part = base.model_copy(
            update={
                "fabric": facts.fabric,
                "gpu": facts.gpu,
                "gpus": 0 if facts.gpu == "none" else 4,
                "gpu_arch": one.arch if facts.gpu.startswith("amd") else None,
                "launcher": facts.launcher,
                "pmi": facts.pmi or None,
                "mpi": one.wish,
                "externals": externals(one.externals, facts.fabric, facts.gpu),
            }
        )
        system = BASE.model_copy(update={"partitions": {"cpu": part}, "os": facts.os})
        try:
            check_offers(system, "cpu", choice)
        except InvalidInput:
            continue
        builds = tuple(mpi_build(part, choice, device) for device in choice.devices)
        yield Accepted(one, choice, part, system, builds)


# --- the invariants: each gives what is wrong with one build, or "" ---------------------------


def driven(got: Accepted, build: MpiBuild) -> str:
    fabric, value = build.fabric, {name: one["value"] for name, one in build.environment.items()}
    if build.device == "ch4:ofi":
        provider = value.get("FI_PROVIDER")
        return "" if provider in PROVIDERS.get(fabric, ()) else f"FI_PROVIDER is {provider}"
    if build.device == "ch4:ucx":
        if fabric not in TRANSPORTS:
            return f"UCX has no transport for {fabric}"
        kept = fabric == "tcp" or value.get("UCX_TLS") == "^tcp"
        return "" if kept else "UCX may take TCP"
    library = ALONE.get(build.device)
    if library is None or build.transport["library"] not in library:
        return f"nothing is known of {build.device}"
    where = VERBS if build.device == "ch3:mrail" else {"omni-path"}
    return "" if fabric in where else f"{build.device} does not drive {fabric}"


def believed(got: Accepted, build: MpiBuild) -> str:
    planned, fabric, gpu = build.believe, build.fabric, got.choice.facts.gpu
    if planned["device"] != build.device or "Version" not in planned["library_version"]:
        return "any library is believed"
    if build.device == "ch4:ofi":
        good = OFI_SAYS.format(build.environment["FI_PROVIDER"]["value"])
        others = ("tcp;ofi_rxm", "tcp", "sockets", "udp;ofi_rxd", "shm", "verbs;ofi_rxd")
        bad = [OFI_SAYS.format(one) for one in others if one.split(";")[0] not in good]
    elif build.device == "ch4:ucx":
        memory = f" {GPU_MEMORY[gpu]}/gpu" if gpu in GPU_MEMORY else ""
        names = TRANSPORTS[fabric]
        good = UCX_SAYS.format(f"{min(names & set(planned['transports']), default='x')}/0{memory}")
        others = {"tcp", *MEMORY} - names
        bad = [UCX_SAYS.format(f"self/memory {one}/eth0{memory}") for one in others]
        if memory:
            bad.append(UCX_SAYS.format(" ".join(f"{one}/mlx5_0:1" for one in sorted(names))))
            bad += [UCX_SAYS.format(f"tcp/eth0{memory} gdr_copy/cuda")] if fabric != "tcp" else []
    else:
        return ""  # the device itself is looked at, and it has one transport
    if wrong := fault(good, build.device, planned):
        return f"what was planned is not believed: {wrong}"
    missed = [one for one in [*bad, ""] if not fault(one, build.device, planned)]
    return f"this is believed: {missed[0].strip() or 'nothing at all'}" if missed else ""


def built(got: Accepted, build: MpiBuild) -> str:
    asked, fabric = build.transport["variants"].split(), build.fabric
    if build.transport["library"] == "libfabric" and build.transport["provision"] == "external":
        core = build.environment["FI_PROVIDER"]["value"].split(";")[0]
        fabrics = [one.removeprefix("fabrics=") for one in asked if one.startswith("fabrics=")]
        if len(fabrics) != 1 or core not in fabrics[0].split(","):
            return f"libfabric is not asked for {core}"
    lacking = {"+verbs", "+rc", "+dc", "+ud", "+mlx5_dv"} - set(asked)
    if lacking and build.transport["library"] == "ucx" and fabric in ("infiniband", "roce"):
        return f"UCX is not asked for {lacking}"
    if build.product == "mvapich" and f"fabrics:={fabric}" not in build.spack["spec"].split():
        return "the recipe is not told the fabric"
    return ""


def reaches_gpus(got: Accepted, build: MpiBuild) -> str:
    gpu, asked = got.choice.facts.gpu, build.transport["variants"].split()
    if gpu == "none":
        over = {"+cuda", "+rocm", "+gdrcopy"} & {*asked, *build.spack["spec"].split()}
        return f"{over} without a GPU" if over else ""
    word = GPU_WORD.get(gpu)
    if word and build.transport["library"] in ("libfabric", "ucx") and word not in asked:
        return f"{build.transport['library']} is not asked for {word}"
    own = build.transport["library"] == "libfabric" and "libfabric" not in got.part.externals
    if own and word == "+rocm" and "amdgpu_target=gfx90a" not in asked:
        return "libfabric +rocm without amdgpu_target, which Spack refuses"
    if build.product == "mvapich":
        spec = set(build.spack["spec"].split())
        if (word or "+level_zero") not in spec or build.parameters.get(
            "datatype_engine"
        ) != "yaksa":
            return "the MPI is built without GPUs"
        if word == "+rocm" and "amdgpu_target=gfx90a" not in spec:
            return "+rocm without amdgpu_target, which Spack refuses"
        takes = got.choice.facts.fabric != "tcp"  # libfabric's provider of it has no FI_HMEM
        told = "MPIR_CVAR_CH4_OFI_ENABLE_HMEM" in build.environment
        if build.device == "ch4:ofi" and told != takes:
            return "libfabric is not let near GPU buffers" if takes else "MPI_Init would fail"
    if build.device == "ch3:mrail" and "MV2_USE_CUDA" not in build.environment:
        return "GPU buffers are off"
    return ""


def offered(got: Accepted, build: MpiBuild) -> str:
    used = build.transport["library"] in got.part.externals
    embedded = got.machine.wish.libfabric == "embedded" and build.device == "ch4:ofi"
    if used and not embedded:
        if got.machine.externals == "poor":
            return f"a {build.transport['library']} that would end in TCP is taken"
        missing = GPU_WORD.get(got.choice.facts.gpu, "")
        said = got.part.externals[build.transport["library"]].variants
        if build.device.startswith("ch4") and missing not in said:
            return f"an external without {missing} is taken"
    if got.part.launcher == "srun" and got.machine.externals == "poor" and build.pmi != "pmi1":
        return f"a Slurm without {build.pmi} is taken"
    return ""


def launched(got: Accepted, build: MpiBuild) -> str:
    launcher, pmi = got.part.launcher, build.pmi
    own = {"srun": {"pmi1", "pmi2", "pmix", "cray"}, "jsrun": {"pmix"}}.get(launcher, {"simple"})
    if pmi not in own:
        return f"{launcher} with pmi {pmi}"
    if launcher in ("mpirun_rsh", "jsrun") and not build.product.startswith("mvapich2"):
        return f"{build.product} has no {launcher}"
    plugin = {"pmi1": "none"}.get(pmi, pmi)  # srun(1): Slurm has none for PMI 1
    told = build.environment.get("SLURM_MPI_TYPE", {}).get("value", plugin)
    if told != plugin or ("--mpi=" in build.launch and f"--mpi={plugin} " not in build.launch):
        return f"srun is asked for a plugin that is not that of pmi {pmi}: {build.launch}"
    return "" if build.launch.partition(" ")[0] in LINES[launcher] else f"{build.launch}"


LINES = {
    "srun": ("srun",),
    "jsrun": ("jsrun",),
    "mpirun_rsh": ("mpirun_rsh",),
    "flux": ("flux",),
    "mpijob": ("mpirun",),
    "hydra": ("mpiexec",),
    "gforker": ("mpiexec",),
    "remshell": ("mpiexec",),
}


def published(got: Accepted, build: MpiBuild) -> str:
    facts = got.choice.facts
    if build.product == "mvapich-plus" and not re.match(r"rocky|rhel|almalinux|toss", facts.os):
        return f"there is no MVAPICH-Plus for {facts.os}"
    binary = build.product in ("mvapich-plus", "mvapich2-x")
    if (binary or build.device == "ch3:psm") and facts.arch != "x86_64":
        return f"there is no {build.product} for {facts.arch}"
    return ""


def on_one_node(got: Accepted, build: MpiBuild) -> str:
    # 3.x rates no provider: it takes the one that it is told
    old = build.version.startswith("3.")
    name, right = ("OFI_USE_PROVIDER", "cxi") if old else ("SINGLE_HOST_ENABLED", "0")
    value = build.environment.get(f"MPIR_CVAR_{name}", {}).get("value")
    needed = build.fabric == "slingshot-11" and build.device == "ch4:ofi"
    return "cxi is not taken on one node" if needed and value != right else ""


def loud(got: Accepted, build: MpiBuild) -> str:
    if build.fabric != "tcp" and "tcp" not in {*build.believe["provider"]}:
        return ""
    if build.fabric == "shm":
        return ""
    said = " ".join(one.message for one in doubts(got.system, "cpu", got.choice.policy))
    return "" if "over TCP" in said else "TCP, and nothing is said"


CHECKS: dict[str, Callable[[Accepted, MpiBuild], str]] = {
    "driven": driven,
    "believed": believed,
    "built": built,
    "reaches-gpus": reaches_gpus,
    "offered": offered,
    "launched": launched,
    "published": published,
    "on-one-node": on_one_node,
    "loud": loud,
}


def violations(policy: Policy, space: Iterable[Machine]) -> Iterator[str]:
    """What does not hold, one line for each build and invariant."""
    for got in accepted(policy, space):
        for build in got.builds:
            for name, check in CHECKS.items():
                if wrong := check(got, build):
                    facts = got.choice.facts
                    yield (
                        f"{name}: {facts.fabric}, gpu {facts.gpu}, {got.part.launcher}, "
                        f"{facts.os}, {facts.arch}, externals {got.machine.externals}: "
                        f"{build.product} {build.device} ({got.choice.row.id}): {wrong}"
                    )
