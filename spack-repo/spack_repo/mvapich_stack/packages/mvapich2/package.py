"""MVAPICH2 2.3.7, 2.3.7-1 and 2.3.7-2, built from source: the last MVAPICH2. And 2.3.4 of 2020.

Builtin's recipe also has 2.1 to 2.3.6 (`spack install builtin.mvapich2@2.3.6`): nothing here runs
them, and their options differ. Its patch for Torque is for a file that only a found libtorque
brings in; here none is found (setup_build_environment).

What its configure takes was read from 2.3.7 and 2.3.4; the two re-releases are taken to be the
same as 2.3.7. The table is easyconfigs/easyblocks/mvapich_options.py, and a test compares. All
that decides a build stands in this file: Spack's package hash is of it alone.
"""

import os
import re

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.mvapich_stack.build_systems.mpich_based import MpichBased
from spack_repo.mvapich_stack.build_systems.mpich_checked import MpichChecked
from spack_repo.mvapich_stack.build_systems.mvapich2_found import Mvapich2Found

from spack.package import *

# Words of the recipe's variants and what configure of MVAPICH2 2.3.7 calls them: read from
# configure.ac and the subconfigure.m4 files of tag v2.3.7 of the public import.

# Variant `fabrics` → --with-device.
DEVICES = {
    "mrail": "ch3:mrail",
    "psm": "ch3:psm",
    "psm2": "ch3:psm",
    "sock": "ch3:sock",
    "nemesis": "ch3:nemesis",
    "nemesistcp": "ch3:nemesis:tcp",
    "nemesisib": "ch3:nemesis:ib",
    "nemesisibtcp": "ch3:nemesis:ib,tcp",
    "nemesistcpib": "ch3:nemesis:tcp,ib",
    "nemesisofi": "ch3:nemesis:ofi",
}
VERBS = ("mrail", "nemesisib", "nemesisibtcp", "nemesistcpib")

# Process managers of the source that may be built together; the first brings `mpiexec`.
# mpirun is the folder of mpirun_rsh.
MANAGERS = ("hydra", "mpirun", "gforker", "remshell")

FILE_SYSTEMS = (
    *("gpfs", "gridftp", "hfs", "ime", "lustre", "nfs", "panfs", "pfs", "piofs", "pvfs", "pvfs2"),
    *("sfs", "testfs", "ufs", "xfs", "zoidfs"),
)
# Variants of fabrics=mrail → the option for "on" and for "off"; "" where saying nothing is that.
# Four options do the same however they are spelled: any --enable-hsam or --disable-hsam switches
# hot-spot avoidance on, any --enable-xrc or --disable-xrc switches XRC off, any
# --enable-ibv-dlopen or --disable-ibv-dlopen links libibverbs, any --enable-omb or --disable-omb
# leaves the benchmarks out (configure.ac and mrail's subconfigure.m4).
MRAIL = {
    "cma": ("", "--without-cma"),
    "hsam": ("--enable-hsam", ""),
    "hybrid": ("--enable-hybrid", "--disable-hybrid"),
    "ibv_dlopen": ("", "--disable-ibv-dlopen"),
    "limic2": ("--with-limic2", "--without-limic2"),
    "mcast": ("--enable-mcast", "--disable-mcast"),
    "multi_subnet": ("--enable-multi-subnet", "--disable-multi-subnet"),
    "rdma_cm": ("--enable-rdma-cm", "--disable-rdma-cm"),
    "sharp": ("--enable-sharp", "--disable-sharp"),
    "torus3d": ("--enable-3dtorus-support", "--disable-3dtorus-support"),
    "xrc": ("", "--disable-xrc"),
}

# Compilers that take for errors what older ones warned of. Those over Clang 16 were not tried.
STRICT = ("gcc@14:", "llvm@16:", "aocc@4.1:", "intel-oneapi-compilers@2024:")
# Folders whose configure scripts belong to tests, or to the kernel module.
FOREIGN = ("test", "maint", "limic2-0.5.6", "osu_benchmarks")


