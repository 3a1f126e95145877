"""The plan: what one partition gets in one release, with the reasons. Pure."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mvstack.model.base import Reasoned
from mvstack.model.policy import Policy, SchedulerRow
from mvstack.model.release import MpiVersion, Release
from mvstack.model.system import Partition, System
from mvstack.model.tuning import tuned
from mvstack.model.vocabulary import parts_of
from mvstack.plan import easyconfigs, spackspecs
from mvstack.plan.choose import Choice, choose, holds
from mvstack.plan.offers import check_offers, scheduler_of
from mvstack.plan.packages import own_transport, packages_of
from mvstack.plan.rails import rail_configure, rail_settings, rails
from mvstack.plan.targets import family_of, options_for
from mvstack.plan.types import Accepted, Given, MpiBuild, Package, Plan
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.words import listed, nearest

DEFAULT_ROOT = "/opt/mvapich-stack"
NOTHING = Given()


def split_name(name: str) -> tuple[str, str]:
    """``expanse/cpu`` as its two parts; a path to a file may hold slashes of its own."""
    if name.endswith((".yaml", ".yml")) or "/" not in name:
        return name, ""
    head, _, tail = name.rpartition("/")
    if head.endswith((".yaml", ".yml")):
        return head, tail
    # a folder of that name is none: `lock --to .` makes expanse/cpu, and expanse/cpu stays a system
    if Path(name).is_file() or name.startswith(("/", "./", "../")):
        return name, ""
    return head, tail


def partitions_of(system: System, wanted: str) -> list[str]:
    """The partitions meant by ``wanted``; all of them when it is empty.

    Raises InvalidInput for a partition that the system does not have, and Refused for one that
    nothing is offered on.
    """
    names = list(system.partitions)
    if wanted in system.not_offered or not (names or wanted):
        refused = [wanted] if wanted else list(system.not_offered)
        raise Refused(
            f"nothing is offered on {', '.join(f'{system.name}/{one}' for one in refused)}",
            system.at("not_offered", *refused[:1]),
            because="; ".join(dict.fromkeys(system.not_offered[one].because for one in refused)),
            todo=f"name one of {listed(names)}" if names else "mvstack list",
        )
    if not wanted:
        return names
    if wanted not in names:
        close = nearest(wanted, [*names, *system.not_offered])
        raise InvalidInput(
            f"system {system.name} has no partition {wanted}",
            allowed=listed(names),
            nearest=close,
            todo=f"name {system.name}/{close or names[0]}; `mvstack show {system.name}` shows all",
        )
    return [wanted]


def make_plan(
    system: System,
    partition: str,
    release: Release,
    policy: Policy,
    given: Given = NOTHING,
) -> Plan:
    """The plan of ``system``/``partition`` in ``release``. Raises Refused when nothing fits."""
    part = system.partitions[partition]
    _check_names(system, partition, release)
    choice = choose(system, partition, release, policy, given.unavailable, given.fallback)
    check_offers(system, partition, choice)
    root = given.root or system.install.root or DEFAULT_ROOT
    folder = system.name if system.discover else f"{system.name}-{partition}"
    taken = given.accepted.get((choice.product, choice.version))
    builds = [mpi_build(part, choice, device, taken) for device in choice.devices]
    where = system.name, partition
    builds = [replace(build, tuning=tuned(*where, build.module)) for build in builds]
    scheduler = policy.schedulers[scheduler_of(system, partition, policy)]
    profile = given.profile or part.profile or "default"
    given = replace(given, profile=profile)
    chosen, left_out = packages_of(release, system, partition, choice, builds, given)
    ours = {one.module for one in release.packages if one.where.transport and own_transport(part)}
    own = {one.name.lower(): one for one in chosen if one.module in ours and not one.mpi}
    builds = [_over(build, own.get(build.transport["library"])) for build in builds]
    if own_transport(part) and not own and not given.fallback:
        at = system.at("partitions", partition, "mpi", "transport") or system.name
        why = [row["because"] for row in left_out if row["module"] in ours]
        because = listed(why) or f"release {release.name} has no transport for {choice.product}"
        raise Refused(NOT_BUILT, at, because=because, todo=MEND)
    return Plan(
        system=system.name,
        partition=partition,
        title=part.title or system.title,
        release=release.name,
        builder=system.builder,
        root=root,
        tree=f"{root}/{release.name}/{folder}",
        os=choice.facts.os,
        target=part.target,
        cores=part.cores,
        scheduler=scheduler.reframe,
        starter=policy.programs[part.launcher].reframe,
        job=_job(part, scheduler, policy.gpus[part.gpu].resource),
        access=list(part.scheduler_options),
        compiler=part.compiler.model_dump(),
        mpi=builds,
        packages=chosen,
        passed_over=[asdict(item) for item in choice.passed_over],
        externals=spackspecs.externals(part, policy, builds[0].spack["spec"]),
        fallback=_fallback_sentence(choice),
        profile=profile,
        named=sorted(given.names),
        left_out=left_out,
        beneath=beneath(part, policy),
        # -march=native on `local`, but for a processor of which only the family could be told
        optimization=""
        if system.discover and part.target != family_of(part.target)
        else options_for(part.target, part.compiler.name, part.compiler.version),
    )


def beneath(part: Partition, policy: Policy) -> dict[str, str]:
    """What stands beneath EasyBuild's compiler, by software; {} as the easyconfigs by hand say."""
    name = policy.generation(part.compiler.version)
    if part.compiler.origin != "easybuild" or not name:
        return {}
    row = policy.generations[name]
    if row.gcc == easyconfigs.GCC_BY_HAND:
        return {}
    return {"GCC": row.gcc, "GCCcore": row.gcc, **row.versions}


