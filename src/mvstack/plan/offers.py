"""Whether what a site provides carries what was chosen, and what later steps may refuse. Pure."""

import re
from collections.abc import Iterator

from mvstack.model.constraint import sort_key
from mvstack.model.policy import Policy
from mvstack.model.spack import spack_pins
from mvstack.model.system import External, Partition, System
from mvstack.model.vocabulary import parts_of
from mvstack.plan import spackspecs
from mvstack.plan.choose import Choice
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.words import listed, nearest

PLAIN_PATH = re.compile(r"[\w/.+~@=-]+", re.ASCII)
"""What configure scripts, PATH and module files take whole."""


def check_offers(system: System, partition: str, choice: Choice) -> None:
    """Raises InvalidInput for each field of the partition that cannot carry what was chosen."""
    part = system.partitions[partition]
    problems = [
        Problem(
            f"{partition}: the {name} here has no {lacking}, which "
            f"{choice.product} {choice.version} needs for {need}",
            system.at("partitions", partition, "externals", name, field)
            or system.at("partitions", partition, "externals", name),
            found=f"{field}: {_said(getattr(part.externals[name], field))}",
            because=f"{choice.row.why} ({choice.row.source})"
            if name != "slurm"
            else f"{choice.launcher.why} ({choice.launcher.source})",
            todo=f"{HOW[name]}; correct {field} if it is incomplete, or give another {name}",
        )
        for name, field, lacking, need in _lacking(part, choice)
    ]
    if choice.facts.provided:
        problems += _other_variants(system, partition, choice)
    kind, model = choice.policy.gpus[choice.facts.gpu], part.gpu_model or "(none)"
    under: set[str] = {choice.row.use.transports[device].library for device in choice.devices}
    if "gpu" in choice.row.use.configure:
        under.add(choice.product)
    # of what the site has nothing is built here, nor what is beneath its own MPI
    built = set() if choice.facts.provided else under - set(part.externals)
    if kind.ucx and not kind.ucx.variants and "ucx" in built:
        message = f"externals: a ucx with {' or '.join(kind.ucx.believe)} is needed: {kind.why}"
        todo = "name it under `externals:` (`ucx: {version: …, prefix: …, transports: […]}`)"
        problems.append(_of_gpu(system, partition, message, todo))
    built &= {"libfabric", choice.product}
    if kind.needs_arch and built and not spackspecs.gpu_arch(part, choice.policy):
        names = " and ".join(sorted(built))
        message = f"gpu_arch is not set, and the build of {names} is for one architecture"
        todo = (
            f"set `gpu_arch:` to one of {listed(sorted(set(kind.architectures.values())))} or what "
            f"`rocminfo` names; or a gpu_model (now {model}) that begins with one of "
            f"{listed(kind.architectures)}: Spack refuses +rocm with amdgpu_target=none"
        )
        problems.append(_of_gpu(system, partition, message, todo))
    if problems:
        raise InvalidInput(*problems)


def _other_variants(system: System, partition: str, choice: Choice) -> Iterator[Problem]:
    """What the site says of its own MPI that is not what the partition needs."""
    name, device = choice.product, choice.devices[0]
    gpu = choice.policy.gpus[choice.facts.gpu].package
    needed = {"netmod": device.partition(":")[2], "gpu": gpu}
    for word in system.partitions[partition].externals[name].variants.split():
        variant, _, value = word.partition("=")
        if needed.get(variant, value) != value:
            yield Problem(
                f"{partition}: the {name} here has {word}, and {variant}={needed[variant]} is "
                f"needed for fabric {choice.facts.fabric} with gpu {choice.facts.gpu}",
                system.at("partitions", partition, "externals", name, "variants"),
                because=f"{choice.row.why} ({choice.row.source})",
                todo="name another of the site's, or leave it out: one is built where that can be",
            )


def _of_gpu(system: System, partition: str, message: str, todo: str) -> Problem:
    where = system.at("partitions", partition, "gpu")
    gpu = f"gpu: {system.partitions[partition].gpu}"
    return Problem(f"{partition}: {message}", where, found=gpu, todo=todo)


