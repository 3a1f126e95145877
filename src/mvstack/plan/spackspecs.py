"""What Spack is asked for: a plan's MPI builds, transports and externals in Spack's spec words.

Pure. The words are those of the recipes below spack-repo/ (tests hold the two to each other).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mvstack.model.system import External, Partition

# How ranks start, in the recipes' words for `process_managers`.
PROCESS_MANAGERS = {
    "srun": "slurm",
    "hydra": "hydra",
    "mpijob": "hydra",
    "mpirun_rsh": "mpirun",
    "flux": "none",
    "jsrun": "jsm",
    "gforker": "gforker",
    "remshell": "remshell",
}
GPU_VARIANTS = {"cuda": "+cuda", "rocm": "+rocm", "ze": "+level_zero"}
PLUS_GPUS = {"none": "none", "nvidia": "cuda", "amd": "rocm", "amd-mi300a": "mi300a"}
# What Spack's libfabric knows of as `fabrics` (spack-packages v2025.11.0); a provider beyond these
# does not hinder the use of the library.
FABRICS = frozenset(
    [
        "cxi",
        "efa",
        "gni",
        "lnx",
        "mlx",
        "mrail",
        "opx",
        "psm",
        "psm2",
        "psm3",
        "rxd",
        "rxm",
        "shm",
        "sockets",
        "tcp",
        "ucx",
        "udp",
        "usnic",
        "verbs",
        "xpmem",
    ]
)
# Packages of Spack that one external of a system file stands for, where the names differ.
EXTERNAL_PACKAGES = {"rocm": ("hip", "hsa-rocr-dev"), "pmi": ("cray-pmi",)}


@dataclass(frozen=True)
class Ask:
    """One MPI build as Spack is asked for it. ``words`` are the spec's parts without the name."""

    product: str
    version: str
    words: tuple[str, ...]

    @property
    def spec(self) -> str:
        """The whole spec, e.g. ``mvapich@=4.1 netmod=ucx fabrics=infiniband …``."""
        return " ".join([f"{self.product}@={self.version}", *self.words])


def mpi(
    part: Partition,
    *,
    product: str,
    version: str,
    device: str,
    pmi: str,
    gpu: str,
    configure: dict[str, str],
    pm: str,
    file_systems: list[str],
) -> Ask:
    """What Spack is asked for to get one MPI build of ``part``.

    ``configure`` is what the policy's build row adds, ``pm`` the launcher row's process manager,
    ``file_systems`` ROMIO's drivers.
    """
    manager = PROCESS_MANAGERS.get(part.launcher, part.launcher)
    # `:=` means these values and no others: with `=` the solver may merge two builds into one.
    romio = f"file_systems:={','.join(file_systems)}" if file_systems else ""
    netmod = device.partition(":")[2]
    words: list[str]
    if product == "mvapich":
        words = [f"netmod:={netmod}", f"fabrics:={part.fabric}"]
        if part.mpi.libfabric == "embedded" and netmod == "ofi":
            words.append("embedded:=libfabric")
        words += [f"pmi={pmi}", f"process_managers:={'none' if pm == 'none' else manager}", romio]
        words += [GPU_VARIANTS[configure["gpu"]]] if configure.get("gpu") else []
        words.append("+omb")  # what the checks measure with, as in EasyBuild's build
    elif product == "mvapich2":
        words = [f"fabrics:={device.partition(':')[2].replace(':', '')}"]
        words += [f"process_managers:={'flux' if part.launcher == 'flux' else manager}"]
        words += [f"pmi_version={pmi}"] if manager == "slurm" else []
        words += [romio, *(["+cuda"] if configure.get("gpu") == "cuda" else [])]
    elif product == "mvapich-plus":
        words = [
            f"netmod={netmod}",
            f"gpu={PLUS_GPUS.get(gpu, gpu)}",
            f"process_managers={manager}",
        ]
    elif product == "mvapich2-gdr":
        words = [f"gpu={PLUS_GPUS.get(gpu, gpu)}", f"process_managers={manager}"]
    elif product == "mpich":
        words = [
            "device=ch4",
            f"netmod={netmod}",
            f"pmi={'pmi2' if manager == 'slurm' else 'default'}",
        ]
    else:
        words = [f"process_managers={manager}"]
    return Ask(product, version, tuple(word for word in words if word))


def transport(library: str, variants: str, provision: str, external: External | None) -> str:
    """The spec that the library beneath the device must satisfy; "" when there is none.

    A library of the site is asked for no more than it is known to have: its own providers decide.
    """
    if library in ("none", "rdma-core") or provision == "embedded":
        return "rdma-core" if library == "rdma-core" else ""
    if external is not None and library == "libfabric" and external.providers:
        asked, _, rest = variants.partition(" ")
        wanted = asked.removeprefix("fabrics=").split(",")
        there = [word for word in wanted if word in _providers(external.providers)]
        words = [f"fabrics={','.join(there)}"] if there else []
        variants = " ".join([*words, rest]).strip()
    return f"{library} {variants}".strip()


def externals(part: Partition) -> list[tuple[str, str, str]]:
    """(package, spec, prefix) of every external that Spack can use; "" for an unknown version."""
    found = []
    for name, external in sorted(part.externals.items()):
        for package in EXTERNAL_PACKAGES.get(name, (name,)):
            spec = ""
            if external.version:
                words = [f"{package}@{external.version}"]
                if package == "libfabric" and external.providers:
                    words.append("fabrics=" + ",".join(_providers(external.providers)))
                words += [external.variants] if external.variants else []
                spec = " ".join(words)
            found.append((package, spec, external.prefix))
    return found


def _providers(words: Iterable[str]) -> list[str]:
    """libfabric's providers in the words of Spack's variant, layered ones by their parts."""
    parts = {part.removeprefix("ofi_") for word in words for part in word.split(";")}
    return sorted(parts & FABRICS)