def _job(part: Partition, scheduler: SchedulerRow, gpu: str) -> dict[str, Any]:
    """A job that the module's help shows; {} where nothing is submitted. Memory reaches no node."""
    if not scheduler.submit:
        return {}
    nodes = 1 if part.fabric == "shm" else min(part.nodes, 2)
    size = {"nodes": nodes, "per_node": part.gpus or part.cores}
    lines = scheduler.lines(part.scheduler_options, **size, gpus=part.gpus, gpu=gpu)
    row = scheduler.model_dump(include={"submit", "script", "first", "hosts"})
    return {**row, **size, "lines": lines, "ranks": nodes * size["per_node"]}


def _check_names(system: System, partition: str, release: Release) -> None:
    """Refuse to leave out what the release has not, and a licence for what needs none.

    Both are slips of the pen, and the package meant would be treated as if nothing was said.
    """
    if release.systems:
        return  # a historic release; what the file says is of today's packages
    names = sorted({package.name for package in release.packages})
    licensed = sorted({one.name for one in release.packages if one.licence != "open"})
    no_package = f"without: release {release.name} has no package {{}}"
    no_licence = f"install: licensed: {{}} is no licensed package of release {release.name}"
    said = [
        (name, names, no_package, system.place(partition, "without", name))
        for name in system.partitions[partition].without
    ] + [
        (name, licensed, no_licence, system.at("install", "licensed", name) or system.name)
        for name in system.install.licensed
    ]
    for name, known, message, where in said:
        if name not in known:
            close = nearest(name, known)
            raise InvalidInput(message.format(name), where, allowed=listed(known), nearest=close)


