"""What UCX and libfabric were built with, which is more than what works on this very machine.

`ucx_info -d` and `fi_info` list what finds a device here; a login node, or one without its driver,
finds none. What the library holds is told by UCX's build configuration (`ucx_info -b`), by the
modules beside the library, and by the variables that each of libfabric's providers declares
(`fi_info -e`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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


def slurm_header_version(text: str) -> str:
    """``#define SLURM_VERSION_NUMBER 0x160508`` is 22.05.8; "" when it is not there."""
    match = re.search(r"^#define\s+SLURM_VERSION_NUMBER\s+0x([0-9a-fA-F]{6})\b", text, re.M)
    if not match:
        return ""
    major, minor, micro = (int(match[1][at : at + 2], 16) for at in (0, 2, 4))
    return f"{major}.{minor:02d}.{micro}"
