"""Packages of the system that an MPI can be built on, where their headers are: prefix and version.

`spack external find` misses several of them (slurm, pmix, ucx, numactl, libpciaccess) and takes
a libfabric without headers for usable; so both are looked at here.

`ucx_info -d` and `fi_info` list what finds a device here; a login node, or one without its driver,
finds none. What the library holds is told by UCX's build configuration (`ucx_info -b`), by the
modules beside the library, and by the variables that each of libfabric's providers declares
(`fi_info -e`).
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from mvstack.discover.machine import Library, Machine
from mvstack.discover.scheduler import slurm_mpi, slurm_version
from mvstack.discover.view import View
from mvstack.model.policy import External, Place
from mvstack.model.vocabulary import words

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

MODULES = {one: one for one in ("cma", "rdmacm", "xpmem", "knem", "cuda", "rocm")}
MODULES["gdrcopy"] = "cuda_gdrcopy"
"""Spack's variants of UCX and the module (libuct_<name>.so.0) that is there with them."""

TOOLS = {"libfabric": "fi_info", "ucx": "ucx_info"}
"""What lists the providers or transports that a library has."""

SILENT = ("cxi", "efa", "opx", "psm", "psm2", "psm3", "verbs", "usnic", "gni")
"""Providers that list themselves only where they find their adapter."""


def read_libraries(view: View, externals: dict[str, External], machine: Machine) -> None:
    """The packages that an MPI can be built on, and Slurm, which starts programs."""
    triple = TRIPLES.get(view.say("uname -m").strip(), "")
    found = [
        _look(view, name, row.seen, triple, machine) for name, row in externals.items() if row.seen
    ]
    found.append(_slurm(view, triple, machine))
    known = [library for library in found if library is not None]
    # Slurm starts programs without headers; on others nothing can be built without them
    machine.externals = [one for one in known if one.headers or one.name == "slurm"]
    machine.programs = [one for one in known if one not in machine.externals]


def _look(view: View, name: str, wanted: Place, triple: str, machine: Machine) -> Library | None:
    prefixes = [
        prefix
        for prefix in _prefixes(view, wanted, triple)
        if (not wanted.header and _version(view, wanted, prefix, triple))
        or any(
            wanted.header and view.exists(f"{one}/{wanted.header}")
            for one in _include(name, prefix, triple)
        )
    ]
    headers = bool(prefixes)
    if not headers and name in TOOLS:
        prefixes = [one for one in [above_bin(view.which(TOOLS[name]))] if one]
    if not prefixes:
        return None
    if len(prefixes) > 1:
        machine.note(f"{name} with headers below {', '.join(prefixes)}: the first")
    version = _version(view, wanted, prefixes[0], triple)
    library = Library(name=name, version=version, prefix=prefixes[0], headers=headers)
    _describe(view, library, triple)
    return library


def _prefixes(view: View, wanted: Place, triple: str) -> list[str]:
    """Where to look: beside the tools on PATH, in the package's own places, in the usual ones."""
    places = [above_bin(view.which(tool.split()[0])) for tool in wanted.tools]
    for place in wanted.prefixes:
        if place.endswith("/*"):
            base = place[:-2]
            places += [f"{base}/{name}" for name in reversed(view.names(base))]
        elif triple or "{triple}" not in place:
            places.append(place.format(triple=triple))
    places += ["/usr/local", "/usr"] if wanted.usual else []
    return list(dict.fromkeys(place for place in places if place))


def above_bin(path: str) -> str:
    """The prefix of a tool: what is above its bin folder; "" when there is none."""
    for parent in PurePosixPath(path).parents:
        if parent.name == "bin":
            return "/usr" if str(parent) == "/bin" else str(parent.parent)
    return ""


def _include(name: str, prefix: str, triple: str) -> list[str]:
    """The folders below ``prefix`` that may hold the package's header."""
    more = [f"{prefix}/targets/x86_64-linux/include"] if name == "cuda" else []
    return [f"{prefix}/include", *([f"{prefix}/include/{triple}"] if triple else []), *more]


def _libs(prefix: str, triple: str) -> list[str]:
    """The folders below ``prefix`` that may hold libraries."""
    return [f"{prefix}/lib64", f"{prefix}/lib", *([f"{prefix}/lib/{triple}"] if triple else [])]