def mpi_build(
    part: Partition, choice: Choice, device: str, accepted: Accepted | None = None
) -> MpiBuild:
    """One MPI build of ``part``: what is asked for, what its module sets, what a check must see."""
    policy = choice.policy
    product = policy.products[choice.row.use.product]
    software = product.easybuild or choice.product
    site = part.externals[choice.product] if choice.facts.provided else None
    beneath = choice.beneath(device)
    facts = replace(choice.facts, device=device)
    links = rail_settings(part, facts, policy)
    settings = {
        **product.environment,
        **beneath.environment,
        **choice.launcher.environment,
        **links,
    }
    transport = _transport(part, choice, device)
    rows: dict[str, Reasoned | MpiVersion] = {
        choice.row.id: choice.row,
        f"version {choice.version}": choice.entry,
        f"launcher {part.launcher}, pmi {choice.pmi}": choice.launcher,
    }
    netmod, sonames = easyconfigs.netmod(device), product.sonames
    known = max((one for one in sonames if choice.version.startswith(one)), key=len, default="")
    version_text = choice.version.replace(".", r"\.").replace("+", r"\+")
    return MpiBuild(
        product=choice.product,
        software=software,
        version=choice.version,
        device=device,
        module=f"{choice.product}/{choice.version}-{netmod}",
        fabric=part.fabric,
        gpu=choice.facts.gpu,
        transport=transport,
        pmi=choice.pmi,
        launcher=part.launcher,
        launch=choice.launcher.launch.replace("{pmi}", choice.pmi),
        environment={
            name: {"value": one.value.replace("{pmi}", choice.pmi)} | _reason(one)
            for name, one in settings.items()
            if holds(one.when, choice.facts)
        },
        believe={
            "library_version": product.version_text.replace("{version}", version_text),
            "device": device if product.says_device else "",
            "provider": list(beneath.believe.providers),
            "transports": list(beneath.believe.transports),
            "memory": list(beneath.believe.memory),
            "soname": sonames.get(known, ""),
            "beneath": _prefix(part, transport),
        },
        parameters=_parameters(part, choice, device),
        easyconfig=f"{software}-{choice.version}-GCC-{part.compiler.version}-{netmod}.eb",
        spack=_spack(part, choice, device, transport),
        not_upstream=accepted.reason if accepted else "",
        accepted_sha256=accepted.sha256 if accepted else [],
        why=choice.row.why,
        source=choice.row.source,
        reasons=[{"what": what} | _reason(row) for what, row in rows.items()],
        provided=site.prefix if site else "",
        rails=rails(part, facts, policy),
        gone=choice.entry.gone,
    )


def _parameters(part: Partition, choice: Choice, device: str) -> dict[str, Any]:
    """The easyblock's parameters that this partition decides."""
    asked = choice.launcher.configure
    parameters: dict[str, Any] = {
        "device": device,
        "pmi": asked.get("built_pmi", choice.pmi),
        "launcher": asked.get("built_launcher", choice.policy.programs[part.launcher].manager),
        "file_systems": spackspecs.drivers(part, choice.product, choice.policy),
    }
    if choice.row.use.configure.get("gpu"):
        parameters["gpu"] = choice.row.use.configure["gpu"]
        # dataloop, which CPU builds take for its short compile, cannot touch GPU buffers
        parameters["datatype_engine"] = "yaksa"
        if arch := spackspecs.gpu_arch(part, choice.policy):
            parameters["gpu_arch"] = arch
    transport = choice.row.use.transports[device].library
    if part.mpi.libfabric == "embedded" and transport == "libfabric":
        parameters["libfabric"] = "embedded"
        if part.fabric in ("shm", "tcp"):
            parameters["adapters"] = False
    if part.mpi.transport == "built" and not own_transport(part):
        parameters |= _built(part, transport, choice, device)
    built = replace(choice.facts, device=device, pmi=choice.pmi)
    if options := rail_configure(part, built, choice.policy, "easybuild"):
        parameters["configopts"] = " ".join(options)
    for name, row in choice.policy.externals.items():
        there = part.externals.get(name)
        prefix = there.prefix if there and holds(row.when, built) else row.default
        if row.parameter and prefix != row.default:
            parameters.setdefault(row.parameter, prefix)
    if part.mpi.hwloc == "embedded" and holds(choice.policy.externals["hwloc"].when, built):
        parameters["hwloc"] = "embedded"
    if {"libfabric", "ucx", "hwloc"} & parameters.keys():
        # packages of the distribution are no sign of these: configure says what it does not find
        parameters["osdependencies"] = []
    return parameters


# Of libfabric's providers those that stock EasyBuild's libfabric has: no CXI, OPX or PSM.
STOCK_PROVIDERS = {"tcp", "verbs", "shm", "efa", "sockets", "udp"}