class Mvapich2(MpichBased, MpichChecked, Mvapich2Found, AutotoolsPackage):
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
    calls_itself = "MVAPICH2"
    known_file_systems = FILE_SYSTEMS
    devices, mrail_options = DEVICES, MRAIL

    version("2.3.7-2", sha256="03fc160c81a1d522b1e7c6723841e27fcab04d527484e4242d3e66d7c5024205")
    version("2.3.7-1", sha256="fdd971cf36d6476d007b5d63d19414546ca8a2937b66886f24a1d9ca154634e4")
    version("2.3.7", sha256="c39a4492f4be50df6100785748ba2894e23ce450a94128181d516da5757751ae")
    # For the release 2020.08 alone. The hash is builtin's.
    version("2.3.4", sha256="7226a45c7c98333c8e5d2888119cce186199b430c13b7b1dca1769909e68ea7a")

    provides("mpi@:3.1")

    variant(
        "fabrics",
        default="mrail",
        values=tuple(DEVICES),
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
        when="process_managers=slurm",
        description="What srun and the ranks talk",
    )
    variant(
        "threads",
        default="multiple",
        values=("single", "funneled", "serialized", "multiple"),
        description="Highest level that MPI_Init_thread can give",
    )
    variant(
        "ch3_rank_bits",
        default="32",
        values=("16", "32"),
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
    variant("hwlocv2", default=False, description="Build with hwloc 2, not 1: the source has both")
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
        variant(
            "xrc", default=True, description="Shared receive queues (XRC) where verbs has them"
        )
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
    depends_on("cuda", when="+cuda")
    conflicts(
        "^cuda@13:",
        when="+cuda",
        msg="CUDA 13 asks cuCtxCreate for one argument more: use cuda@:12, or mvapich +cuda",
    )
    depends_on("slurm", when="process_managers=slurm")
    for _without in ("^slurm ~pmix", "^slurm@:21"):  # older ones have no such variant
        conflicts(
            _without,
            when="process_managers=slurm pmi_version=pmix",
            msg="srun serves no PMIx without it: use slurm@22-05: +pmix, or pmi_version=pmi2",
        )
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
    for _newer in ("+hwlocv2", "+hsam", "~ibv_dlopen", "~omb", "file_systems=ime"):
        conflicts(_newer, when="@2.3.4", msg=f"2.3.4 has no choice of {_newer}: use @2.3.7-2")
    conflicts("%c=nvhpc", when="+cuda", msg="nvcc is given GCC's flags: use %gcc with +cuda")
    conflicts("target=aarch64:", when="fabrics=psm", msg="PSM is for x86_64: use fabrics=mrail")
    conflicts("target=aarch64:", when="fabrics=psm2", msg="PSM2 is for x86_64: use fabrics=mrail")
    conflicts("platform=darwin", msg="MVAPICH2 is for Linux: use mpich")
    conflicts("platform=windows", msg="MVAPICH2 is for Linux: use msmpi")

    filter_compiler_wrappers("mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", relative_root="bin")

    # --- compilers ----------------------------------------------------------------------------

    @property
    def optimisation(self):
        """The level of the whole library: that of the user's cflags, or O2; O0 with +debug."""
        asked = [flag[1:] for flag in self.spec.compiler_flags.get("cflags", ())]
        levels = [flag for flag in asked if re.fullmatch("O([0-3gsz]|fast)", flag)]
        return levels[-1] if levels else ("O0" if self.spec.satisfies("+debug") else "O2")

    def flag_handler(self, name, flags):
        """Let GCC 14 and 15 take C that older ones took; through the wrappers, so mpicc is clean.

        The sources assign pointers of other types (mrail), call what they do not declare (psm),
        and define functions in the manner of K&R (the registration cache).
        """
        flags = list(flags or [])
        if name == "cflags":
            # configure keeps --enable-fast=O2 from src/mpl, which would be compiled with no -O.
            # GCC leaves the loops of reductions as they are at O2, unless that is said.
            flags += [f"-{self.optimisation}", "-ftree-vectorize"]
            if self.spec.satisfies("%c=gcc@15:"):
                # C23, its default, knows no functions without prototypes.
                flags.append("-std=gnu17")
            if any(self.spec.satisfies(f"%c={one}") for one in STRICT):
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
        """Let gfortran 10 and newer take mpif.h's argument lists; take nothing of the host."""
        for name in ("F90", "F90FLAGS"):
            env.unset(name)  # configure stops where they are set
        # HCOLL and PBS's tm of the host are taken where they are found; --without-… is not heard.
        env.set("ac_cv_lib_hcoll_hcoll_init", "no")
        env.set("ac_cv_header_tm_h", "no")
        if self.spec.satisfies("%fortran=gcc@10:"):
            flags = ["-fallow-argument-mismatch"]
            if self.spec.satisfies("%fortran=gcc@14:"):
                # A small array is read when MPI_Irecv returns, and not after MPI_Wait (PR 120958).
                flags.append("-fno-tree-sra")
            for name in ("FFLAGS", "FCFLAGS"):
                env.set(name, " ".join(flags))

    # --- building -----------------------------------------------------------------------------

    def patch(self):
        """Skip an attribute whose key is gone, where a communicator is freed, instead of crashing.

        Reported to the makers' list in January 2023 (mvapich-discuss, MPIR_Attr_delete_list). And
        let nemesis over TCP compile: 2.3.7 and 2.3.7-1 name a variable that is not there, leave
        the loop that asks for a host's address after one try, and print an address wrongly.
        """
        if self.spec.satisfies("@2.3.7:"):
            tcp = "src/mpid/ch3/channels/nemesis/netmod/tcp/tcp_"
            for file, old, new in (
                ("init.c", "mpierrno != 0", "mpi_errno != 0"),
                ("init.c", "if (!mpi_errno);", "if (!mpi_errno)"),
                ("getip.c", "char* ip[INET_ADDRSTRLEN]", "char ip[INET_ADDRSTRLEN]"),
                ("getip.c", "inet_ntop(AF_INET, addr,", "inet_ntop(AF_INET, &addr,"),
            ):
                filter_file(old, new, tcp + file, string=True)
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

    @property
    def fabric(self):
        """The value of the variant `fabrics`."""
        return self.spec.variants["fabrics"].value

    @property
    def managers(self):
        """Process managers of the source to build, in configure's words; the first is primary."""
        named = self.spec.variants["process_managers"].value
        if "auto" in named:
            return ["hydra", "mpirun"]
        if named in (("slurm",), ("jsm",), ("flux",)):
            return list(named)
        return [one for one in MANAGERS if one in named]

    def library_folder(self, name, library):
        """Where a dependency keeps `library`; its lib where it lies on the compiler's own path."""
        for folder in ("lib64", "lib"):
            path = join_path(self.spec[name].prefix, folder)
            if os.path.exists(join_path(path, library)):
                return path
        return self.spec[name].prefix.lib

    def launcher_args(self):
        """--with-pm and the PMI that goes with it."""
        spec = self.spec
        args = ["--with-pm=" + (":".join(self.managers) or "no")]
        if spec.satisfies("process_managers=slurm"):
            pmi = spec.variants["pmi_version"].value
            args += [f"--with-slurm={spec['slurm'].prefix}", f"--with-pmi={pmi}"]
        elif spec.satisfies("process_managers=jsm"):
            args.append("--with-pmi=pmix")
        elif spec.satisfies("process_managers=flux"):
            args += [f"--with-flux={spec['flux-core'].prefix}", "--with-pmi=simple"]
        else:
            args.append("--with-pmi=simple")
        if "--with-pmi=pmix" in args:
            args.append(f"--with-pmix={spec['pmix'].prefix}")
        return args

    def device_args(self):
        """--with-device, and where the libraries that drive it are."""
        spec, fabric = self.spec, self.fabric
        args = [f"--with-device={DEVICES[fabric]}"]
        if fabric.startswith("nemesis"):
            # Over the network within a host too: its queue in shared memory hangs once it is full,
            # and under mpirun_rsh it does not find who is on a host (docs/upstream.md).
            args.append("--enable-nemesis-dbg-nolocal")
        if fabric == "psm":
            args.append(f"--with-psm={spec['psm'].prefix}")
        elif fabric == "psm2":
            args.append(f"--with-psm2={spec['opa-psm2'].prefix}")
        elif fabric == "nemesisofi":
            args.append(f"--with-ofi={spec['libfabric'].prefix}")
        elif fabric == "mrail":
            # Said in full: configure would otherwise put /usr/local/ofed before Spack's.
            folder = self.library_folder("rdma-core", "libibverbs.so")
            args += [
                "--with-rdma=gen2",
                f"--with-ib-include={spec['rdma-core'].prefix.include}",
                f"--with-ib-libpath={folder}",
                *self.mrail_args(),
            ]
        elif "ib" in fabric.removeprefix("nemesis"):
            args.append(f"--with-ibverbs={spec['rdma-core'].prefix}")
        return args

    def mrail_args(self):
        """Options that the device mrail alone reads."""
        spec = self.spec
        args = [MRAIL[name][0 if spec.satisfies("+" + name) else 1] for name in MRAIL]
        if spec.satisfies("+cuda"):
            # basic leaves out the kernels that pack on the GPU, and needs no nvcc.
            kernels = "yes" if spec.satisfies("+cuda_kernels") else "basic"
            args += [f"--enable-cuda={kernels}", f"--with-cuda={spec['cuda'].prefix}"]
        else:
            args.append("--disable-cuda")
        return [one for one in args if one]

    def hwloc_args(self):
        """For the hwloc within: v1 or v2, and no library of the host that the spec lacks."""
        args = ["--disable-libudev"]
        if not self.spec.satisfies("@2.3.4"):  # which has v1 alone
            args.append("--with-hwloc=" + ("v2" if self.spec.satisfies("+hwlocv2") else "v1"))
        if self.spec.satisfies("~hwloc_graphics"):
            args += ["--disable-opencl", "--disable-gl", "--disable-nvml"]
        return args

    def configure_args(self):
        """Every option that configure is given."""
        spec = self.spec
        systems = [one for one in FILE_SYSTEMS if spec.satisfies(f"file_systems={one}")]
        io = ["--disable-romio" if spec.satisfies("file_systems=none") else "--enable-romio"]
        if systems:
            io.append("--with-file-system=" + "+".join(systems))
        debug = spec.satisfies("+debug")
        args = [
            *self.device_args(),
            *self.launcher_args(),
            *self.hwloc_args(),
            "--enable-shared",
            "--disable-static",
            "--disable-silent-rules",
            # mpicc leaves to the linker whether a program gets DT_RPATH or DT_RUNPATH.
            "--disable-new-dtags",
            "--enable-cxx",
            "--enable-fortran=all",
            *io,
            "--enable-threads=" + spec.variants["threads"].value,
            "--with-ch3-rank-bits=" + spec.variants["ch3_rank_bits"].value,
            "--enable-error-checking=" + spec.variants["error_checking"].value,
            # The level is always said: `ndebug` alone would leave out any -O.
            "--enable-fast=" + self.optimisation + ("" if debug else ",ndebug"),
            *(["--enable-g=dbg", "--enable-debuginfo"] if debug else []),
            "--enable-wrapper-rpath=" + ("yes" if spec.satisfies("+wrapperrpath") else "no"),
            "--enable-alloca" if spec.satisfies("+alloca") else "--disable-alloca",
            # Read by the devices that register memory, and known to all.
            f"--{'enable' if spec.satisfies('+regcache') else 'disable'}-registration-cache",
        ]
        if spec.satisfies("~omb"):
            args.append("--disable-omb")
        return args

    @run_before("configure")
    def every_option_is_known(self):
        """Refuse what no configure script of this source takes: it would be ignored silently."""
        self.refuse_unknown_options(FOREIGN)

    @run_after("configure")
    def every_part_is_optimised(self):
        """Refuse Makefiles without the -O level that was asked for."""
        # Not src/mpl: its Makefile says no level, the compiler wrapper adds it (flag_handler).
        self.refuse_unoptimised((".", "src/mpi/romio", "src/pm/hydra"))

    # --- use ----------------------------------------------------------------------------------

    def setup_run_environment(self, env):
        """Where it is, its compilers, and what keeps srun from starting worlds of one."""
        for variable in ("MPI_HOME", "MPI_ROOT"):
            env.set(variable, self.prefix)
        super().setup_run_environment(env)
        if self.spec.satisfies("process_managers=slurm"):
            env.set("SLURM_MPI_TYPE", self.slurms_word)
        if self.spec.satisfies("+cuda"):
            # GPU buffers are off by default, even in a build that has them.
            env.set("MV2_USE_CUDA", "1")

    @property
    def slurms_word(self):
        """What srun --mpi= must say: pmi1 is Slurm's libpmi, which needs no plug-in."""
        word = self.spec.variants["pmi_version"].value
        return {"pmi1": "none"}.get(word, word)

    @property
    def device(self):
        """What mpichversion says its device is: nemesis does not say its network."""
        return ":".join(DEVICES[self.fabric].split(":")[:2])
