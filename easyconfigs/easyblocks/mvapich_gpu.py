"""GPU buffers in an MVAPICH or MPICH of source: what configure is told, and whether it listened.

configure goes on without a GPU whose toolkit it cannot use. `lost_gpu` reads what it found.
"""

import ctypes
import os
import re
from pathlib import Path

FLAGS = {"cuda": "--with-cuda", "rocm": "--with-hip", "ze": "--with-ze"}

# The option that names the processors of the GPUs to write kernels for.
PROCESSORS = {"cuda": "--with-cuda-sm", "rocm": "--with-hip-sm"}

# What configure takes for CUDA when none is named has processors that CUDA 13 dropped.
SINCE_CUDA_13 = "75,80,90,100,120"

# The driver's own library, which a machine that builds need not have.
DRIVERS = {"cuda": "libcuda.so.1"}

# OMB's configure compiles C++ probes as C, so it finds no CUDA library. We give it the answers.
BENCHMARKS_WITH_CUDA = (
    "--enable-cuda=basic",
    "ac_cv_search_cuPointerGetAttribute=-lcuda",
    "ac_cv_search_cudaFree=-lcudart",
)

# A part, its header, and the word in it that proves the GPU; {} is cuda, hip or ze in capitals.
PROOFS = (
    ("src/mpl/include/mplconfig.h", "MPL_HAVE_{}"),
    ("modules/yaksa/src/frontend/include/yaksa_config.h", "HAVE_{}"),
)

# cudaDeviceProp.computeMode is gone from CUDA 13; the attribute is in every CUDA.
INIT_HOOKS = "modules/yaksa/src/backend/cuda/hooks/yaksuri_cuda_init_hooks.c"
FOR_CUDA_13 = (
    ("struct cudaDeviceProp prop;", "int mode = -1;"),
    (
        "cudaGetDeviceProperties(&prop, i)",
        "cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, i)",
    ),
    ("prop.computeMode", "mode"),
)


def cuda_version(root):
    """First number of the CUDA in `root`; 0 when its header is not there or says none."""
    header = Path(root or "/usr", "include", "cuda.h")
    text = header.read_text(encoding="utf-8", errors="replace") if header.is_file() else ""
    found = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.M)
    return int(found[1]) // 1000 if found else 0


def gpu_options(params, options):
    """The options that turn one kind of GPU on and every other off (off is not the default)."""
    gpu, root = params["gpu"], params["gpu_root"]
    found = []
    for word, flag in FLAGS.items():
        if flag not in options.flags:
            continue
        if word != gpu:
            found.append(flag.replace("--with-", "--without-"))
        else:
            found.append(f"{flag}={root}" if root else flag)
    if gpu == "cuda" and "--enable-cuda" in options.flags:
        found.append("--enable-cuda")
    elif gpu == "cuda" and params["omb"] and "--disable-omb" in options.flags:
        found += BENCHMARKS_WITH_CUDA
    option = PROCESSORS.get(gpu)
    if option in options.flags:
        newest = gpu == "cuda" and cuda_version(root) >= 13
        if processors := params["gpu_arch"] or (SINCE_CUDA_13 if newest else ""):
            found.append(f"{option}={processors}")
    return found


def compiling_with_cuda_13(text):
    """yaksuri_cuda_init_hooks.c of MVAPICH 4.x so that CUDA 13, and any other, compiles it."""
    for old, new in FOR_CUDA_13:
        text = text.replace(old, new)
    return text


def lost_gpu(source, gpu):
    """Which parts below `source` were configured without `gpu` (cuda, rocm, ze), as texts."""
    name = FLAGS[gpu].removeprefix("--with-").upper()
    found = []
    for header, word in PROOFS:
        file, wanted = Path(source, header), word.format(name)
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            asked = f"HAVE_{name}" in text  # MVAPICH2's mpl knows no GPU
            if asked and not re.search(rf"^#define {wanted} 1$", text, re.M):
                found.append(f"{header} defines no {wanted}")
    return found


def ucx_without(gpu, folders):
    """The first of `folders` that has UCX, where none has its module for `gpu`; else None."""
    found = [Path(one) for one in folders if any(Path(one).glob("libucp.so*"))]
    known = any(next((one / "ucx").glob(f"libuct_{gpu}.so*"), None) for one in found)
    return None if known or not found else str(found[0])


def has_driver(gpu):
    """Whether programs of an MPI for `gpu` start here: its driver's library, or a stand-in, is."""
    name = DRIVERS.get(gpu)
    folders = os.getenv("LD_LIBRARY_PATH", "").split(":")
    if name is None or any(Path(one, name).exists() for one in folders if one):
        return True
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def stubs(root):
    """The folder with the toolkit's stand-in for the driver's library; None where there is none."""
    folder = Path(root or "/usr/local/cuda", "lib64", "stubs")
    return str(folder) if folder.is_dir() else None


def without_driver(root, folder):
    """What the environment of a machine without CUDA's driver needs for programs to start there.

    A link in `folder` to the stand-in of the toolkit in `root`; and no GPUs: the stand-in has none,
    which MPI_Init takes for an error. {} where the toolkit has no stand-in.
    """
    name = DRIVERS["cuda"]
    if (found := stubs(root)) is None:
        return {}
    Path(folder, name).symlink_to(Path(found, "libcuda.so"))
    path = [folder, *filter(None, [os.getenv("LD_LIBRARY_PATH")])]
    return {"LD_LIBRARY_PATH": ":".join(path), "MPIR_CVAR_ENABLE_GPU": "0"}