def _built(part: Partition, transport: str, choice: Choice, device: str) -> dict[str, Any]:
    """The transport and hwloc as EasyBuild's dependencies. Raises Refused where there are none."""
    policy, believe = choice.policy, choice.beneath(device).believe
    name = policy.generation(part.compiler.version)
    known = policy.generations[name].versions if name else {}
    software = {"ucx": "UCX", "libfabric": "libfabric"}.get(transport, "")
    given = [one for one in (transport, "hwloc") if one in part.externals]
    lacking = sorted(
        {word for one in believe.providers for word in parts_of(one)} - STOCK_PROVIDERS
    )
    why = ""
    if choice.facts.provided:
        why = "the MPI is the site's, and so is what is beneath it"
    elif not software:
        why = f"{device} stands on neither UCX nor libfabric"
    elif part.compiler.origin != "easybuild" or not {software, "hwloc"} <= set(known):
        why = f"EasyBuild builds {software} with its own compiler, of a generation that names it"
    elif given or part.mpi.libfabric:
        why = f"the file names the system's own: {listed(given) or 'mpi.libfabric'}"
    elif lacking:
        why = f"stock EasyBuild's libfabric has no provider {listed(lacking)}"
    if why:
        raise Refused(NOT_BUILT, because=why, todo=MEND)
    return {
        "dependencies": [(one, known[one]) for one in (software, "hwloc")],
        "osdependencies": [],
    }


NOT_BUILT = "mpi.transport: built is not possible here"
MEND = "leave `transport: built` out, or mend what the reason names"


def _over(build: MpiBuild, own: Package | None) -> MpiBuild:
    """``build`` over a transport that the release brings; hwloc stays the system's."""
    if own is None:
        return build
    parameters = {"osdependencies": [("libhwloc-dev", "hwloc-devel")], **build.parameters}
    parameters["dependencies"] = [(own.name, own.version)]
    transport, believe = {**build.transport, "provision": "built"}, {**build.believe, "beneath": ""}
    return replace(build, parameters=parameters, transport=transport, believe=believe)


def _transport(part: Partition, choice: Choice, device: str) -> dict[str, str]:
    """The library beneath ``device``; of the GPUs' architecture only what Spack builds is told."""
    under = choice.beneath(device).transport
    asked = part.mpi.libfabric if under.library == "libfabric" else None
    own = under.library not in part.externals
    arch = spackspecs.gpu_arch(part, choice.policy) if own else ""
    words = [word for word in under.variants.split() if arch or "{arch}" not in word]
    if own and under.library == "ucx" and (ucx := choice.policy.gpus[choice.facts.gpu].ucx):
        words += ucx.built.split()
    return {
        "library": under.library,
        "provision": "built"
        if part.mpi.transport == "built" and not own_transport(part)
        else asked or under.provision,
        "variants": " ".join(words).replace("{arch}", arch),
    }


def _prefix(part: Partition, transport: dict[str, str]) -> str:
    """Where the library beneath the MPI is the site's; "" where it is built, or nobody says."""
    there = part.externals.get(transport["library"])
    return (there.prefix or "") if there and transport["provision"] == "external" else ""


def _spack(part: Partition, choice: Choice, device: str, under: dict[str, str]) -> dict[str, Any]:
    """What Spack is asked for: the MPI's package and spec, and that of the library beneath it."""
    use, pm = choice.row.use, choice.launcher.configure.get("pm", "")
    build = spackspecs.Build(
        choice.product, device, choice.pmi, choice.facts.gpu, use.configure, pm
    )
    words = spackspecs.mpi(part, build, choice.policy)
    words += rail_configure(part, replace(choice.facts, device=device), choice.policy, "spack")
    spec = " ".join([f"{choice.product}@={choice.version}", *words])
    external = part.externals.get(under["library"])
    below = spackspecs.transport(**under, external=external, policy=choice.policy)
    built = below and not choice.facts.provided  # an MPI of the site brings what is beneath it
    transport = {"package": under["library"], "spec": below} if built else None
    return {"package": choice.product, "spec": spec, "transport": transport}


def _fallback_sentence(choice: Choice) -> str:
    if not choice.facts.fallback or choice.product != "mpich":
        loud = choice.policy.fabrics[choice.facts.fabric].loud
        return f"Fabric {choice.facts.fabric}: {loud}." if loud else ""
    tried = list(dict.fromkeys(item.build for item in choice.passed_over))
    return (
        f"MPICH {choice.version} stands in for MVAPICH: the sources of {listed(tried)} cannot be "
        "had from here. `mvstack sources add FILE --as mvapich@4.0` brings them."
    )


def _reason(row: Reasoned | MpiVersion) -> dict[str, str]:
    return {"why": row.why, "source": row.source}
