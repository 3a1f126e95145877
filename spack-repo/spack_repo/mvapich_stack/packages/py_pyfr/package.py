"""PyFR, with the CUDA that a site or an image has."""

from spack_repo.builtin.packages.py_pyfr.package import PyPyfr as BuiltinPyPyfr

from spack.package import *

GONE = "allow-unsupported-compilers"


class PyPyfr(BuiltinPyPyfr):
    """The flow solver PyFR, over MVAPICH.

    Builtin's recipe asks for cuda+allow-unsupported-compilers. That is a word for Spack's own table
    of compilers and no part of CUDA, so no CUDA that is there already has it, and where Spack may
    not build another (as beside MVAPICH-Plus, which is built for one CUDA) nothing can be solved.
    PyFR has its kernels compiled by NVRTC when it runs, and asks no compiler of Spack's.
    (spack-packages v2025.11.0.)
    """


# A constraint cannot be taken back by another one: builtin's is replaced by itself without it.
for _needed in PyPyfr.dependencies.values():
    if "cuda" in _needed and GONE in _needed["cuda"].spec.variants:
        _needed["cuda"].spec = _needed["cuda"].spec.copy()
        del _needed["cuda"].spec.variants[GONE]
