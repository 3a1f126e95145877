"""PyFR, with the CUDA that a site or an image has."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, ask_not_for, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.py_pyfr.package import PyPyfr as BuiltinPyPyfr
except Exception as error:
    BuiltinPyPyfr = gone("py-pyfr", error)


class PyPyfr(Mend, BuiltinPyPyfr):
    """The flow solver PyFR, over MVAPICH.

    Builtin's recipe asks for cuda+allow-unsupported-compilers. That is a word for Spack's own
    table of compilers and no part of CUDA, so no CUDA that is there already has it, and where
    Spack may not build another (as beside MVAPICH-Plus, which is built for one CUDA) nothing can
    be solved. PyFR has its kernels compiled by NVRTC when it runs, and asks no compiler of
    Spack's. (spack-packages v2025.11.0.)
    """


ask_not_for("allow-unsupported-compilers", PyPyfr, "cuda")
