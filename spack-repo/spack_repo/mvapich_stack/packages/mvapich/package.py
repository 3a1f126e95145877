"""MVAPICH 3.0, 4.0 and 4.1: the MPI library of The Ohio State University for Spack.

What each version's configure takes was read from its configure scripts (3.0: of the release
candidate; 4.1: taken from 4.0) and is held in easyconfigs/easyblocks/mvapich_options.py too; a
test compares. All that decides a build stands in this file: Spack's package hash is of it alone.
"""

import re

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.mvapich_stack.build_systems.mpich_based import MpichBased
from spack_repo.mvapich_stack.build_systems.mpich_checked import MpichChecked
from spack_repo.mvapich_stack.build_systems.mvapich_found import MvapichFound

from spack.package import *

# BEGIN of what `mvstack render` writes, from environments/policy/fabrics.yaml: do not edit.
# What the transport beneath must have been built with, so that a fabric is driven and not quietly
# replaced by TCP. "shm" and "tcp" come along: ranks of one node, and the way to start.
LIBFABRIC = {
    "slingshot-11": "fabrics=cxi,shm,tcp",
    "infiniband": "fabrics=verbs,rxm,shm,tcp",
    "omni-path": "fabrics=opx,psm2,shm,tcp",
    "efa": "fabrics=efa,shm,tcp",
    "roce": "fabrics=verbs,rxm,shm,tcp",
    "psm3": "fabrics=psm3,shm,tcp",
    "tcp": "fabrics=tcp,shm",
    "shm": "fabrics=tcp,shm",
}
UCX = {
    "infiniband": "+verbs +rc +dc +ud +mlx5_dv +rdmacm",
    "roce": "+verbs +rc +dc +ud +mlx5_dv +rdmacm",
    "tcp": "",
    "shm": "",
}

# What FI_PROVIDER says where one fabric is asked of netmod=ofi.
PROVIDER = {
    "slingshot-11": "cxi",
    "infiniband": "verbs;ofi_rxm",
    "omni-path": "opx",
    "efa": "efa",
    "roce": "verbs;ofi_rxm",
    "psm3": "psm3",
    "tcp": "tcp",
    "shm": "tcp",
}

# What else a program's environment needs where one fabric is asked of a netmod.
SETS = {
    "ofi": {
        "slingshot-11": {"MPIR_CVAR_SINGLE_HOST_ENABLED": "0"},
    },
    "ucx": {
        "infiniband": {"UCX_TLS": "^tcp"},
        "roce": {"UCX_TLS": "^tcp"},
        "shm": {"UCX_TLS": "^tcp"},
    },
}

# What an embedded library needs of others for a fabric, and the word in its config.h
# that proves that it found it: both build what they find and go on without the rest.
EMBEDDED = {
    "libfabric": {
        "infiniband": (("rdma-core",), "HAVE_VERBS"),
        "omni-path": (("uuid", "numactl", "opa-psm2"), "HAVE_OPX"),
        "efa": (("rdma-core",), "HAVE_EFA"),
        "roce": (("rdma-core",), "HAVE_VERBS"),
        "psm3": (("rdma-core", "uuid", "numactl"), "HAVE_PSM3"),
    },
    "ucx": {
        "infiniband": (("rdma-core",), "HAVE_IB"),
        "roce": (("rdma-core",), "HAVE_IB"),
    },
}
# END of what `mvstack render` writes.

FILE_SYSTEMS = (
    *("daos", "gpfs", "ime", "lustre", "nfs", "panfs", "pvfs2", "quobytefs", "testfs", "ufs"),
    "xfs",
)
# Folders whose configure scripts belong to tests, or to libraries that are not the MPI's own.
FOREIGN = ("modules/libfabric", "modules/ucx", "modules/hwloc", "modules/json-c", "test", "maint")
# Variant, configure's word, the package, the soname that libmpi.so then needs.
GPUS = (
    ("cuda", "cuda", "cuda", "libcudart"),
    ("rocm", "hip", "hip", "libamdhip64"),
    ("level_zero", "ze", "oneapi-level-zero", "libze_loader"),
)
# What proves in an embedded library's config.h that it moves buffers of that GPU.
EMBEDDED_GPUS = {
    "libfabric": {"cuda": "HAVE_CUDA", "rocm": "HAVE_ROCR", "level_zero": "HAVE_ZE"},
    "ucx": {"cuda": "HAVE_CUDA", "rocm": "HAVE_ROCM"},
}
# Variants of builtin's recipe, or of ours before, that decide nothing: their one value, and why.
DEPRECATED = {
    "cma": (True, "4.x does not link without CMA: use MPIR_CVAR_CH4_CMA_ENABLE=0 at run time"),
    "regcache": (
        True,
        "MVAPICH 3 and later have no such option: set UCX_RCACHE_ENABLE=n, or "
        "FI_MR_CACHE_MONITOR=disabled, at run time",
    ),
    "alloca": (False, "MVAPICH 3 and later have no such option: leave +alloca out"),
}
# Compilers that take for errors what older ones warned of. Those over Clang 16 were not tried.
STRICT = ("gcc@14:", "llvm@16:", "aocc@4.1:", "intel-oneapi-compilers@2024:")


