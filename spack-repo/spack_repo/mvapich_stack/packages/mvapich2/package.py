"""MVAPICH2 2.3.7, 2.3.7-1 and 2.3.7-2, built from source: the last MVAPICH2.

What its configure takes was read from 2.3.7; the two re-releases are taken to be the same. The
table is easyconfigs/easyblocks/mvapich_options.py, and a test compares. Beside this file:
words.py (the variants' words and configure's), configuring.py, finding.py and running.py.
"""

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.packages.mpich.package import MpichEnvironmentModifications

from spack.package import *

from .configuring import Configuring
from .finding import Finding
from .running import Running
from .words import DEVICES, FILE_SYSTEMS, VERBS


class Mvapich2(Configuring, Finding, Running, MpichEnvironmentModifications, AutotoolsPackage):
    """MPI over verbs (mrail), PSM, PSM2, libfabric or TCP by The Ohio State University.

    For fabrics that its own verbs device serves best: iWARP, Broadcom RoCE, Rockport,
    Slingshot 10, InfiniBand with old adapters. It is not developed further: elsewhere use mvapich.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = "https://mvapich.cse.ohio-state.edu/download/mvapich/mv2/mvapich2-2.3.7.tar.gz"
    list_url = "https://mvapich.cse.ohio-state.edu/downloads/"

    # COPYRIGHT of the sources: BSD for what was added to MPICH.
    license("BSD-3-Clause AND mpich2", checked_by="mvapich-stack")

    executables = ["^mpichversion$"]

    version("2.3.7-2", sha256="03fc160c81a1d522b1e7c6723841e27fcab04d527484e4242d3e66d7c5024205")
    version("2.3.7-1", sha256="fdd971cf36d6476d007b5d63d19414546ca8a2937b66886f24a1d9ca154634e4")
    version("2.3.7", sha256="c39a4492f4be50df6100785748ba2894e23ce450a94128181d516da5757751ae")

    provides("mpi@:3.1")

    variant(
        "fabrics",
        default="mrail",
        values=tuple(DEVICES),
        multi=False,
        description="Device: mrail drives verbs, nemesis is over TCP unless its network is named",
    )
    variant(
        "process_managers",
        values=disjoint_sets(
            ("auto",), ("slurm",), ("jsm",), ("flux",), ("hydra", "mpirun", "gforker", "remshell")
        )
        .with_error("auto, slurm, jsm, flux and none stand alone")
        .with_default("auto")
        .with_non_feature_values("auto"),
        description="What starts the ranks; auto: hydra and mpirun (mpirun_rsh), slurm: srun",
    )
    variant(
        "pmi_version",
        default="pmi2",
        values=("pmi1", "pmi2", "pmix"),
        multi=False,
        when="process_managers=slurm",
        description="What srun and the ranks talk",
    )
    variant(
        "threads",
        default="multiple",
        values=("single", "funneled", "serialized", "multiple"),
        multi=False,
        description="Highest level that MPI_Init_thread can give",
    )
    variant(
        "ch3_rank_bits",
        default="32",
        values=("16", "32"),
        multi=False,
        description="Bits of a rank's number; 16 is for jobs of up to 32768 ranks",
    )
    variant(
        "file_systems",
        values=disjoint_sets(("auto",), FILE_SYSTEMS)
        .with_error("auto and none stand alone")
        .with_default("auto")
        .with_non_feature_values("auto"),
        description="File systems that MPI-IO (ROMIO) knows; none: no MPI-IO",
    )
    variant(
        "error_checking",
        default="runtime",
        values=("no", "runtime", "all"),
        multi=False,
        description="Check of arguments: never, unless switched off when running, always",
    )
    variant("cuda", default=False, description="GPU buffers of CUDA; MV2_USE_CUDA=1 when running")
    variant(
        "cuda_kernels",
        default=True,
        when="+cuda",
        description="Kernels that pack datatypes on the GPU; without: --enable-cuda=basic",
    )
    variant("regcache", default=True, description="Keep memory registered for the next message")
    variant("hwlocv2", default=False, description="Of the two hwloc in the source version 2, not 1")
    variant("hwloc_graphics", default=False, description="hwloc looks for OpenCL, GL and NVML")
    variant("omb", default=True, description="Also the OSU Micro-Benchmarks of the source")
    variant("alloca", default=False, description="Temporary memory on the stack")
    variant("debug", default=False, description="Symbols, and nothing optimised away")
    variant("wrapperrpath", default=True, description="mpicc gives programs the library's path")

    with when("fabrics=mrail"):
        # LiMIC2 (a kernel module) and SHARP (of MLNX_OFED or HPC-X) are a site's own and no
        # packages: headers and library outside the compiler's path are given by the spec, e.g.
        # `mvapich2 +sharp cppflags=-I/opt/mellanox/sharp/include`.
        variant("cma", default=True, description="Copy between processes by CMA")
        variant("limic2", default=False, description="Copy between processes by LiMIC2")
        variant("rdma_cm", default=True, description="Connections by RDMA CM; iWARP needs it")
        variant("hybrid", default=True, description="Datagrams (UD) beside connections (RC)")
        variant("xrc", default=True, description="Shared receive queues (XRC) where verbs has them")
        variant("mcast", default=False, description="Collectives by InfiniBand's multicast")
        variant("sharp", default=False, description="Collectives in the switches (SHARP)")
        variant("torus3d", default=False, description="Routes for networks that are 3D tori")
        variant("hsam", default=False, description="Multi-rail: several paths around hot spots")
        variant("multi_subnet", default=False, description="Ranks on several InfiniBand subnets")
        variant("ibv_dlopen", default=True, description="Load verbs when a program starts")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("gmake", type="build")
    depends_on("findutils", type="build")
    depends_on("pkgconfig", type="build")
    # mpirun_rsh reads its host files by a grammar that is made when it is built.
    depends_on("bison", type="build")
    depends_on("flex", type="build")
    # Of the hwloc within, and of hydra's.
    depends_on("libpciaccess")
    depends_on("libxml2")
    depends_on("numactl")

    for _fabric in VERBS:
        depends_on("rdma-core", when=f"fabrics={_fabric}")
    depends_on("psm", when="fabrics=psm")
    depends_on("opa-psm2", when="fabrics=psm2")
    depends_on("libfabric", when="fabrics=nemesisofi")
    # CUDA 13 asks cuCtxCreate for one argument more.
    depends_on("cuda@:12", when="+cuda")
    depends_on("slurm", when="process_managers=slurm")
    depends_on("pmix", when="pmi_version=pmix")
    depends_on("pmix", when="process_managers=jsm")
    depends_on("flux-core", when="process_managers=flux")
    depends_on("lustre", when="file_systems=lustre")

    # --- what does not go together, and what to say instead -----------------------------------

    for _fabric in DEVICES:
        if _fabric != "mrail":
            conflicts(
                "+cuda",
                when=f"fabrics={_fabric}",
                msg=f"{_fabric} moves no GPU buffers: use fabrics=mrail, or mvapich +cuda",
            )
    conflicts("+multi_subnet", when="~rdma_cm", msg="subnets are joined by RDMA CM: use +rdma_cm")
    conflicts("%c=nvhpc", when="+cuda", msg="nvcc is given GCC's flags: use %gcc with +cuda")
    conflicts("target=aarch64:", when="fabrics=psm", msg="PSM is for x86_64: use fabrics=mrail")
    conflicts("target=aarch64:", when="fabrics=psm2", msg="PSM2 is for x86_64: use fabrics=mrail")
    conflicts("platform=darwin", msg="MVAPICH2 is for Linux: use mpich")
    conflicts("platform=windows", msg="MVAPICH2 is for Linux: use msmpi")

    filter_compiler_wrappers("mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", relative_root="bin")

    # --- compilers ----------------------------------------------------------------------------

    def flag_handler(self, name, flags):
        """Let GCC 14 and 15 take C that older ones took; through the wrappers, so mpicc is clean.

        The sources assign pointers of other types (mrail), call what they do not declare (psm),
        and define functions in the manner of K&R (the registration cache).
        """
        flags = list(flags or [])
        if name == "cflags":
            # configure keeps --enable-fast=O2 from src/mpl, which would be compiled with no -O.
            flags.append(f"-{self.optimisation}")
            if self.spec.satisfies("%c=gcc@15:"):
                # C23, its default, knows no functions without prototypes.
                flags.append("-std=gnu17")
            if self.spec.satisfies("%c=gcc@14:"):
                # Errors since GCC 14, warnings before.
                for one in (
                    "implicit-function-declaration",
                    "implicit-int",
                    "incompatible-pointer-types",
                    "int-conversion",
                    "return-mismatch",
                ):
                    flags.append(f"-Wno-error={one}")
        return flags, None, None

    def setup_build_environment(self, env):
        """Let gfortran 10 and newer take the argument lists of mpif.h, in both kinds of source."""
        super().setup_build_environment(env)
        if self.spec.satisfies("%fortran=gcc@10:"):
            for name in ("FFLAGS", "FCFLAGS"):
                env.set(name, "-fallow-argument-mismatch")

    # --- building -----------------------------------------------------------------------------

    def patch(self):
        """Skip an attribute whose key is gone, where a communicator is freed, instead of crashing.

        Reported to the makers' list in January 2023 (mvapich-discuss, MPIR_Attr_delete_list).
        """
        code = join_path("src", "mpi", "attr", "attrutil.c")
        filter_file(
            r"^(\s*)(mpi_errno = MPIR_Call_attr_delete\( handle, p \);)",
            # Spack puts groups in and nothing else: the ends of lines must be real ones.
            "\\1if (!p->keyval) {\n"
            "\\1    MPIU_Handle_obj_free( &MPID_Attr_mem, p );\n"
            "\\1    p = new_p;\n"
            "\\1    continue;\n"
            "\\1}\n"
            "\\1\\2",
            code,
        )

    @run_before("configure")
    def every_option_is_known(self):
        """Refuse what no configure script of this source takes: it would be ignored silently."""
        unknown = self.unknown_to(self.stage.source_path)
        if unknown:
            raise InstallError(
                f"configure of {self.spec.format('{name}@{version}')} does not know "
                f"{', '.join(unknown)}: the recipe and this source do not fit"
            )

    @run_after("configure")
    def every_part_is_optimised(self):
        """Refuse Makefiles without the -O level that was asked for."""
        wrong = self.unoptimised(self.stage.source_path)
        if wrong:
            raise InstallError(f"asked for -{self.optimisation}", "\n".join(wrong))
