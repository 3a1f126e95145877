"""What Spack is asked for: a plan's MPI builds, transports and externals in Spack's spec words.

Pure. The words come from the policy; `mvstack check` holds them against our recipes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mvstack.model.policy import Policy
from mvstack.model.system import External, Partition
from mvstack.model.vocabulary import parts_of


@dataclass(frozen=True)
class Build:
    """One MPI build as it was chosen.

    ``configure`` is what the policy's build row adds, ``pm`` the launcher row's process manager.
    """

    product: str
    device: str
    pmi: str
    gpu: str
    configure: dict[str, str]
    pm: str


def mpi(part: Partition, build: Build, policy: Policy) -> list[str]:
    """The words of a spec, without the name, that ask Spack for one MPI build of ``part``."""
    program = policy.programs[part.launcher]
    manager = program.spack or program.manager
    # `:=` means these values and no others: with `=` the solver may merge two builds into one.
    romio = f"file_systems:={','.join(drivers(part, build.product, policy))}"
    netmod = build.device.partition(":")[2]
    interface = policy.interfaces.get(build.configure.get("gpu", ""), "")
    variant, arch = policy.gpus[build.gpu].arch_variant, gpu_arch(part, policy)
    words: list[str]
    if build.product == "mvapich":
        words = [f"netmod:={netmod}", f"fabrics:={part.fabric}"]
        asked = (("libfabric", netmod == "ofi" and part.mpi.libfabric), ("hwloc", part.mpi.hwloc))
        if embedded := [name for name, how in asked if how == "embedded"]:
            words.append(f"embedded:={','.join(embedded)}")
        managers = "none" if build.pm == "none" else manager
        words += [f"pmi={build.pmi}", f"process_managers:={managers}", romio, interface]
        words += [f"{variant}={arch}"] if interface and variant and arch else []
        words.append("+omb")  # what the checks measure with, as in EasyBuild's build
    elif build.product == "mvapich2":
        words = [f"fabrics:={build.configure.get('fabrics') or netmod.replace(':', '')}"]
        words += [f"process_managers:={'flux' if part.launcher == 'flux' else manager}"]
        words += [f"pmi_version={build.pmi}"] if manager == "slurm" else []
        # verbs are linked: what is opened as a program starts needs the packages of headers there
        words += ["~ibv_dlopen"] if build.device == "ch3:mrail" else []
        words += [romio, interface]
    elif build.product in ("mvapich-plus", "mvapich2-gdr"):
        words = [f"netmod={netmod}"] if build.product == "mvapich-plus" else []
        words += [f"gpu={policy.gpus[build.gpu].package}", f"process_managers={manager}"]
    elif build.product == "mpich":
        words = ["device=ch4", f"netmod={netmod}"]
        words.append(f"pmi={'pmi2' if manager == 'slurm' else 'default'}")
    elif build.product == "openmpi":
        words = [f"fabrics={netmod}", f"schedulers={manager}"]
    else:
        words = [f"process_managers={manager}"]
    return [word for word in words if word]


def gpu_arch(part: Partition, policy: Policy) -> str:
    """What compilers write for on the partition's GPUs, e.g. 80 or gfx90a; "" if not known."""
    if part.gpu_arch:
        return part.gpu_arch.removeprefix("sm_")
    return policy.gpus[part.gpu].architectures.get(part.gpu_model.partition("-")[0], "")


def drivers(part: Partition, product: str, policy: Policy) -> list[str]:
    """ROMIO's drivers for the partition's file systems; what else is mounted needs none."""
    rows = policy.file_systems
    known = [one for one in part.file_systems if one in rows and product not in rows[one].not_in]
    return known or ["ufs", "nfs"]


def transport(
    library: str, variants: str, provision: str, external: External | None, policy: Policy
) -> str:
    """The spec that the library beneath the device must satisfy; "" when there is none.

    A library of the site is asked for no more than it is known to have: its own providers decide,
    and where nobody knows them (a machine without fi_info) what it does when it runs.
    """
    if library == "none" or provision == "embedded":
        return ""
    if external is not None and library == "libfabric":
        asked, _, rest = variants.partition(" ")
        wanted = asked.removeprefix("fabrics=").split(",")
        there = [word for word in wanted if word in _providers(external.providers, policy)]
        words = [f"fabrics={','.join(there)}"] if there else []
        variants = " ".join([*words, rest]).strip()
    return f"{library} {variants}".strip()


def externals(part: Partition, policy: Policy, mpi: str = "") -> list[dict[str, str]]:
    """Every external that Spack can use, with its prefix; no spec for an unknown version.

    An MPI of the site is said to be what is asked for, which is ``mpi``.
    """
    found = []
    for name, external in sorted(part.externals.items()):
        packages = policy.externals[name].packages
        for package in [name] if packages is None else packages:
            spec = ""
            if external.version:
                words = [f"{package}@{external.version}"]
                if package == "libfabric" and external.providers:
                    words.append("fabrics=" + ",".join(_providers(external.providers, policy)))
                if package in policy.products:
                    words += _as_asked(package, mpi)
                words += [one for one in external.variants.split() if one not in words]
                spec = " ".join(words)
            found.append({"package": package, "spec": spec, "prefix": external.prefix})
    return found


def _as_asked(package: str, spec: str) -> list[str]:
    """The variants by which the site's own MPI is what ``spec`` asks for."""
    words = spec.replace(":=", "=").split()[1:]
    if package == "mvapich-plus":  # its recipe wants these too, and confirms packages, not sites
        kinds = {"gpu=cuda": "+cuda", "gpu=rocm": "+rocm", "gpu=mi300a": "+rocm"}
        words += ["+unconfirmed", *(kinds[one] for one in words if one in kinds)]
    return words


def _providers(words: Iterable[str], policy: Policy) -> list[str]:
    """libfabric's providers in the words of Spack's variant, layered ones by their parts."""
    parts = {part for word in words for part in parts_of(word)}
    return sorted({policy.providers.get(part, part) for part in parts} - {""})