class Mvapich(MpichBased, MpichChecked, MvapichFound, AutotoolsPackage, CudaPackage, ROCmPackage):
    """MPI over libfabric (netmod=ofi) or UCX (netmod=ucx) by The Ohio State University.

    The variant `fabrics` says which networks it must drive; the libfabric or UCX beneath it is
    required to have been built for them.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = "https://mvapich.cse.ohio-state.edu/download/mvapich/mv2/mvapich-4.0.tar.gz"
    list_url = "https://mvapich.cse.ohio-state.edu/downloads/"

    # COPYRIGHT of the sources is the notice of Argonne National Laboratory (SPDX: mpich2).
    license("mpich2", checked_by="mvapich-stack")

    executables = ["^mpichversion$"]
    calls_itself = "MVAPICH"
    known_file_systems = FILE_SYSTEMS
    linked_for = {name: soname for name, _, _, soname in GPUS}

    # Not a36c459befd5b0d1b66e4a217250d89d9f77b903fcc4a050efddb1c475b8dcab: the first tarball that
    # upstream published as 4.1, and replaced. A mirror may still have it.
    version("4.1", sha256="25a53d3725b669e2c648158fb7c9fc5b1388953f3a2f949748586c447d0e43ee")
    # What was built and run, and what the patches are for.
    version(
        "4.0",
        sha256="c532f7bdd5cca71f78c12e0885c492f6e276e283711806c84d0b0f80bb3e3b74",
        preferred=True,
    )
    version("3.0", sha256="ee076c4e672d18d6bf8dd2250e4a91fa96aac1db2c788e4572b5513d86936efb")

    provides("mpi@:4.1", when="@4.0:")  # over MPICH 4.3
    provides("mpi@:3.1", when="@:3")  # over MPICH 3.4

    # The solver may not choose these (sticky): it would rather embed a libfabric, or take another
    # netmod, than build what was asked, and nobody would notice.
    variant(
        "netmod",
        default="ucx",
        values=("ofi", "ucx"),
        description="Transport: ofi (libfabric) or ucx",
        sticky=True,
    )
    variant(
        "fabrics",
        default="infiniband",
        values=tuple(LIBFABRIC),
        multi=True,
        description="Networks that the libfabric or UCX beneath must drive",
        sticky=True,
    )
    variant(
        "embedded",
        default="none",
        values=("none", "libfabric", "ucx", "hwloc"),
        multi=True,
        description="Libraries taken from the copies in MVAPICH's source",
        sticky=True,
    )
    variant(
        "pmi",
        default="simple",
        values=("simple", "pmi1", "pmi2", "pmix", "cray"),
        description="How ranks and what starts them talk; simple: the library's own PMI 1 and 2",
        sticky=True,
    )
    variant(
        "process_managers",
        values=disjoint_sets(("none",), ("auto",), ("slurm",), ("hydra", "gforker", "remshell"))
        .with_error("auto, slurm and none stand alone")
        .with_default("auto")
        .with_non_feature_values("auto"),
        description="What starts the ranks; slurm: srun, none: another resource manager",
        sticky=True,
    )
    variant(
        "threads",
        default="multiple",
        values=("single", "funneled", "serialized", "multiple"),
        description="Highest level that MPI_Init_thread can give",
    )
    variant(
        "file_systems",
        values=disjoint_sets(("none",), ("auto",), FILE_SYSTEMS)
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
    variant(
        "datatype_engine",
        default="auto",
        values=("auto", "dataloop", "yaksa"),
        description="Packing of datatypes; yaksa also packs GPU buffers, and compiles long",
    )
    variant("fortran", default=True, description="Fortran bindings: mpif.h, mpi and mpi_f08")
    variant("level_zero", default=False, description="GPU buffers of Intel's Level Zero")
    variant("xpmem", default=False, description="Copy between processes by XPMEM")
    variant("omb", default=False, description="Also the OSU Micro-Benchmarks of the source")
    variant("debug", default=False, description="Symbols, and nothing optimised away")
    variant("wrapperrpath", default=True, description="mpicc gives programs the library's path")
    for _name, (_only, _why) in DEPRECATED.items():
        variant(_name, default=_only, description=f"Deprecated, without effect. {_why}")
        conflicts(("~" if _only else "+") + _name, msg=_why)

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("gmake", type="build")
    depends_on("findutils", type="build")
    depends_on("pkgconfig", type="build")

    for _words in ("none", "libfabric", "ucx"):
        depends_on("hwloc@2:", when=f"embedded:={_words}")
    # hwloc's own configure would otherwise take the host's, or none, unasked.
    depends_on("libpciaccess", when="embedded=hwloc")

    # Not `embedded:=none`: where a requirement cannot be met, Spack would sooner have it that
    # `embedded` is none and something else at once, and speak of that.
    for _words in ("embedded=none", "embedded:=hwloc"):
        depends_on("libfabric", when=f"netmod=ofi {_words}")
        # 1.9: the first with the calls that ch4:ucx makes; its configure refuses older ones.
        depends_on("ucx@1.9:", when=f"netmod=ucx {_words}")
        for _fabric, _needed in LIBFABRIC.items():
            # The first where it is built; of a site's own the provider is enough, which may be
            # all that its entry in packages.yaml names.
            _least = f"fabrics={PROVIDER[_fabric].split(';')[0]}"
            requires(
                f"^libfabric {_needed}",
                f"^libfabric {_least}",
                policy="any_of",
                when=f"netmod=ofi {_words} fabrics={_fabric}",
                msg=f"{_fabric} would not be driven: use libfabric {_least}",
            )

    # The embedded libraries build what they find: without these a fabric is left out unsaid.
    for _library, _fabrics in EMBEDDED.items():
        for _fabric, (_others, _) in _fabrics.items():
            for _needed in _others:
                depends_on(_needed, when=f"embedded={_library} fabrics={_fabric}")
    # Small messages of GPUs are slow without GDRCopy; a site's UCX may do without.
    for _words in ("embedded=none", "embedded:=hwloc"):
        requires(
            "^ucx +gdrcopy",
            "^ucx ~gdrcopy",
            policy="any_of",
            when=f"netmod=ucx +cuda {_words}",
            msg="use ucx +cuda, with gdrcopy or without",
        )
    depends_on("cuda", when="+cuda")
    # patch() mends 4.x.
    conflicts(
        "^cuda@13:",
        when="@:3 +cuda",
        msg="CUDA 13 has no cudaDeviceProp.computeMode, which it reads: use cuda@:12, or @4.0:",
    )

    depends_on("pmix", when="pmi=pmix")
    depends_on("cray-pmi", when="pmi=cray")
    depends_on("slurm", when="process_managers=slurm")
    # A conflict and no requirement, so that its message is said of an external without it.
    for _without in ("^slurm ~pmix", "^slurm@:21"):  # older ones have no such variant
        conflicts(
            _without,
            when="process_managers=slurm pmi=pmix",
            msg="srun serves no PMIx without it: use slurm@22-05: +pmix, or pmi=pmi2",
        )
    depends_on("hip", when="+rocm")
    depends_on("hsa-rocr-dev", when="+rocm")
    depends_on("oneapi-level-zero", when="+level_zero")
    depends_on("xpmem", when="+xpmem")
    depends_on("lustre", when="file_systems=lustre")
    depends_on("daos", when="file_systems=daos")

    # Without them MPI_Dist_graph_create hangs, an error in one rank leaves others running, mpiexec
    # waits for a proxy that cannot start and for a lost host, a late rank's MPI_Finalize over UCX
    # takes minutes, and MPI_Open_port over UCX fails.
    # Whether 4.1 needs them is not known.
    patch("dist-graph-to-itself.patch", when="@4.0")
    patch("abort-ends-all-ranks.patch", when="@4.0")
    patch("error-in-a-part.patch", when="@4.0")
    patch("proxy-that-does-not-start.patch", when="@4.0")
    patch("lost-host.patch", when="@4.0")
    patch("finalize-waits-for-all.patch", when="@4.0")
    patch("port-by-socket.patch", when="@4.0")
    patch("matched-receive-in-parts.patch", when="@4.0")
    # Nor of these, which make it faster: docs/patches-for-speed.md has by how much.
    patch("yield-to-other-ranks.patch", when="@4.0")
    patch("fewer-steps.patch", when="@4.0")
    patch("shared-memory-collectives.patch", when="@4.0")
    patch("rows-for-fewer-ranks.patch", when="@4.0")
    patch("few-ranks-without-tree.patch", when="@4.0")
    patch("one-sided-by-memory.patch", when="@4.0")
    patch("derived-types-of-gpus.patch", when="@4.0")
    patch("one-node-without-network.patch", when="@4.0")
    patch("messages-in-a-ring.patch", when="@4.0")
    patch("large-collectives-by-messages.patch", when="@4.0")
    patch("copied-in-steps.patch", when="@4.0")
    patch("reductions-by-pieces.patch", when="@4.0")
    patch("bcast-of-no-data.patch", when="@4.0")
    patch("copied-by-both.patch", when="@4.0")
    patch("bcast-by-pieces.patch", when="@4.0")
    patch("allgather-by-pieces.patch", when="@4.0")
    patch("reduce-of-odd-types.patch", when="@4.0")
    patch("truncated-from-any-source.patch", when="@4.0")
    patch("large-cells.patch", when="@4.0")
    patch("window-without-memory.patch", when="@4.0")
    patch("short-messages.patch", when="@4.0")
    patch("cells-in-turn.patch", when="@4.0")
    patch("stream-to-far-cores.patch", when="@4.0")
    patch("allreduce-by-shares.patch", when="@4.0")
    patch("mpit-finalize-within-mpi.patch", when="@4.0")
    patch("sees-the-next-message.patch", when="@4.0")
    patch("large-messages-in-turn.patch", when="@4.0")
    patch("gaps-between-messages.patch", when="@4.0")
    patch("pieces-ahead.patch", when="@4.0")
    patch("both-ways-at-once.patch", when="@4.0")
    patch("messages-at-once.patch", when="@4.0")
    patch("acks-by-rank.patch", when="@4.0")
    patch("acks-in-turn.patch", when="@4.0")
    patch("matched-probe-of-segments.patch", when="@4.0")

    # 3.0's soname is MPICH's, libmpi.so.12, and both keep to the MPICH ABI. 4.0's is libmpi.so.0
    # (its libtool version is 0:0:0): a program linked to MPICH does not start with it, so it is
    # offered for no splice. 4.1's is not known. Programs in C and with mpi_f08 and MPI-IO that
    # were linked to MPICH 4.0.2 ran with 3.0rc in its place (2026-11-21); Spack's splice was not
    # run.
    can_splice("mpich@3.4 device=ch4 +fortran", when="@3.0 +fortran file_systems=auto")

    # --- what does not go together, and what to say instead -----------------------------------

    for _fabric in LIBFABRIC:
        if _fabric not in UCX:
            # A conflict, of which Spack says the message first; of a requirement it does not.
            conflicts(
                "netmod=ucx",
                when=f"fabrics={_fabric}",
                msg=f"UCX has no transport for {_fabric}: use netmod=ofi",
            )
    # What UCX must have is said by conflicts alone, which lead the solver to the same UCX. Where a
    # person has asked for another, it says these messages first, and not those of a requirement.
    for _fabric, _needed in UCX.items():
        for _word in _needed.split():
            conflicts(
                f"^ucx ~{_word[1:]}",
                when=f"netmod=ucx fabrics={_fabric}",
                msg=f"{_fabric} would not be driven: use ucx {_needed}",
            )
    _lost = "GPU buffers would not be known beneath"
    for _when, _library, _word, _why in (
        ("netmod=ucx", "ucx", "thread_multiple", "UCX would not serve several threads"),
        # of 3.0 too, or the solver would rather take 3.0 than build a UCX with it
        ("netmod=ucx", "ucx", "cma", "MVAPICH copies between processes by CMA"),
        ("netmod=ucx +xpmem", "ucx", "xpmem", "UCX would copy without XPMEM"),
        ("netmod=ucx +cuda", "ucx", "cuda", _lost),
        ("netmod=ucx +rocm", "ucx", "rocm", _lost),
        ("netmod=ofi +cuda", "libfabric", "cuda", _lost),
        ("netmod=ofi +level_zero", "libfabric", "level_zero", _lost),
    ):
        conflicts(f"^{_library} ~{_word}", when=_when, msg=f"{_why}: use {_library} +{_word}")
    # For named GPUs, because ROCmPackage has a message of its own for +rocm without one.
    for _target in ROCmPackage.amdgpu_targets:
        _when = f"netmod=ofi +rocm amdgpu_target={_target}"
        conflicts("^libfabric ~rocm", when=_when, msg=f"{_lost}: use libfabric +rocm")
        # libfabric's +rocm wants its GPUs named, too; a site's own may leave them out.
        requires(
            f"^libfabric amdgpu_target={_target}",
            "^libfabric amdgpu_target=none",
            "^libfabric ~rocm",
            policy="any_of",
            when=f"{_when} ^libfabric",
            msg=f"use libfabric +rocm amdgpu_target={_target}",
        )
    conflicts("embedded=libfabric", when="netmod=ucx", msg="use netmod=ofi, or embed ucx")
    conflicts("embedded=ucx", when="netmod=ofi", msg="use netmod=ucx, or embed libfabric")
    for _fabric, _provider, _why in (
        ("slingshot-11", "cxi", "the embedded libfabric has no cxi provider"),
        (
            "psm3",
            "psm3",
            "the embedded libfabric's psm3 fails when a program ends (RELEASE_NOTES)",
        ),
    ):
        _use = f"use embedded=none, with libfabric fabrics={_provider}"
        conflicts("embedded=libfabric", when=f"fabrics={_fabric}", msg=f"{_why}: {_use}")
    _hydra = "hydra serves no external PMIx: use process_managers=slurm (or none), or pmi=simple"
    _cray = "Cray's own srun or aprun starts the ranks: use process_managers=none"
    _simple = "3.0 calls its own PMI 1 simple: use pmi=simple"
    for _manager in ("gforker", "remshell"):
        _one = f"{_manager} speaks PMI 1 only: use pmi=simple, or process_managers=hydra"
        for _pmi in ("pmi2", "pmix", "cray"):
            conflicts(f"pmi={_pmi}", when=f"process_managers={_manager}", msg=_one)
    for _manager in ("auto", "hydra"):
        conflicts("pmi=pmix", when=f"process_managers={_manager}", msg=_hydra)
    for _manager in ("auto", "hydra", "slurm"):
        conflicts("pmi=cray", when=f"process_managers={_manager}", msg=_cray)
    for _manager in ("auto", "none", "hydra", "gforker", "remshell"):
        conflicts("pmi=pmi1", when=f"@:3 process_managers={_manager}", msg=_simple)
    conflicts("+rocm", when="@:3", msg="3.0 knows no ROCm: use @4.0 or newer")
    for _one, _other in (("cuda", "rocm"), ("cuda", "level_zero"), ("rocm", "level_zero")):
        _why = f"one kind of GPU in one build: use +{_one} or +{_other}"
        conflicts(f"+{_one}", when=f"+{_other}", msg=_why)
    _yaksa = "only yaksa packs GPU buffers: use datatype_engine=yaksa"
    for _gpu, *_ in GPUS:
        conflicts("datatype_engine=dataloop", when=f"+{_gpu}", msg=_yaksa)
    conflicts("platform=darwin", msg="MVAPICH is for Linux: use mpich")
    conflicts("platform=windows", msg="MVAPICH is for Linux: use msmpi")

    filter_compiler_wrappers("mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", relative_root="bin")

    # --- sources ------------------------------------------------------------------------------

    def patch(self):
        """Let mpicc link what a shared libfabric needs; let Slurm's PMI 2 and CUDA 13 compile.

        configure asks `pkg-config --static`: programs would need the development packages of every
        fabric that libfabric was built for. CUDA 13 has no cudaDeviceProp.computeMode any more,
        which 4.x's yaksa reads: a call that every CUDA knows says the same. Nor has it a name
        without version for a function's type that the embedded UCX takes.
        """
        if self.spec.satisfies("netmod=ofi") and not self.spec.satisfies("embedded=libfabric"):
            filter_file(
                "pkg-config --static --libs", "pkg-config --libs", "configure", string=True
            )
        if self.spec.satisfies("@4.0: +cuda"):
            hooks = "modules/yaksa/src/backend/cuda/hooks/yaksuri_cuda_init_hooks.c"
            for old, new in (
                ("struct cudaDeviceProp prop;", "int mode = -1;"),
                (
                    "cudaGetDeviceProperties(&prop, i)",
                    "cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, i)",
                ),
                ("prop.computeMode", "mode"),
            ):
                filter_file(old, new, hooks, string=True)
        if self.spec.satisfies("@4.0: +cuda embedded=ucx"):
            memory = "modules/ucx/src/uct/cuda/cuda_copy/cuda_copy_md.c"
            name = "PFN_cuMemGetHandleForAddressRange"
            filter_file(f"{name} ", f"{name}_v11070 ", memory, string=True)
        if self.spec.satisfies("@4.0: pmi=pmi2 process_managers=slurm"):
            self.leave_out_foreign_spawn(join_path("src", "util", "mpir_pmi2.inc"))

    @staticmethod
    def leave_out_foreign_spawn(file):
        """Let 4.x compile with Slurm's pmi2.h.

        Slurm declares PMI2_Job_Spawn with types of its own and knows no PMI2_keyval_t. 4.0 has a
        function for that beside the one for every other PMI 2, but compiles both: an error. A
        source that looks otherwise is left as it is.
        """
        with open(file) as source:
            text = source.read()
        begin = text.find("static int pmi2_spawn(int count,")
        end = text.find("static int pmi2_publish(")
        if 0 <= begin < end and "USE_PMI2_SLURM" not in text[:begin]:
            spawn = f"#ifndef USE_PMI2_SLURM\n{text[begin:end]}#endif /* USE_PMI2_SLURM */\n\n"
            with open(file, "w") as source:
                source.write(text[:begin] + spawn + text[end:])

    # --- compilers ----------------------------------------------------------------------------

    @property
    def optimisation(self):
        """The level of the whole library: that of the user's cflags, or O2; O0 with +debug."""
        asked = [flag[1:] for flag in self.spec.compiler_flags.get("cflags", ())]
        levels = [flag for flag in asked if re.fullmatch("O([0-3gsz]|fast)", flag)]
        return levels[-1] if levels else ("O0" if self.spec.satisfies("+debug") else "O2")

    def flag_handler(self, name, flags):
        """Let GCC 14 and 15 take C that older ones took; by the wrappers, so mpicc is clean."""
        flags = list(flags or [])
        if name == "cppflags" and self.spec.satisfies("+rocm"):
            # HIP's headers are an error without it, so mpl's configure learns nothing from them
            # and takes every HIP for 6 or newer.
            flags.append("-D__HIP_PLATFORM_AMD__")
        if name in ("cflags", "cxxflags") and self.spec.satisfies("@:3"):
            # The mpl of this generation hears of no level from any option.
            flags.insert(0, "-" + self.optimisation)
        if name == "cflags":
            if self.spec.satisfies("%c=gcc@15:"):
                # C23, its default, knows no functions without prototypes.
                flags.append("-std=gnu17")
            if any(self.spec.satisfies(f"@:3 %c={one}") for one in STRICT):
                # (4.0, built by GCC 12, warns of none.)
                flags += [
                    "-Wno-error=" + one
                    for one in (
                        "implicit-function-declaration",
                        "implicit-int",
                        "incompatible-pointer-types",
                        "int-conversion",
                    )
                ]
        return flags, None, None

    def setup_build_environment(self, env):
        """The -O level for every part, what gfortran 10 and newer need, CUDA's stubs."""
        for name in ("F90", "F90FLAGS"):
            env.unset(name)  # configure stops where they are set
        if self.spec.satisfies("@:3"):
            env.set("ac_cv_header_tm_h", "no")  # its hydra does not hear --without-pbs
        # --enable-fast reaches the MPI itself, and not its parts (mpl, ROMIO, hydra).
        for name in ("CFLAGS", "CXXFLAGS", "FFLAGS", "FCFLAGS"):
            # GCC leaves the loops of reductions as they are at O2, unless this is said.
            env.set("MPICHLIB_" + name, f"-{self.optimisation} -ftree-vectorize")
        if self.spec.satisfies("+fortran %fortran=gcc@10:"):
            # One call of MPI_Send with reals and one with integers in a file: what mpif.h programs
            # do, an error since gfortran 10. In the environment, so that mpifort says it too.
            flags = ["-fallow-argument-mismatch"]
            if self.spec.satisfies("%fortran=gcc@14:"):
                # A small array is read when MPI_Irecv returns, and not after MPI_Wait (PR 120958).
                flags.append("-fno-tree-sra")
            for name in ("FFLAGS", "FCFLAGS"):
                env.set(name, " ".join(flags))
        if self.spec.satisfies("@:3 pmi=cray"):
            pmi = self.spec["cray-pmi"].prefix
            env.set("CRAY_PMI_INCLUDE_OPTS", f"-I{pmi.include}")
            env.set("CRAY_PMI_POST_LINK_OPTS", f"-L{pmi.lib}")
        if self.spec.satisfies("+cuda"):
            # libcuda.so is the driver's: where nodes that build have none, mpl goes without CUDA.
            env.append_path("LIBRARY_PATH", join_path(self.root("cuda"), "lib64", "stubs"))
            # Nor is it on login nodes, where programs are linked to a libmpi.so that needs it.
            for wrapper in ("MPICC", "MPICXX", "MPIF77", "MPIFORT"):
                env.set(f"MPICH_{wrapper}_LDFLAGS", "-Wl,--allow-shlib-undefined")

    # --- configure ----------------------------------------------------------------------------

    @property
    def managers(self):
        """Process managers of the source to build; empty when something else starts the ranks."""
        named = self.spec.variants["process_managers"].value
        if "auto" in named:
            return ["hydra", "mpirun"] if self.spec.satisfies("@:3") else ["hydra"]
        return [one for one in ("hydra", "gforker", "remshell") if one in named]

    def root(self, name):
        """Where a dependency is; empty when the spec has none of that name."""
        return self.spec[name].prefix if self.spec.dependencies(name) else ""

    def launcher_args(self):
        """--with-pm, --with-pmi and --with-slurm, as each version spells them."""
        spec, old = self.spec, self.spec.satisfies("@:3")
        pmi = spec.variants["pmi"].value
        slurms = spec.satisfies("process_managers=slurm") and pmi in ("pmi1", "pmi2")
        pm = "--with-pm=" + (":".join(self.managers) or "no")
        if old:
            if slurms and pmi == "pmi2":
                pm = "--with-pm=slurm"
            words = {
                "simple": ["--with-pmi=simple"],
                "pmi1": ["--with-pmi=slurm"],
                "pmi2": ["--with-pmi=pmi2" if slurms else "--with-pmi=pmi2/simple"],
                "pmix": [f"--with-pmix={self.root('pmix')}"],
                "cray": ["--with-pmi=cray"],
            }
        else:
            slurms_library = ["--with-pmilib=slurm"] if slurms else []
            words = {
                # No word at all: 4.x reads --with-pmi=simple as a path. Its own libpmi speaks
                # both.
                "simple": [],
                "pmi1": ["--with-pmi=pmi1", *slurms_library],
                "pmi2": ["--with-pmi=pmi2", *slurms_library],
                "pmix": ["--with-pmi=pmix", f"--with-pmix={self.root('pmix')}"],
                "cray": ["--with-pmi=pmi2", f"--with-pmi2={self.root('cray-pmi')}"],
            }
        # Unless refused, hydra links the host's libslurm, or libpbs, unasked.
        slurm = f"--with-slurm={self.root('slurm')}" if slurms else "--without-slurm"
        return [pm, *words[pmi], slurm, "--without-pbs"]

    def library_args(self):
        """Where the transport, hwloc and copy modules come from."""
        spec = self.spec
        library = "libfabric" if spec.satisfies("netmod=ofi") else "ucx"
        inside = spec.satisfies(f"embedded={library}")
        args = [f"--with-{library}=" + ("embedded" if inside else self.root(library))]
        if spec.satisfies("embedded=ucx"):
            verbs = self.root("rdma-core")
            args.append(f"--with-verbs={verbs}" if verbs else "--without-verbs")
            # Said to UCX's configure: a release build, as its own contrib/configure-release.
            args += [
                "--disable-logging",
                "--disable-debug",
                "--disable-assertions",
                "--disable-params-check",
                "--enable-optimizations",
            ]
        if inside and spec.satisfies("+rocm"):
            # Each has a word of its own for it, and takes what it finds unless that is said.
            word, package = {"libfabric": ("rocr", "hsa-rocr-dev"), "ucx": ("rocm", "hip")}[
                library
            ]
            args.append(f"--with-{word}={self.root(package)}")
        if spec.satisfies("@4.0: netmod=ofi"):
            # Left alone, 4.0 takes its queue mvp_shm within a node: 2 MiB for each pair of ranks,
            # all of it zeroed by every rank (32 GiB for 128 ranks).
            args.append("--with-ch4-posix-eager-modules=iqueue")
        if spec.satisfies("@4.0 netmod=ucx ~cuda ~rocm ~level_zero"):
            # Our patch leaves it collectives alone. Not tried with GPUs.
            args += ["--with-ch4-shmmods=posix", "--with-ch4-posix-eager-modules=iqueue"]
        hwloc = "embedded" if spec.satisfies("embedded=hwloc") else self.root("hwloc")
        option = "--with-hwloc-prefix" if spec.satisfies("@:3") else "--with-hwloc"
        # HCOLL, of a vendor's stack, would be taken where it is found.
        args += [f"{option}={hwloc}", "--without-hcoll"]
        args.append(
            f"--with-xpmem={self.root('xpmem')}" if "+xpmem" in spec else "--without-xpmem"
        )
        return args

    def gpu_args(self):
        """One kind of GPU, or none: configure takes what it finds unless told not to."""
        spec, args = self.spec, []
        for name, option, package, _ in GPUS:
            if option == "hip" and spec.satisfies("@:3"):
                continue
            asked = spec.satisfies("+" + name)
            args.append(
                f"--with-{option}={self.root(package)}" if asked else f"--without-{option}"
            )
        if spec.satisfies("+cuda"):
            chosen = [one for one in spec.variants["cuda_arch"].value if one != "none"]
            every = "all" if spec.satisfies("@:3") else "all-major"
            if spec.satisfies("^cuda@13:"):
                every = "75,80,90,100,120"  # all-major names 52, 60 and 70, which nvcc 13 refuses
            args.append("--with-cuda-sm=" + (",".join(chosen) or every))
        if spec.satisfies("@4: +cuda +omb"):
            # OMB's configure compiles C++ probes as C, and finds nothing. We give it the answers.
            args += [
                "--enable-cuda=basic",
                "ac_cv_search_cuPointerGetAttribute=-lcuda",
                "ac_cv_search_cudaFree=-lcudart",
            ]
        if spec.satisfies("+rocm"):
            chosen = [one for one in spec.variants["amdgpu_target"].value if one != "none"]
            args.append("--with-hip-sm=" + (",".join(chosen) or "auto"))
        return args

    def configure_args(self):
        """Every option that this version's configure is given."""
        spec = self.spec
        systems = [one for one in FILE_SYSTEMS if spec.satisfies(f"file_systems={one}")]
        io = ["--disable-romio" if spec.satisfies("file_systems=none") else "--enable-romio"]
        if systems:
            io.append("--with-file-system=" + "+".join(systems))
        if "daos" in systems:
            io.append(f"--with-daos={self.root('daos')}")
        # The level is always said: `ndebug` alone leaves configure's default, and `opt` means 03
        # (zero three) to 4.0, which is no level at all.
        # Its default, O2,sse2, also fills the cells of iqueue by streaming stores, which gain
        # nothing: 0.98 to 1.00 times as fast (docs/performance.md).
        # alwaysinline is no default: it belongs to --enable-fast=all, and did not compile in time.
        fast = self.optimisation + ("" if spec.satisfies("+debug") else ",ndebug")
        return [
            "--with-device=ch4:" + spec.variants["netmod"].value,
            *self.launcher_args(),
            *self.library_args(),
            *self.gpu_args(),
            "--enable-shared",
            "--disable-static",
            "--disable-silent-rules",
            "--enable-cxx",
            "--enable-fortran=all" if spec.satisfies("+fortran") else "--disable-fortran",
            *io,
            "--enable-threads=" + spec.variants["threads"].value,
            "--enable-error-checking=" + spec.variants["error_checking"].value,
            "--enable-fast=" + fast,
            *(["--enable-g=dbg"] if spec.satisfies("+debug") else []),
            "--with-datatype-engine=" + spec.variants["datatype_engine"].value,
            "--enable-omb" if spec.satisfies("+omb") else "--disable-omb",
            "--with-wrapper-dl-type=" + ("rpath" if spec.satisfies("+wrapperrpath") else "none"),
        ]

    # --- does configure know what it is told, and did it listen? --------------------------------

    @run_before("configure")
    def every_option_is_known(self):
        """Refuse what no configure script of this source takes: it would be ignored silently."""
        own = [
            f"modules/{one}"
            for one in ("libfabric", "ucx", "hwloc")
            if self.spec.satisfies(f"embedded={one}")
        ]
        self.refuse_unknown_options(tuple(one for one in FOREIGN if one not in own))

    @run_after("configure")
    def every_part_is_optimised(self):
        """Refuse Makefiles without the -O level that was asked for."""
        parts = [".", "src/mpi/romio", "src/pm/hydra", "modules/yaksa"]
        if self.spec.satisfies("@4.0:"):
            parts.append("src/mpl")  # of 3.0 flag_handler tells it
        self.refuse_unoptimised(parts)

    def must_define(self, part, header, words):
        """Refuse what the configure of a part went on without: thing → its word in a header."""
        top = join_path(self.stage.source_path, *part.split("/"))
        with open(join_path(top, *header.split("/")), errors="replace") as made:
            defined = re.findall(r"^#\s*define (\w+) 1$", made.read(), re.M)
        for thing, word in words.items():
            if word not in defined:
                raise InstallError(
                    f"configure went on without {thing}: {part}/{header} defines no {word}",
                    f"{join_path(top, 'config.log')} says what was looked for in vain",
                )

    @run_after("configure")
    def every_fabric_is_there(self):
        """Refuse an embedded library that went on without a fabric that was asked for."""
        for library, fabrics in EMBEDDED.items():
            if self.spec.satisfies(f"embedded={library}"):
                words = {one: proof for one, (_, proof) in fabrics.items() if one in self.fabrics}
                self.must_define(f"modules/{library}", "config.h", words)

    @run_after("configure")
    def gpu_is_there(self):
        """Refuse mpl, yaksa or an embedded transport that went on without the GPU."""
        for name, option, _, _ in GPUS:
            if self.spec.satisfies(f"+{name}"):
                word = f"HAVE_{option.upper()}"
                self.must_define("src/mpl", "include/mplconfig.h", {name: f"MPL_{word}"})
                yaksa = "src/frontend/include/yaksa_config.h"
                self.must_define("modules/yaksa", yaksa, {name: word})
                for library, proofs in EMBEDDED_GPUS.items():
                    if self.spec.satisfies(f"embedded={library}") and name in proofs:
                        self.must_define(f"modules/{library}", "config.h", {name: proofs[name]})

    @run_after("install")
    def gpu_is_linked(self):
        """Refuse a libmpi.so that does not need the library of the GPU that was asked for."""
        needed = self.needed_by_libmpi(self.prefix)
        for name, _, _, soname in GPUS:
            if self.spec.satisfies(f"+{name}") and not any(soname in one for one in needed):
                raise InstallError(
                    f"the libmpi.so of {self.prefix} does not need {soname}: +{name} was lost",
                    f"found     {', '.join(needed)}",
                )

    # --- use ----------------------------------------------------------------------------------

    def setup_run_environment(self, env):
        """Where it is, its compilers, and what keeps a run from falling back without a word."""
        for variable in ("MPI_HOME", "MPI_ROOT"):
            env.set(variable, self.prefix)
        super().setup_run_environment(env)
        if self.spec.satisfies("process_managers=slurm"):
            # A plain srun would start ranks that each believe to be alone.
            env.set("SLURM_MPI_TYPE", self.slurms_word)
        if len(self.fabrics) == 1:
            fabric, netmod = self.fabrics[0], self.spec.variants["netmod"].value
            if self.spec.satisfies("@4.0: netmod=ofi fabrics=infiniband embedded=libfabric"):
                env.set("FI_PROVIDER", "mverbs;ofi_ucr")
            elif netmod == "ofi":
                env.set("FI_PROVIDER", PROVIDER[fabric])
            for name, value in SETS[netmod].get(fabric, {}).items():
                env.set(name, value)
        if self.spec.satisfies("+omb"):
            omb = join_path(self.prefix.libexec, "osu-micro-benchmarks", "mpi")
            for kind in ("pt2pt", "collective", "one-sided", "startup"):
                env.prepend_path("PATH", join_path(omb, kind))

    @property
    def slurms_word(self):
        """What srun --mpi= must say."""
        pmi = self.spec.variants["pmi"].value
        # Slurm's libpmi talks to srun by itself; our own PMI 1 and 2 are served by its plugin
        # pmi2.
        return {"pmix": "pmix", "pmi1": "none"}.get(pmi, "pmi2")

    @property
    def device(self):
        """What mpichversion says its device is."""
        return "ch4:" + self.spec.variants["netmod"].value

    @property
    def any_source_ways(self):
        """Runs of the stand-alone test: by memory and netmod, and by the netmod alone."""
        ways = [{}, {"MPIR_CVAR_NOLOCAL": "1"}]  # which has each as if on a node of its own
        if self.spec.satisfies("@4.0:"):
            # Ranks of odd and of even numbers as if on two nodes. These share a file of 3.0's
            # collectives, and MPI_Init ends in a bus error.
            ways.append({"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"})
        return ways

    @property
    def fabrics(self):
        """The fabrics that are asked for."""
        return [one for one in LIBFABRIC if self.spec.satisfies(f"fabrics={one}")]