def _version(view: View, wanted: Place, prefix: str, triple: str) -> str | None:
    """The version by pkg-config's file, by a tool of this prefix, or by the folder's name."""
    places = [*_libs(prefix, triple), f"{prefix}/share"]
    if triple and prefix.startswith(f"/usr/lib/{triple}/"):
        places.append(f"/usr/lib/{triple}")
    for place in places if wanted.pc else []:
        match = view.search(f"{place}/pkgconfig/{wanted.pc}.pc", rf"^[Vv]ersion[:=]\s*{VERSION}")
        if match:
            parts = match[1].split(".")
            # libibverbs 1.14.44.0 is of rdma-core 44.0: its build joins the two
            joined = wanted.pc == "libibverbs" and len(parts) == 4
            return ".".join(parts[2:]) if joined else match[1]
    for tool in wanted.tools:
        where = view.which(tool.split()[0])
        if where and above_bin(where) != prefix:
            continue
        match = re.search(rf"(?:V|[Vv]ersion:? |: |\s){VERSION}", view.say(tool))
        if match:
            return match[1]
    match = re.fullmatch(VERSION, PurePosixPath(prefix).name)
    return match[1] if match else None


def _describe(view: View, library: Library, triple: str) -> None:
    """libfabric's providers, UCX's transports and variants, by the tool of the same prefix."""
    tool = TOOLS.get(library.name)
    if tool is not None and above_bin(view.which(tool)) in ("", library.prefix):
        _ask(view, library, triple, tool)


def _ask(view: View, library: Library, triple: str, tool: str) -> None:
    if library.name == "libfabric":
        found, known = providers(view.say(f"{tool} -l")), words("provider")
        listed = [name for name in found if name in known]
        if more := [name for name in found if name not in known]:
            library.told = f"not known here: {', '.join(more)}"
        library.idle = silent_providers(view.say(f"{tool} -e"), listed)
        library.providers = [*listed, *library.idle]
        return
    folders = [f"{lib}/ucx" for lib in _libs(library.prefix, triple)]
    modules = [name for folder in folders for name in view.names(folder)]
    library.transports = transports(view.say(f"{tool} -d"))
    library.variants = ucx_variants(view.say(f"{tool} -b"), modules)


def library_at(name: str, prefix: str) -> Library | None:
    """What the libfabric or UCX below ``prefix`` has, by its own tool; None where that is not."""
    view, tool = View(Path("/")), f"{prefix}/bin/{TOOLS[name]}"
    library = Library(name=name, prefix=prefix)
    if not view.which(tool):
        return None
    _ask(view, library, TRIPLES.get(view.say("uname -m").strip(), ""), tool)
    return library


def providers(text: str) -> list[str]:
    """The providers that ``fi_info -l`` lists, without hooks; ofi_rxm is rxm."""
    names = re.findall(r"^([a-z0-9_]{1,30}):\s*$", text, re.M)
    kept = [name.removeprefix("ofi_") for name in names if not name.startswith("ofi_hook")]
    return list(dict.fromkeys(kept))


def transports(text: str) -> list[str]:
    """The transports that ``ucx_info -d`` finds usable on this machine."""
    return list(dict.fromkeys(re.findall(r"^#\s+Transport:\s+([\w-]{1,30})\s*$", text, re.M)))


def _slurm(view: View, triple: str, machine: Machine) -> Library | None:
    """Slurm where it starts programs, or where its headers are: an image is built without it."""
    tool = view.which("srun") or view.which("sinfo")
    prefix = above_bin(tool) or "/usr"
    headers = any(view.exists(f"{prefix}/include/slurm/{header}") for header in ("pmi2.h", "pmi.h"))
    starts = machine.scheduler == "slurm"
    if not starts and not (tool and headers):
        return None
    return Library(
        name="slurm",
        version=slurm_version(view.say("sinfo --version")) or None,
        prefix=prefix,
        headers=headers,
        mpi=(starts and slurm_mpi(view)) or slurm_modules(view.names, prefix, triple),
        idle=[] if starts else ["slurm"],
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
    for lib in _libs(prefix, triple):
        for folder in ("slurm-wlm", "slurm"):  # Debian's, and that of others
            plugins = [re.fullmatch(r"mpi_(\w+)\.so", name) for name in names(f"{lib}/{folder}")]
            if found := [match[1] for match in plugins if match]:
                return found
    return []
