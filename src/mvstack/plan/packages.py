"""Which packages of a release a partition gets, over which of its MPI builds. Pure."""

from dataclasses import dataclass

from mvstack.model.release import Package as ReleasePackage
from mvstack.model.release import Release
from mvstack.model.system import Partition, System
from mvstack.model.vocabulary import PROFILES
from mvstack.plan import easyconfigs, spackspecs
from mvstack.plan.choose import Choice
from mvstack.plan.types import NOT_OBTAINED, Given, MpiBuild, Package
from mvstack.support.words import listed

NOT_ASKED = "it is built beneath the MPI only, where the file says `mpi: {transport: built}`"
LICENCES = {"registration": "needs registration", "commercial": "needs a licence"}


@dataclass(frozen=True)
class _Partition:
    """What decides the packages of one partition."""

    release: Release
    part: Partition
    builder: str
    choice: Choice
    licensed: dict[str, str]
    given: Given


def packages_of(
    release: Release,
    system: System,
    partition: str,
    choice: Choice,
    builds: list[MpiBuild],
    given: Given,
) -> tuple[list[Package], list[dict[str, str]]]:
    """The packages of ``given.profile`` in the order of building; what of it is left out, and why.

    What proves the MPI (profile default) stands on every MPI build of the partition; libraries and
    applications stand on the first: the builds of one version run each other's programs.
    """
    part, builder = system.partitions[partition], system.builder
    here = _Partition(release, part, builder, choice, system.install.licensed, given)
    fitting: list[ReleasePackage] = []
    for_this_builder = {one.name for one in release.packages if one.where.builder in ("", builder)}
    left_out: list[dict[str, str]] = []
    for package in release.packages:
        if PROFILES.index(package.profile) > PROFILES.index(given.profile):
            continue
        if given.names and package.profile != "default" and package.name not in given.names:
            continue
        if package.only_over and choice.product not in package.only_over:
            continue
        if package.where.transport and not own_transport(part):
            if package.name in given.names:
                named = package.model_dump(include={"name", "version", "module"})
                left_out.append({**named, "because": NOT_ASKED})
            continue
        if package.instead and any(one.instead == package.instead for one in fitting):
            continue
        other = package.where.builder
        if other not in ("", builder) and (package.name in for_this_builder):
            continue  # its row for this builder says it all
        if because := _not_here(package, here):
            beneath = bool(package.where.transport)
            if package.profile != "default" or package.name in part.without or beneath:
                named = package.model_dump(include={"name", "version", "module"})
                left_out.append({**named, "because": because})
            continue
        fitting.append(_as_there(package, here))
    there = {package.instead for package in fitting if package.instead}
    words = {package.module: package.instead for package in release.packages}
    left_out = [row for row in left_out if words[row["module"]] not in there]
    on_compiler = [_package(one, None, here) for one in fitting if one.toolchain == "gcc"]
    above = [
        _package(one, build, here)
        for build in builds
        for one in fitting
        if one.toolchain != "gcc" and (build is builds[0] or one.profile == "default")
    ]
    return [*on_compiler, *above], left_out


def _not_here(package: ReleasePackage, here: _Partition) -> str:
    """Why the partition does not get a package of its profile; "" when it does."""
    part, gpu = here.part, here.choice.facts.gpu
    kind = gpu.partition("-")[0]
    if package.name in part.without:
        return f"the site: {part.without[package.name]}"
    if {(package.name, package.version), (package.name, package.module)} & here.given.unavailable:
        return NOT_OBTAINED
    if package.where.transport:
        return _not_beneath(package, here)
    if package.profile == "default":
        return ""
    if package.licence != "open" and package.name not in here.licensed:
        return (
            f"{LICENCES[package.licence]}: {package.page}. A site that has it names it in its "
            f"system's file, `install: {{licensed: {{{package.name}: <Unix group>}}}}`, and gives "
            f"the file: `mvstack sources add FILE --as {package.name}@{package.version}`"
        )
    if package.where.builder and package.where.builder != here.builder:
        return f"{package.where.builder} alone builds it"
    if package.where.gpu and kind not in package.where.gpu:
        return f"it is for partitions with gpu {' or '.join(package.where.gpu)}; this has {gpu}"
    least, has = package.where.gcc, part.compiler.version
    if least and _numbers(has) < _numbers(least):
        return f"it needs gcc {least} or newer; this has gcc {has}"
    made_for, generation = package.where.generations, _generation(here)
    if made_for and generation and generation not in made_for:
        return f"its easyconfig is for generation {' or '.join(made_for)}; this is {generation}"
    if generation and (unnamed := _not_named(package, here, generation)):
        return f"it stands on {listed(unnamed)}, which generation {generation} does not name"
    kinds = ("gcc", *easyconfigs.TOOLCHAINS.get(here.choice.product, ()))
    if lacking := package.not_built_by(here.builder, kinds):
        return lacking
    asked = {"spack": package.spack}.get(here.builder, "")
    if "{cuda_arch}" in asked and not _cuda_arch(part, here.choice):
        known = ", ".join(here.choice.policy.gpus[part.gpu].architectures)
        return (
            "it is compiled for one kind of GPU, and the partition's gpu_model "
            f"{part.gpu_model or '(none)'} begins with none of {known}"
        )
    return ""


