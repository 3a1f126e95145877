"""What the MPI easyblock tells configure of GPUs, and what it takes for a GPU that got lost."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "easyconfigs" / "easyblocks"))

import mvapich_options
from mvapich_gpu import (
    compiling_with_cuda_13,
    cuda_version,
    gpu_options,
    has_driver,
    lost_gpu,
    stubs,
    ucx_without,
)

OPTIONS = mvapich_options.options_for("MVAPICH", "4.0")
MPL = "src/mpl/include/mplconfig.h"
YAKSA = "modules/yaksa/src/frontend/include/yaksa_config.h"


def toolkit(folder, version):
    (folder / "include").mkdir()
    (folder / "include" / "cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
    (folder / "lib64" / "stubs").mkdir(parents=True)
    return str(folder)


@pytest.mark.parametrize(
    ("version", "arch", "wanted"),
    [
        (13000, "90", ["--with-cuda-sm=90"]),
        (12090, "70,90", ["--with-cuda-sm=70,90"]),
        (12090, None, []),
        # configure's own choice begins with 52, which nvcc 13 refuses
        (13010, None, ["--with-cuda-sm=75,80,90,100,120"]),
    ],
)
def test_kernels_are_for_the_gpus_of_the_partition(tmp_path, version, arch, wanted):
    root = toolkit(tmp_path, version)
    line = gpu_options({"gpu": "cuda", "gpu_root": root, "gpu_arch": arch, "omb": False}, OPTIONS)
    assert line == [f"--with-cuda={root}", "--without-hip", "--without-ze", *wanted]
    assert cuda_version(root) == version // 1000


def test_versions_without_the_option_are_not_given_it(tmp_path):
    options = mvapich_options.options_for("MVAPICH2", "2.3.7")
    line = gpu_options({"gpu": "cuda", "gpu_root": "/c", "gpu_arch": "80", "omb": True}, options)
    assert line == ["--with-cuda=/c", "--enable-cuda"]


def test_the_benchmarks_measure_gpu_buffers():
    """Their probes fail wherever CUDA is, so what these would find is said (OMB 7.5)."""
    params = {"gpu": "cuda", "gpu_root": "/c", "gpu_arch": "80", "omb": True}
    line = gpu_options(params, OPTIONS)
    assert "--enable-cuda=basic" in line and "ac_cv_search_cudaFree=-lcudart" in line
    assert "--enable-cuda=basic" not in gpu_options(params | {"gpu": "rocm"}, OPTIONS)
    assert "--enable-cuda=basic" not in gpu_options(params | {"omb": False}, OPTIONS)


def test_a_gpu_that_configure_went_on_without_is_named(tmp_path):
    for file, text in ((MPL, "#define MPL_HAVE_CUDA 1\n"), (YAKSA, "/* #undef HAVE_CUDA */\n")):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    assert lost_gpu(tmp_path, "cuda") == [f"{YAKSA} defines no HAVE_CUDA"]
    (tmp_path / YAKSA).write_text("#define HAVE_CUDA 1\n")
    assert lost_gpu(tmp_path, "cuda") == []
    assert lost_gpu(tmp_path, "rocm") == []  # a source that does not ask for it, as MVAPICH2's
    (tmp_path / MPL).write_text("/* #undef HAVE_HIP */\n")  # as its configure writes it
    assert lost_gpu(tmp_path, "rocm") == [f"{MPL} defines no MPL_HAVE_HIP"]


def test_the_compute_mode_is_asked_by_a_call_that_every_cuda_has():
    text = (
        "struct cudaDeviceProp prop;\ncerr = cudaGetDeviceProperties(&prop, i);\nprop.computeMode"
    )
    mended = compiling_with_cuda_13(text)
    assert "cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, i)" in mended
    assert "prop" not in mended
    assert compiling_with_cuda_13(mended) == mended


def test_the_toolkits_stand_in_serves_where_there_is_no_driver(tmp_path):
    assert stubs(toolkit(tmp_path, 13000)) == str(tmp_path / "lib64" / "stubs")
    assert stubs(str(tmp_path / "none")) is None
    assert has_driver("none") and has_driver("rocm")


def test_a_ucx_that_knows_no_gpu_is_named_before_anything_is_built(tmp_path):
    """Debian's and Ubuntu's know none: the MPI would be built for 18 minutes, and end in checks."""
    (tmp_path / "lib" / "ucx").mkdir(parents=True)
    folders = [tmp_path / "lib64", tmp_path / "lib"]
    assert ucx_without("cuda", folders) is None  # no UCX: configure says so
    (tmp_path / "lib" / "libucp.so.0").touch()
    assert ucx_without("cuda", folders) == str(tmp_path / "lib")
    (tmp_path / "lib" / "ucx" / "libuct_cuda.so.0").touch()
    assert ucx_without("cuda", folders) is None
    assert ucx_without("rocm", folders) == str(tmp_path / "lib")