HOW = {
    "libfabric": "`fi_info -l` lists what it has, `fi_info -c FI_HMEM` what reaches GPUs",
    "ucx": "`ucx_info -d` lists what it has",
    "slurm": "`srun --mpi=list` lists what it has",
}
"""How to see what an external has."""
FORM = {"title": "say in a line", "site": "Who runs it", "source": "who wrote this file, from"}
"""What `mvstack new system` leaves to fill in."""


def _said(value: str | list[str]) -> str:
    return (value if isinstance(value, str) else listed(value)) or "(none)"


def _lacking(part: Partition, choice: Choice) -> Iterator[tuple[str, str, str, str]]:
    """(external, its field, what it lacks, for what) for each external that says what it has."""
    for device in choice.devices:
        under = choice.beneath(device)
        name, believe, need = under.transport.library, under.believe, f"fabric {part.fabric}"
        gpu = f"gpu {part.gpu}"
        kind = choice.policy.gpus[choice.facts.gpu]
        asked = {"libfabric": kind.libfabric, "ucx": kind.ucx.variants if kind.ucx else ""}
        external = part.externals.get(name)
        embedded = part.mpi.libfabric if name == "libfabric" else None
        if external is None or (embedded or under.transport.provision) != "external":
            continue
        for field, wanted, of in (
            ("providers", believe.providers, need),
            ("transports", believe.transports, need),
            ("transports", believe.memory, gpu),
        ):
            if getattr(external, field) and wanted and not any(_has(external, x) for x in wanted):
                yield name, field, " or ".join(wanted), of
        # a variant that an external does not state is off: Spack would find nothing that fits
        lacking = {one for one in asked.get(name, "").split() if one[0] == "+"} - _on(external)
        if lacking:
            yield name, "variants", " ".join(sorted(lacking)), gpu
    slurm, plugins = part.externals.get("slurm"), choice.policy.pmis[choice.pmi].plugins
    if part.launcher == "srun" and slurm and slurm.mpi and plugins:
        offered = [re.sub(r"_v\d+$", "", one) for one in slurm.mpi]
        if not set(plugins) & set(offered):
            yield "slurm", "mpi", " or ".join(plugins), f"pmi {choice.pmi}"


def _on(external: External) -> set[str]:
    return set(re.findall(r"\+\w+", external.variants))


def _has(external: External, wanted: str) -> bool:
    """Whether a transport is there, or every part of a provider such as ``verbs;ofi_rxm``.

    A node without an adapter lists no transport of it, and UCX's build tells.
    """
    there = {part for one in (*external.providers, *external.transports) for part in parts_of(one)}
    return parts_of(wanted) <= there or f"+{wanted.partition('_')[0]}" in _on(external)


def scheduler_of(system: System, partition: str, policy: Policy) -> str:
    """The scheduler of ``partition``: as its file says, else the one its launcher belongs to.

    Raises InvalidInput for several nodes of which nobody says who gives them to a job.
    """
    part, named = system.partitions[partition], system.scheduler_of(partition)
    said = part.scheduler is not None or "scheduler" in system.model_fields_set
    own = policy.programs[part.launcher].scheduler
    found = own if named == "none" else named
    kinds = {policy.schedulers[one].directive for one in (own, found)}
    if own != "none" and len(kinds) > 1:
        raise InvalidInput(
            f"{partition}: launcher {part.launcher} starts programs in jobs of {own} alone",
            system.at("partitions", partition, "launcher"),
            found=f"scheduler {found}",
            todo="correct one of the two",
        )
    if found == "none" and not said and part.nodes > 1:
        raise InvalidInput(
            f"{partition}: {part.nodes} nodes, and no scheduler is named",
            system.at("partitions", partition, "nodes"),
            allowed=listed(policy.schedulers),
            because="checks would run on the node where they are started, and never on two",
            todo="set `scheduler:` (none, if there is no scheduler)",
        )
    return found