def own_transport(part: Partition) -> bool:
    """Whether the MPI is to stand on a transport of the release, by the system's compiler."""
    return part.mpi.transport == "built" and part.compiler.origin == "system"


def _not_beneath(package: ReleasePackage, here: _Partition) -> str:
    """Why the MPI of the partition cannot stand on a transport of the release; "" when it can."""
    name, use, gpu = package.name, here.choice.row.use, here.choice.facts.gpu
    if here.builder != package.where.builder:
        return f"Spack builds {name} by itself where `externals:` names none"
    if here.choice.facts.provided:
        return "the MPI is the site's, and so is what is beneath it"
    if name.lower() not in {use.transports[one].library for one in here.choice.devices}:
        return f"{listed(here.choice.devices)} does not stand on {name}"
    if name.lower() in here.part.externals and not here.given.fallback:  # `local` names all
        return f"the file names the system's own: {name.lower()}"
    return f"its {name} is for host memory, and this has gpu {gpu}" if gpu != "none" else ""


def _as_there(package: ReleasePackage, here: _Partition) -> ReleasePackage:
    """A library in the version of the distribution, where the partition says it, or generation."""
    compiler = here.part.compiler
    own = package.name in easyconfigs.LIBRARIES and not package.spack
    external = here.part.externals.get(package.name.lower()) if own else None
    version = external.version if external and compiler.origin == "system" else None
    if (name := _generation(here)) and package.toolchain == "gcc" and not package.spack:
        row = here.choice.policy.generations[name]
        by_hand = row.gcc == easyconfigs.GCC_BY_HAND
        version = None if by_hand else row.versions.get(package.name)
    if not version or version == package.version:
        return package
    module = f"{package.module.partition('/')[0]}/{version}"
    return package.model_copy(update={"version": version, "module": module})


def _generation(here: _Partition) -> str:
    """The generation of EasyBuild's toolchains where it builds the compiler; "" elsewhere."""
    compiler = here.part.compiler
    known = here.choice.policy.generation(compiler.version)
    return {("easybuild", "easybuild"): known}.get((here.builder, compiler.origin), "")


def _not_named(package: ReleasePackage, here: _Partition, generation: str) -> list[str]:
    """What its easyconfig stands on that the generation by hand has and this one does not name."""
    rows = here.choice.policy.generations
    own = rows.get(here.choice.policy.generation(easyconfigs.GCC_BY_HAND))
    if own is None:
        return []
    needed = easyconfigs.needs(easyconfigs.by_hand(package, here.release.name))
    return [one for one in needed if one in own.versions and one not in rows[generation].versions]


def _package(package: ReleasePackage, build: MpiBuild | None, here: _Partition) -> Package:
    taken = here.given.accepted.get((package.name, package.version))
    easyconfig, toolchain = _easyconfig(package, build, here)
    return Package(
        **package.model_dump(include={"name", "version", "title", "module", "group", "licence"}),
        mpi=build.module if build else "",
        easyconfig=easyconfig,
        spack=_spec(package, here.part, here.choice),
        toolchain=toolchain,
        readers=here.licensed.get(package.name, "") if package.licence != "open" else "",
        not_upstream=taken.reason if taken else "",
        accepted_sha256=taken.sha256 if taken else [],
    )


def _easyconfig(
    package: ReleasePackage, build: MpiBuild | None, here: _Partition
) -> tuple[str, str]:
    """The easyconfigs of a package and of its toolchain; "" over products that have none."""
    release, part, choice = here.release, here.part, here.choice
    if build is None:
        over = easyconfigs.compiler_file(part.compiler.version, part.compiler.origin)[-1]
        return easyconfigs.package_file(package.name, package.version, over, package.suffix), over
    if package.toolchain not in easyconfigs.TOOLCHAINS.get(choice.product, {}):
        return "", ""
    over = easyconfigs.toolchain_file(choice.product, release.name, build.device, package.toolchain)
    return easyconfigs.package_file(package.name, package.version, over, package.suffix), over


def _spec(package: ReleasePackage, part: Partition, choice: Choice) -> str:
    """The spec for Spack; with GPUs, over an MPI that takes their buffers, that of the variant."""
    spec, arch = package.spack, _cuda_arch(part, choice)
    if spec and package.gpu:
        known = arch or "{cuda_arch}" not in package.gpu.spack
        with_gpus = choice.policy.products[choice.product].gpu_buffers and known
        spec = f"{spec} {package.gpu.spack if with_gpus else package.gpu.otherwise}".rstrip()
    return spec.replace("{cuda_arch}", arch)


def _cuda_arch(part: Partition, choice: Choice) -> str:
    """The compute capability of the partition's NVIDIA GPUs; "" if not known."""
    return spackspecs.gpu_arch(part, choice.policy) if part.gpu == "nvidia" else ""


def _numbers(version: str) -> list[int]:
    return [int(one) for one in version.split(".") if one.isdecimal()]
