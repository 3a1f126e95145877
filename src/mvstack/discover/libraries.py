"""Packages of the system that an MPI can be built on, where their headers are: prefix and version.

`spack external find` misses several of them (slurm, pmix, ucx, numactl, libpciaccess) and takes
a libfabric without headers for usable; so both are looked at here.

`ucx_info -d` and `fi_info` list what finds a device here; a login node, or one without its driver,
finds none. What the library holds is told by UCX's build configuration (`ucx_info -b`), by the
modules beside the library, and by the variables that each of libfabric's providers declares
(`fi_info -e`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from mvstack.discover.machine import Findings, Library
from mvstack.discover.scheduler import Launch, slurm_version
from mvstack.discover.view import View


@dataclass(frozen=True)
class Wanted:
    """How one package shows itself; ``prefixes`` are places beside the usual ones.

    A prefix ending in ``/*`` stands for the versions installed below it, the newest first.
    """

    name: str
    header: str
    pc: str = ""
    tools: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()


WANTED = (
    Wanted(
        "libfabric",
        "rdma/fabric.h",
        "libfabric",
        (("fi_info", "--version"),),
        ("/opt/cray/libfabric/*", "/opt/amazon/efa"),
    ),
    Wanted("ucx", "ucp/api/ucp.h", "ucx", (("ucx_info", "-v"),)),
    Wanted(
        "hwloc",
        "hwloc.h",
        "hwloc",
        (("lstopo-no-graphics", "--version"), ("hwloc-info", "--version")),
    ),
    Wanted("pmix", "pmix.h", "pmix", (), ("/opt/pmix/*",)),
    Wanted("rdma-core", "infiniband/verbs.h", "libibverbs"),
    Wanted("numactl", "numa.h", "numa"),
    Wanted("libpciaccess", "pciaccess.h", "pciaccess"),
    Wanted("xpmem", "xpmem.h", "", (), ("/opt/xpmem", "/opt/cray/xpmem/default")),
    Wanted("cray-pmi", "pmi2.h", "cray-pmi", (), ("/opt/cray/pe/pmi/default",)),
    Wanted("cuda", "cuda_runtime_api.h", "", (("nvcc", "--version"),)),
    Wanted("hip", "hip/hip_runtime.h", "", (("hipcc", "--version"),)),
)
"""The packages looked for, except Slurm's."""

NO_USUAL = {"cray-pmi", "cuda", "hip"}
"""Looked for in places of their own only: pmi2.h below /usr may be Slurm's."""

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("fi_info", "-l"),
    ("fi_info", "-e"),
    ("ucx_info", "-d"),
    ("ucx_info", "-b"),
    *(tool for wanted in WANTED for tool in wanted.tools),
)

TRIPLES = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
TRIPLES |= {"ppc64le": "powerpc64le-linux-gnu", "riscv64": "riscv64-linux-gnu"}
VERSION = r"([0-9]+\.[0-9]+[0-9A-Za-z.]*)"


DEFINED = {
    "verbs": "HAVE_IB",
    "rc": "HAVE_TL_RC",
    "dc": "HAVE_TL_DC",
    "ud": "HAVE_TL_UD",
    "mlx5_dv": "HAVE_MLX5_HW",
    "thread_multiple": "ENABLE_MT",
}
"""Spack's variants of UCX and the line of its config.h that says that they are on."""

MODULES = {
    "cma": "cma",
    "rdmacm": "rdmacm",
    "xpmem": "xpmem",
    "knem": "knem",
    "cuda": "cuda",
    "gdrcopy": "cuda_gdrcopy",
    "rocm": "rocm",
}
"""Spack's variants of UCX and the module (libuct_<name>.so.0) that is there with them."""

SILENT = ("cxi", "efa", "opx", "psm", "psm2", "psm3", "verbs", "usnic", "gni")
"""Providers that list themselves only where they find their adapter."""


def read_libraries(
    view: View, architecture: str, launch: Launch, findings: Findings
) -> list[Library]:
    """The packages that an MPI can be built on, and Slurm, which starts programs."""
    triple = TRIPLES.get(architecture, "")
    found = [_look(view, wanted, triple, findings) for wanted in WANTED]
    found.append(_slurm(view, launch, triple))
    return [_details(view, library, triple) for library in found if library is not None]


def _look(view: View, wanted: Wanted, triple: str, findings: Findings) -> Library | None:
    places = _prefixes(view, wanted, triple)
    prefixes = [prefix for prefix in places if _include(view, wanted, prefix, triple)]
    if not prefixes:
        return None
    if len(prefixes) > 1:
        findings.note(f"{wanted.name} with headers below {', '.join(prefixes)}: the first")
    version = _version(view, wanted, prefixes[0], triple)
    return Library(name=wanted.name, version=version, prefix=prefixes[0])


def _prefixes(view: View, wanted: Wanted, triple: str) -> list[str]:
    """Where to look: beside the tools on PATH, and in the usual places."""
    places = [_above_bin(view.which(tool[0])) for tool in wanted.tools]
    if wanted.name == "pmix" and triple:
        places.append(f"/usr/lib/{triple}/pmix2")  # Debian's: include and lib are below it
    for place in wanted.prefixes:
        if place.endswith("/*"):
            base = place[:-2]
            places += [f"{base}/{name}" for name in reversed(view.names(base))]
        else:
            places.append(place)
    if wanted.name not in NO_USUAL:
        places += ["/usr/local", "/usr"]
    return list(dict.fromkeys(place for place in places if place))


def _above_bin(path: str) -> str:
    """The prefix of a tool: what is above its bin folder; "" when there is none."""
    for parent in PurePosixPath(path).parents:
        if parent.name == "bin":
            return "/usr" if str(parent) == "/bin" else str(parent.parent)
    return ""


def _include(view: View, wanted: Wanted, prefix: str, triple: str) -> str:
    """The folder that holds the package's header, or ""."""
    folders = [f"{prefix}/include"]
    if triple:
        folders.append(f"{prefix}/include/{triple}")
    if wanted.name == "cuda":
        folders.append(f"{prefix}/targets/x86_64-linux/include")
    return next((f for f in folders if view.exists(f"{f}/{wanted.header}")), "")


def _version(view: View, wanted: Wanted, prefix: str, triple: str) -> str | None:
    """The version by pkg-config's file, by a tool of this prefix, or by the folder's name."""
    places = [f"{prefix}/{folder}" for folder in ("lib64", "lib", f"lib/{triple}", "share")]
    if prefix.startswith(f"/usr/lib/{triple}/"):
        places.append(f"/usr/lib/{triple}")
    for place in places:
        text = view.text(f"{place}/pkgconfig/{wanted.pc}.pc") if wanted.pc else None
        match = re.search(rf"^Version:\s*{VERSION}", text or "", re.M)
        if match:
            return _rdma_core(match[1]) if wanted.name == "rdma-core" else match[1]
    for tool in wanted.tools:
        where = view.which(tool[0])
        if where and _above_bin(where) != prefix:
            continue
        match = re.search(rf"(?:V|[Vv]ersion:? |: |\s){VERSION}", view.say(*tool))
        if match:
            return match[1]
    match = re.fullmatch(VERSION, PurePosixPath(prefix).name)
    return match[1] if match else None


def _rdma_core(version: str) -> str:
    """libibverbs 1.14.44.0 is of rdma-core 44.0: its build joins the two."""
    parts = version.split(".")
    return ".".join(parts[2:]) if len(parts) == 4 else version


def _details(view: View, library: Library, triple: str) -> Library:
    """libfabric's providers, UCX's transports and variants, by the tool of the same prefix."""
    tool = {"libfabric": "fi_info", "ucx": "ucx_info"}.get(library.name)
    if tool is None or _above_bin(view.which(tool)) not in ("", library.prefix):
        return library
    if tool == "fi_info":
        listed = providers(view.say("fi_info", "-l"))
        also = silent_providers(view.say("fi_info", "-e"), listed)
        return library.model_copy(update={"providers": [*listed, *also], "idle": also})
    places = ["lib64", "lib", *([f"lib/{triple}"] if triple else [])]
    folders = [f"{library.prefix}/{lib}/ucx" for lib in places]
    modules = [name for folder in folders for name in view.names(folder)]
    return library.model_copy(
        update={
            "transports": transports(view.say("ucx_info", "-d")),
            "variants": ucx_variants(view.say("ucx_info", "-b"), modules),
        }
    )


def providers(text: str) -> list[str]:
    """The providers that ``fi_info -l`` lists, without hooks; ofi_rxm is rxm."""
    names = re.findall(r"^([a-z0-9_]{1,30}):\s*$", text, re.M)
    kept = [name.removeprefix("ofi_") for name in names if not name.startswith("ofi_hook")]
    return list(dict.fromkeys(kept))


def transports(text: str) -> list[str]:
    """The transports that ``ucx_info -d`` finds usable on this machine."""
    return list(dict.fromkeys(re.findall(r"^#\s+Transport:\s+([\w-]{1,30})\s*$", text, re.M)))


def _slurm(view: View, launch: Launch, triple: str) -> Library | None:
    """Slurm where it starts programs, or where its headers are: an image is built without it."""
    tool = view.which("srun") or view.which("sinfo")
    prefix = _above_bin(tool) or "/usr"
    headers = any(view.exists(f"{prefix}/include/slurm/{header}") for header in ("pmi2.h", "pmi.h"))
    if launch.scheduler != "slurm" and not (tool and headers):
        return None
    return Library(
        name="slurm",
        version=slurm_version(view.say("sinfo", "--version")) or None,
        prefix=prefix,
        headers=headers,
        mpi=launch.mpi or slurm_modules(view.names, prefix, triple),
        idle=[] if launch.scheduler == "slurm" else ["slurm"],
    )


def ucx_variants(config: str, modules: Iterable[str]) -> str:
    """UCX's variants in Spack's words; "" when nothing is known of its build."""
    names = set(modules)
    on = [
        variant
        for variant, macro in DEFINED.items()
        if re.search(rf"^#define\s+{macro}\s+1\s*$", config, re.M)
    ]
    on += [
        variant
        for variant, module in MODULES.items()
        if any(name.startswith(f"libuct_{module}.so") for name in names)
    ]
    return "".join(f"+{variant}" for variant in on)


def silent_providers(variables: str, listed: Iterable[str]) -> list[str]:
    """Providers that the library has and that ``listed`` lacks, by ``fi_info -e``.

    A provider declares its variables (FI_VERBS_…) before it looks for an adapter.
    """
    known = set(listed)
    return [
        name
        for name in SILENT
        if name not in known and re.search(rf"^# FI_{name.upper()}_\w+:", variables, re.M)
    ]


def slurm_modules(names: Callable[[str], list[str]], prefix: str, triple: str) -> list[str]:
    """Slurm's MPI plugins by their files, as ``srun --mpi=list`` would name them."""
    folders = [f"{prefix}/lib64/slurm", f"{prefix}/lib/slurm"]
    if triple:
        folders += [f"{prefix}/lib/{triple}/slurm-wlm", f"{prefix}/lib/{triple}/slurm"]
    for folder in folders:
        found = [
            match[1] for name in names(folder) if (match := re.fullmatch(r"mpi_(\w+)\.so", name))
        ]
        if found:
            return found
    return []