def doubts(system: System, partition: str, policy: Policy) -> Iterator[Problem]:
    """What `mvstack check` warns of: nothing is wrong yet, and a later step may refuse it."""
    part = system.partitions[partition]

    def doubt(message: str, todo: str, *field: str) -> Problem:
        where = system.at("partitions", partition, *field)
        return Problem(f"{partition}: {message}", where, todo=todo)

    if loud := policy.fabrics[part.fabric].loud:
        todo = "`ibv_devinfo` and `fi_info -l` show whether an adapter is there"
        yield doubt(f"fabric {part.fabric}: {loud}", todo, "fabric")
    found = spack_pins().found_on(system.os_of(partition))
    if part.compiler.origin == "spack" and found and sort_key(found.gcc) < sort_key("4.8"):
        todo = "name one that the site has: `origin: external`, with its `prefix`"
        by = f"gcc {found.gcc} of {system.os_of(partition)}, and takes none before 4.8"
        yield doubt(f"Spack cannot build a compiler with {by}", todo, "compiler")
    if part.launcher == "srun" and part.pmi is None:
        todo = "set `pmi:` to one that `srun --mpi=list` names"
        yield doubt("pmi is not set, so the policy's first is taken", todo, "launcher")
    if part.launcher == "srun" and "slurm" not in part.externals:
        todo = "name it under `externals:` (`slurm: {version: …, prefix: …}`)"
        yield doubt("launcher srun, and no Slurm among the externals", todo, "launcher")
    for name, there in part.externals.items():
        if not there.version and not system.discover:
            message = f"{name} has no version, without which Spack does not use it"
            yield doubt(message, "set `version:`, or take the line away", "externals", name)
    for name, field in (("libfabric", "providers"), ("ucx", "transports"), ("slurm", "mpi")):
        external = part.externals.get(name)
        if external and not system.discover and not getattr(external, field):
            message = f"the {name} here does not say its {field}: nothing can be held against it"
            yield doubt(message, f"set `{field}:`; {HOW[name]}", "externals", name)
    for number, name in enumerate(part.file_systems):
        if name not in policy.file_systems:
            close = nearest(name, policy.file_systems)
            meant = f"; did you mean {close}?" if close else ""
            message = f"ROMIO has no driver for the file system {name}: it is left out{meant}"
            todo = f"use one of {listed(policy.file_systems)}; ufs serves any POSIX file system"
            yield doubt(message, todo, "file_systems", str(number))


def variant_doubts(system: System, plan: Plan) -> Iterator[Problem]:
    """The same of what the MPI stands on, where its external does not state a variant."""
    externals = system.partitions[plan.partition].externals
    for build in plan.mpi:
        name = build.transport["library"]
        there = externals.get(name)
        wanted = set(re.findall(r"\+\w+", build.transport["variants"]))
        if there and not system.discover and (lacking := sorted(wanted - _on(there))):
            yield Problem(
                f"{plan.partition}: the {name} here does not state {' '.join(lacking)}, so that "
                f"Spack does not use it for {build.module}",
                system.at("partitions", plan.partition, "externals", name),
                todo="add to its `variants:` what it has (of UCX `ucx_info -b` tells: "
                "ENABLE_MT 1 is +thread_multiple), or take the line away",
            )


def system_doubts(system: System) -> Iterator[Problem]:
    """What `mvstack check` warns of in a system as a whole."""
    if system.name == "local" and not system.discover:
        todo = "give it a name of its own: `mvstack discover --name NAME`"
        yield Problem("name: local is the machine that one is on", system.at("name"), todo=todo)
    for field, words in FORM.items():
        if words in str(getattr(system, field)):
            yield Problem(f"{field}: not filled in yet", system.at(field), todo="write your own")
    root = system.install.root or "/"
    if not PLAIN_PATH.fullmatch(root):
        yield Problem(
            "install: root: this path is not plain, and `mvstack install` refuses it",
            system.at("install", "root"),
            found=root,
            todo="use letters, digits and / . _ + ~ @ = - only",
        )
