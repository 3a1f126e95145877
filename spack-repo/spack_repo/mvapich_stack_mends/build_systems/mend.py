"""What the mends share: how they stand on builtin's recipes, and what they know of MVAPICH.

Recipes of builtin (v2025.11.0) that name an MPI and were left alone, each with the reason:

abyss            without --enable-mpich its configure links -lmpi, which MVAPICH has
cbtf-krell       its own CMake files know MVAPICH2 at most; nothing here could make it know more
charmpp          backend=mpi takes headers and libraries of any MPI; who wants it asks for it
                 (namd)
dbcsr            its rule for MPICH 4.1 is of no use: MVAPICH 4 takes TYPE(C_PTR) (see cp2k)
cloverleaf-ref, gpcnet, hpl, intel-mpi-benchmarks, ior, minife, neuron, npb, raxml, raxml-ng
                 call the MPI's own compiler wrappers, and ask nothing of the MPI
exabayes         its conflict is with MVAPICH2; it calls the MPI's own compiler wrappers
gromacs          asks MPIX_Query_cuda_support, which MVAPICH 4 declares in mpi.h: it finds it there
hdf5             asks for mpich+fortran; mvapich has Fortran unless it is switched off, and to
                 stand in for hdf5 would make every public binary of it useless
hermes           +mpiio ends with an error; what its -DHERMES_MPICH needs was not seen
hpx5             --with-mpi=system tries mpi.h and -lmpi, which is right
hpcc, parallel-netcdf
                 `--test` starts them with mpirun, which an MVAPICH for srun has not: go without
mapl, sirius, nlcglib, dla-future, nvpl-scalapack, intel-oneapi-mkl, openfoam
                 name MVAPICH, or treat what they do not know rightly
pflogger         @:1.10 conflicts with MPICH 4; the same of MVAPICH 4 was not seen
quantum-espresso, abinit
                 with MKL they take its BLACS for Intel's MPI, which is that of every MPICH
rose             +mvapich2_backend is MVAPICH2 by name; without it there is no MPI in it
seissol, tandem, beatnik
                 +rocm does not ask for mvapich+rocm: ask for both
wps              calls mpif90 and mpicc without such options
wrf              its configure drops -f90= and -cc= where the wrappers do not take them (tried: the
                 one of February 2026 with MVAPICH 4.0, which takes -cc= alone)
"""

import hashlib
import sys

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

PRODUCTS = ("mvapich", "mvapich-plus", "mvapich2", "mvapich2-gdr", "mvapich2-x")

#: AMD's GPUs, in the words of the variant `amdgpu_target` that builtin gives every ROCm package:
#: one that asks for mvapich+rocm must say for which of them, as there is no default.
try:
    from spack_repo.builtin.build_systems.rocm import ROCmPackage

    AMD_GPUS = ROCmPackage.amdgpu_targets
except (ImportError, AttributeError):  # it moved: these mends ask for no GPU then, and load
    AMD_GPUS = ()


class Mend(PackageBase):
    """A recipe that inherits builtin's; its hash is of all that it inherits."""

    def content_hash(self, content=None):
        """Spack's hash, of our package.py alone, with builtin's recipe and this file."""
        found = hashlib.sha256(super().content_hash(content).encode())
        for one in type(self).__mro__:
            shared = one.__module__.startswith("spack_repo.builtin.build_systems.")
            if one.__module__.startswith("spack_repo.") and not shared:
                with open(sys.modules[one.__module__].__file__, "rb") as source:
                    found.update(source.read())
        return found.hexdigest()


def gone(name, error):
    """What stands for builtin's class of ``name`` where it cannot be loaded.

    One recipe that does not load stops Spack for every package. This one loads, and is refused.
    """
    message = f"mvapich_stack_mends cannot mend builtin's {name} ({type(error).__name__}: {error})"
    tty.warn(f"{message}: take an update of it, or leave it out (spack repo remove)")

    class Gone(Package):
        """Nothing of this can be built."""

        version("0")
        conflicts("@0", msg=f"{message}: use builtin.{name}, or take an update of the mends")

    return Gone


def builders(package):
    """The builders beside a class of builtin's, by name.

    Spack looks for them in the module of the package: without these names it would be built by the
    generic ones.
    """
    beside = vars(sys.modules[package.__module__])
    return {name: one for name, one in beside.items() if name.endswith("Builder")}


def mvapich(spec):
    """The MVAPICH that gives the concrete ``spec`` its MPI; None where it has another, or none."""
    if "mpi" not in spec:
        return None
    provider = spec["mpi"]
    return provider if provider.name in PRODUCTS else None


def needs_gpu_aware_mpi():
    """Directives, for the body of a recipe: with +cuda or +rocm its MVAPICH takes GPU buffers."""
    depends_on("mvapich +cuda", when="+cuda ^[virtuals=mpi] mvapich")
    depends_on("mvapich-plus gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich-plus")
    depends_on("mvapich2-gdr gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich2-gdr")
    for gpu in AMD_GPUS:
        depends_on(
            f"mvapich +rocm amdgpu_target={gpu}",
            when=f"+rocm amdgpu_target={gpu} ^[virtuals=mpi] mvapich",
        )
    depends_on("mvapich-plus +rocm", when="+rocm ^[virtuals=mpi] mvapich-plus")
    depends_on("mvapich2-gdr gpu=rocm", when="+rocm ^[virtuals=mpi] mvapich2-gdr")


def ask_not_for(variant, package, dependency):
    """Take ``variant`` out of what the class ``package`` asks of ``dependency``.

    No directive of a class that inherits can take back a constraint of builtin's: it is replaced
    by itself without the variant.
    """
    for needed in package.dependencies.values():
        if dependency in needed and variant in needed[dependency].spec.variants:
            needed[dependency].spec = needed[dependency].spec.copy()
            del needed[dependency].spec.variants[variant]


def admit(package, condition, others):
    """Let a requirement of ``package`` be met by ``others``, too: a second one cannot widen it."""
    rows = package.requirements.get(Spec(condition), [])
    if not rows:
        tty.warn(f"{package.__module__}: builtin requires nothing of {condition}: mend it no more")
    widened = [Spec(one) for one in others]
    rows[:] = [
        (allowed + tuple(one for one in widened if one not in allowed), policy, message)
        for allowed, policy, message in rows
    ]


def takes_gpu_buffers(spec):
    """Whether the concrete ``spec`` has its MPI from an MVAPICH that takes buffers on the GPU."""
    provider = mvapich(spec)
    if provider is None:
        return False
    return any(provider.satisfies(word) for word in ("+cuda", "+rocm", "gpu=cuda", "gpu=rocm"))
