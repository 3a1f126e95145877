"""MVAPICH 3.0, 4.0 and 4.1: the MPI library of The Ohio State University for Spack.

What each version's configure takes was read from its configure scripts (3.0: of the release
candidate; 4.1: taken from 4.0) and is held in easyconfigs/easyblocks/mvapich_options.py too; a test
compares. Which transport serves which fabric is environments/policy/fabrics.yaml.
"""

import os
import re

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.builtin.packages.mpich.package import MpichEnvironmentModifications
from spack_repo.mvapich_stack.products import mpi_libraries

from spack.package import *

from .checking import known_options, left_out, level_of, unknown_options, without_foreign_spawn
from .fabrics import EMBEDDED, LIBFABRIC, PROVIDER, SETS, UCX
from .said import variants_said
from .standalone import StandAloneTests
from .tables import FILE_SYSTEMS, OUTSIDE, REFUSALS, REFUSED_4_1


class Mvapich(
    StandAloneTests, MpichEnvironmentModifications, AutotoolsPackage, CudaPackage, ROCmPackage
):
    """MPI over libfabric (netmod=ofi), UCX (netmod=ucx) or both, by The Ohio State University.

    The variant `fabrics` says which networks it must drive; the libfabric or UCX beneath it is
    required to have been built for them.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = "https://mvapich.cse.ohio-state.edu/download/mvapich/mv2/mvapich-4.0.tar.gz"
    list_url = "https://mvapich.cse.ohio-state.edu/downloads/"

    # COPYRIGHT of the sources is the notice of Argonne National Laboratory (SPDX: mpich2).
    license("mpich2", checked_by="mvapich-stack")

    executables = ["^mpichversion$"]

    # Not this one: REFUSED_4_1, the first tarball that upstream published as 4.1 and replaced.
    version("4.1", sha256="25a53d3725b669e2c648158fb7c9fc5b1388953f3a2f949748586c447d0e43ee")
    version("4.0", sha256="c532f7bdd5cca71f78c12e0885c492f6e276e283711806c84d0b0f80bb3e3b74")
    version("3.0", sha256="ee076c4e672d18d6bf8dd2250e4a91fa96aac1db2c788e4572b5513d86936efb")

    provides("mpi@:4.1", when="@4.0:")  # over MPICH 4.3
    provides("mpi@:3.1", when="@:3")  # over MPICH 3.4

    # The solver may not choose these (sticky): it would rather embed a libfabric, or take another
    # netmod, than build what was asked, and nobody would notice.
    variant(
        "netmod",
        default="ucx",
        values=("ofi", "ucx"),
        multi=True,
        description="Transport: ofi (libfabric), ucx, or both, chosen when a program starts",
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
        values=any_combination_of("libfabric", "ucx", "hwloc"),
        description="Libraries taken from the copies in MVAPICH's source",
        sticky=True,
    )
    variant(
        "pmi",
        default="simple",
        values=("simple", "pmi1", "pmi2", "pmix", "cray"),
        multi=False,
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
        multi=False,
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
        multi=False,
        description="Check of arguments: never, unless switched off when running, always",
    )
    variant(
        "datatype_engine",
        default="auto",
        values=("auto", "dataloop", "yaksa"),
        multi=False,
        description="Packing of datatypes; yaksa also packs GPU buffers, and compiles long",
    )
    variant("fortran", default=True, description="Fortran bindings: mpif.h, mpi and mpi_f08")
    variant("level_zero", default=False, description="GPU buffers of Intel's Level Zero")
    variant("xpmem", default=False, description="Copy between processes by XPMEM")
    variant("cma", default=True, when="@4.0:", description="Copy between processes by CMA")
    variant("omb", default=False, description="Also the OSU Micro-Benchmarks of the source")
    variant("debug", default=False, description="Symbols, and nothing optimised away")
    variant("wrapperrpath", default=True, description="mpicc gives programs the library's path")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("gmake", type="build")
    depends_on("findutils", type="build")
    depends_on("pkgconfig", type="build")

    for _words in OUTSIDE["hwloc"]:
        depends_on("hwloc@2:", when=f"embedded:={_words}")
    # hwloc's own configure would otherwise take the host's, or none, unasked.
    depends_on("libpciaccess", when="embedded=hwloc")

    for _words in OUTSIDE["libfabric"]:
        with when(f"netmod=ofi embedded:={_words}"):
            depends_on("libfabric")
            for _fabric, _needed in LIBFABRIC.items():
                depends_on(f"libfabric {_needed}", when=f"fabrics={_fabric}")
            depends_on("libfabric +cuda", when="+cuda")
            depends_on("libfabric +rocm", when="+rocm")
            depends_on("libfabric +level_zero", when="+level_zero")
    for _words in OUTSIDE["ucx"]:
        with when(f"netmod=ucx embedded:={_words}"):
            # 1.9: the first with the calls that ch4:ucx makes; its configure refuses older ones.
            depends_on("ucx@1.9: +thread_multiple")
            for _fabric, _needed in UCX.items():
                depends_on(f"ucx {_needed}", when=f"fabrics={_fabric}")
            depends_on("ucx +cma", when="+cma")
            depends_on("ucx +xpmem", when="+xpmem")
            depends_on("ucx +cuda +gdrcopy", when="+cuda")
            depends_on("ucx +rocm", when="+rocm")

    # The embedded libraries build what they find: without these a fabric is left out unsaid.
    for _library, _fabrics in EMBEDDED.items():
        for _fabric, (_others, _) in _fabrics.items():
            for _needed in _others:
                depends_on(_needed, when=f"embedded={_library} fabrics={_fabric}")
    # CUDA 13 took cudaDeviceProp.computeMode away, which yaksa reads in 3.0 and 4.0.
    depends_on("cuda@:12", when="+cuda")

    depends_on("pmix", when="pmi=pmix")
    depends_on("cray-pmi", when="pmi=cray")
    depends_on("slurm", when="process_managers=slurm")
    depends_on("hip", when="+rocm")
    depends_on("hsa-rocr-dev", when="+rocm")
    depends_on("oneapi-level-zero", when="+level_zero")
    depends_on("xpmem", when="+xpmem")
    depends_on("lustre", when="file_systems=lustre")
    depends_on("daos", when="file_systems=daos")

    # MPI_Dist_graph_create hangs without it. Whether 4.1 needs it is not known.
    patch("dist-graph-to-itself.patch", when="@4.0")

    # 3.0's soname is MPICH's, libmpi.so.12, and both keep to the MPICH ABI. 4.0's is libmpi.so.0
    # (its libtool version is 0:0:0): a program linked to MPICH does not start with it, so it is
    # offered for no splice. 4.1's is not known. Programs in C and with mpi_f08 and MPI-IO that were
    # linked to MPICH 4.0.2 ran with 3.0rc in its place (2026-11-21); Spack's splice was not run.
    can_splice("mpich@3.4 device=ch4 +fortran", when="@3.0 +fortran file_systems=auto")

    # --- what does not go together, and what to say instead -----------------------------------

    for _fabric in LIBFABRIC:
        if _fabric not in UCX:
            requires(
                "netmod=ofi",
                when=f"fabrics={_fabric}",
                msg=f"UCX has no transport for {_fabric}: use netmod=ofi",
            )
    for _what, _when, _instead in REFUSALS:
        conflicts(_what, when=_when, msg=_instead)
    conflicts("platform=darwin", msg="MVAPICH is for Linux: use mpich")
    conflicts("platform=windows", msg="MVAPICH is for Linux: use msmpi")

    filter_compiler_wrappers("mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", relative_root="bin")

    # --- a build of the site's own, as an external --------------------------------------------

    @classmethod
    def determine_version(cls, exe):
        """The version, from `mpichversion`; None for MPICH's, or MVAPICH2's.

        MVAPICH-Plus says the same of itself; its folders tell, as they do to its own recipe.
        """
        if re.search(r"mvapich[-_/]?plus", os.path.realpath(exe)):
            return None
        said = re.search(
            r"^MVAPICH Version\s*:\s*(\S+)", Executable(exe)(output=str, error=str), re.M
        )
        return said.group(1) if said else None

    @classmethod
    def determine_variants(cls, exes, version):
        """The variants of each build, from what it says of itself, its library and its files.

        Which fabrics the transport beneath it drives cannot be seen: state `fabrics` by hand.
        """
        found = []
        for exe in exes:
            prefix = os.path.dirname(os.path.dirname(os.path.realpath(exe)))
            needed = []
            for folder in ("lib", "lib64"):
                library = os.path.join(prefix, folder, "libmpi.so")
                if os.path.exists(library):
                    with open(library, "rb") as elf:
                        parsed = parse_elf(elf, dynamic_section=True)
                    needed = [name.decode() for name in parsed.dt_needed_strs]
            omb = os.path.isdir(os.path.join(prefix, "libexec", "osu-micro-benchmarks"))
            text = Executable(exe)(output=str, error=str)
            found.append(" ".join([*variants_said(text, needed), "+omb" if omb else "~omb"]))
        return found

    # --- sources ------------------------------------------------------------------------------

    def do_fetch(self, mirror_only=False):
        """Fetch; where the bytes are those that upstream withdrew, say so."""
        try:
            super().do_fetch(mirror_only)
        except SpackError as err:
            if REFUSED_4_1 not in f"{err} {err.long_message}":
                raise
            raise InstallError(
                "this tarball of MVAPICH 4.1 is the first that upstream published under the name, "
                "and replaced",
                f"found     sha256 {REFUSED_4_1}\n"
                f"expected  sha256 {self.versions[self.version]['sha256']}\n"
                "to do     remove it from the mirror it came from, and fetch the present one from "
                f"{self.url_for_version(self.version)}",
            ) from err

    def patch(self):
        """Let mpicc link what a shared libfabric needs; let Slurm's PMI 2 compile.

        configure asks `pkg-config --static`: programs would need the development packages of every
        fabric that libfabric was built for. For the other, see without_foreign_spawn.
        """
        if self.spec.satisfies("netmod=ofi") and not self.spec.satisfies("embedded=libfabric"):
            filter_file("pkg-config --static --libs", "pkg-config --libs", "configure", string=True)
        if self.spec.satisfies("@4.0: pmi=pmi2 process_managers=slurm"):
            with open("src/util/mpir_pmi2.inc") as source:
                text = source.read()
            with open("src/util/mpir_pmi2.inc", "w") as source:
                source.write(without_foreign_spawn(text))

    # --- compilers ----------------------------------------------------------------------------

    @property
    def optimisation(self):
        """The level of the whole library: that of the user's cflags, or O2; O0 with +debug."""
        asked = [flag[1:] for flag in self.spec.compiler_flags.get("cflags", ())]
        levels = [flag for flag in asked if re.fullmatch("O[0-3]", flag)]
        return levels[-1] if levels else ("O0" if self.spec.satisfies("+debug") else "O2")

    def flag_handler(self, name, flags):
        """Let GCC 14 and 15 take C that older ones took; by the wrappers, so mpicc is clean."""
        flags = list(flags or [])
        if name in ("cflags", "cxxflags") and self.spec.satisfies("@:3"):
            # The mpl of this generation hears of no level from any option.
            flags.insert(0, "-" + self.optimisation)
        if name == "cflags":
            if self.spec.satisfies("%c=gcc@15:"):
                # C23, its default, knows no functions without prototypes.
                flags.append("-std=gnu17")
            if self.spec.satisfies("@:3 %c=gcc@14:"):
                # Errors since GCC 14, warnings before. (4.0, built by GCC 12, warns of none.)
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
        """The -O level for every part, and what gfortran 10 and newer need."""
        super().setup_build_environment(env)
        # --enable-fast reaches the MPI itself, and not its parts (mpl, ROMIO, hydra).
        for name in ("CFLAGS", "CXXFLAGS", "FFLAGS", "FCFLAGS"):
            env.set("MPICHLIB_" + name, "-" + self.optimisation)
        if self.spec.satisfies("+fortran %fortran=gcc@10:"):
            # One call of MPI_Send with reals and one with integers in a file: what mpif.h programs
            # do, an error since gfortran 10. In the environment, so that mpifort says it too.
            for name in ("FFLAGS", "FCFLAGS"):
                env.set(name, "-fallow-argument-mismatch")
        if self.spec.satisfies("@:3 pmi=cray"):
            pmi = self.spec["cray-pmi"].prefix
            env.set("CRAY_PMI_INCLUDE_OPTS", f"-I{pmi.include}")
            env.set("CRAY_PMI_POST_LINK_OPTS", f"-L{pmi.lib}")

    # --- configure ----------------------------------------------------------------------------

    @property
    def netmods(self):
        """The netmods, first the one that runs when nothing else is said."""
        asked = [name for name in ("ucx", "ofi") if self.spec.satisfies(f"netmod={name}")]
        native = any(self.spec.satisfies(f"fabrics={one}") for one in ("infiniband", "roce", "shm"))
        return asked if native else asked[::-1]

    @property
    def managers(self):
        """Process managers of the source to build; empty when something else starts the ranks."""
        named = self.spec.variants["process_managers"].value
        if "auto" in named:
            return ["hydra", "mpirun"] if self.spec.satisfies("@:3") else ["hydra"]
        return [one for one in ("hydra", "gforker", "remshell") if one in named]

    def launcher_args(self):
        """--with-pm, --with-pmi and --with-slurm, as each version spells them."""
        spec, old = self.spec, self.spec.satisfies("@:3")
        pmi = spec.variants["pmi"].value
        srun = spec.satisfies("process_managers=slurm")
        slurms = srun and pmi in ("pmi1", "pmi2")
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
                # No word at all: 4.x reads --with-pmi=simple as a path. Its own libpmi speaks both.
                "simple": [],
                "pmi1": ["--with-pmi=pmi1", *slurms_library],
                "pmi2": ["--with-pmi=pmi2", *slurms_library],
                "pmix": ["--with-pmi=pmix", f"--with-pmix={self.root('pmix')}"],
                "cray": ["--with-pmi=pmi2", f"--with-pmi2={self.root('cray-pmi')}"],
            }
        # Unless refused, hydra's proxy links the host's libslurm unasked.
        slurm = f"--with-slurm={self.root('slurm')}" if slurms else "--without-slurm"
        return [pm, *words[pmi], slurm]

    def root(self, name):
        """Where a dependency is; empty when the spec has none of that name."""
        return self.spec[name].prefix if self.spec.dependencies(name) else ""

    def library_args(self):
        """Where transports, hwloc and copy modules come from."""
        spec = self.spec
        args = []
        for name, option in (("ofi", "libfabric"), ("ucx", "ucx")):
            if spec.satisfies(f"netmod={name}"):
                inside = spec.satisfies(f"embedded={option}")
                args.append(f"--with-{option}=" + ("embedded" if inside else self.root(option)))
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
        hwloc = "embedded" if spec.satisfies("embedded=hwloc") else self.root("hwloc")
        option = "--with-hwloc-prefix" if spec.satisfies("@:3") else "--with-hwloc"
        args.append(f"{option}={hwloc}")
        args.append(f"--with-xpmem={self.root('xpmem')}" if "+xpmem" in spec else "--without-xpmem")
        return args

    def gpu_args(self):
        """One kind of GPU, or none: configure takes what it finds unless told not to."""
        spec, args = self.spec, []
        for name, option, package in (
            ("cuda", "cuda", "cuda"),
            ("rocm", "hip", "hip"),
            ("level_zero", "ze", "oneapi-level-zero"),
        ):
            if option == "hip" and spec.satisfies("@:3"):
                continue
            asked = spec.satisfies("+" + name)
            args.append(f"--with-{option}={self.root(package)}" if asked else f"--without-{option}")
        if spec.satisfies("+cuda"):
            chosen = [one for one in spec.variants["cuda_arch"].value if one != "none"]
            every = "all" if spec.satisfies("@:3") else "all-major"
            args.append("--with-cuda-sm=" + (",".join(chosen) or every))
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
        fast = self.optimisation + ("" if spec.satisfies("+debug") else ",ndebug")
        return [
            "--with-device=ch4:" + ",".join(self.netmods),
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

    @run_before("configure")
    def every_option_is_known(self):
        """Refuse what no configure script of this source takes: it would be ignored silently."""
        inside = [one for one in OUTSIDE if self.spec.satisfies(f"embedded={one}")]
        known = known_options(self.stage.source_path, inside)
        unknown = unknown_options(self.configure_args(), known)
        if unknown:
            raise InstallError(
                f"configure of {self.spec.format('{name}@{version}')} does not know "
                f"{', '.join(unknown)}: the recipe and this source do not fit"
            )

    @run_after("configure")
    def every_part_is_optimised(self):
        """Refuse Makefiles without the -O level that was asked for."""
        for part in (".", "src/mpl", "src/mpi/romio", "src/pm/hydra", "modules/yaksa"):
            if part == "src/mpl" and self.spec.satisfies("@:3"):
                continue  # told by flag_handler
            makefile = os.path.join(self.stage.source_path, part, "Makefile")
            if not os.path.exists(makefile):
                continue
            with open(makefile, errors="replace") as made:
                level = level_of(made.read())
            if level != self.optimisation:
                raise InstallError(
                    f"{makefile}: CFLAGS says {level or 'no -O at all'}, "
                    f"asked for {self.optimisation}"
                )

    @run_after("configure")
    def every_fabric_is_there(self):
        """Refuse an embedded library that went on without a fabric that was asked for."""
        for library, fabrics in EMBEDDED.items():
            if not self.spec.satisfies(f"embedded={library}"):
                continue
            wanted = {
                fabric: word
                for fabric, (_, word) in fabrics.items()
                if self.spec.satisfies(f"fabrics={fabric}")
            }
            with open(join_path(self.stage.source_path, "modules", library, "config.h")) as made:
                missing = left_out(made.read(), wanted)
            for fabric, word in missing.items():
                raise InstallError(
                    f"the embedded {library} was configured without {fabric}: "
                    f"modules/{library}/config.h defines no {word}; its config.log says why"
                )

    # --- use ----------------------------------------------------------------------------------

    @property
    def libs(self):
        """libmpi, and the libraries of bindings."""
        return mpi_libraries(self.spec)

    def setup_mpi_wrapper_variables(self, env):
        """The compilers that this MPI is, for build systems that look at variables."""
        wrappers = {"MPICC": "mpicc", "MPICXX": "mpicxx"}
        if self.spec.satisfies("+fortran"):
            wrappers.update(MPIFC="mpifort", MPIF77="mpif77", MPIF90="mpif90")
        for variable, wrapper in wrappers.items():
            env.set(variable, join_path(self.prefix.bin, wrapper))

    def setup_run_environment(self, env):
        """Where it is, its compilers, and what keeps a run from falling back without a word."""
        for variable in ("MPI_HOME", "MPI_ROOT"):
            env.set(variable, self.prefix)
        self.setup_mpi_wrapper_variables(env)
        if self.spec.satisfies("process_managers=slurm"):
            # A plain srun would start ranks that each believe to be alone.
            env.set("SLURM_MPI_TYPE", self.slurms_word)
        provider = self.provider
        if provider:
            env.set("FI_PROVIDER", provider)
        if len(self.fabrics) == 1:
            for name, value in SETS[self.netmods[0]].get(self.fabrics[0], {}).items():
                env.set(name, value)
        if self.spec.satisfies("+omb"):
            for kind in ("pt2pt", "collective", "one-sided", "startup"):
                env.prepend_path("PATH", join_path(self.omb_folder, kind))

    @property
    def omb_folder(self):
        """Below which the OSU Micro-Benchmarks of the source are installed."""
        return join_path(self.prefix.libexec, "osu-micro-benchmarks", "mpi")

    @property
    def slurms_word(self):
        """What srun --mpi= must say."""
        pmi = self.spec.variants["pmi"].value
        # Slurm's libpmi talks to srun by itself; our own PMI 1 and 2 are served by its plugin pmi2.
        return {"pmix": "pmix", "pmi1": "none"}.get(pmi, "pmi2")

    @property
    def provider(self):
        """FI_PROVIDER where libfabric has one fabric to drive; otherwise None."""
        if self.netmods[0] != "ofi" or len(self.fabrics) != 1:
            return None
        if self.fabrics == ["infiniband"] and self.spec.satisfies("@4.0: embedded=libfabric"):
            return "mverbs;ofi_ucr"
        return PROVIDER[self.fabrics[0]]

    @property
    def fabrics(self):
        """The fabrics that are asked for."""
        return [one for one in LIBFABRIC if self.spec.satisfies(f"fabrics={one}")]

    def setup_dependent_build_environment(self, env, dependent_spec):
        """MPICC and the like, and the wrappers told to call Spack's compilers."""
        self.setup_mpi_wrapper_variables(env)
        super().setup_dependent_build_environment(env, dependent_spec)
