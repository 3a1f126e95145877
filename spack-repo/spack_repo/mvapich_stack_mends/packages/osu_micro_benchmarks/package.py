"""OSU Micro-Benchmarks, over any MPI, an OpenSHMEM or a UPC, for host memory and for GPUs.

Not builtin's recipe, which has no stand-alone test, leaves pt2pt/persistent and congestion off
PATH and builds for MPI alone. The options are those of configure.ac of 7.5; a release before one
of them refuses it by a conflict, from the CHANGES file of 7.5.
"""

import os
import re

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *

# Each programming model by the compiler that configure tells it from, and the folders (below
# libexec/osu-micro-benchmarks) that its programs go to.
COMPILERS = {"mpi": ("mpicc", "mpicxx"), "openshmem": ("oshcc", "oshc++"), "upc": ("upcc", "")}
FOLDERS = {
    "mpi": (
        "mpi/collective",
        "mpi/congestion",
        "mpi/one-sided",
        "mpi/pt2pt",
        "mpi/pt2pt/persistent",
        "mpi/startup",
    ),
    "openshmem": ("openshmem",),
    "upc": ("upc",),
}
# Open MPI's mpiexec refuses root, and two ranks on one core, unless told: a container has both.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
XCCL_FOLDERS = ("xccl/collective", "xccl/pt2pt")
TOP = os.path.join("libexec", "osu-micro-benchmarks")


class OsuMicroBenchmarks(AutotoolsPackage, CudaPackage, ROCmPackage):
    """OSU Micro-Benchmarks: latency, bandwidth, collectives and start-up of an MPI, size by size.

    Write `@=7.5` for 7.5 itself: `@7.5` also takes 7.5.2.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/benchmarks/"
    url = "https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-7.5.tar.gz"

    license("BSD-3-Clause")

    version("7.5.2", sha256="618de3d0b1122f73a9229177d2da1e5cd62e431190580cb915f2605849cbbbdc")
    version("7.5.1", sha256="160d0d5e3c3cb022520ecb247e9875bb0973b1d3cadccd6c17624f8407c52e22")
    version("7.5", sha256="1cf84ac5419456202757a757c5f9a4f5c6ecd05c65783c7976421cfd6020b3b3")
    version("7.4", sha256="1edd0c2efa61999409bfb28740a7f39689a5b42b1a1b4c66d1656e5637f7cefc")
    version("7.3", sha256="8fa25b8aaa34e4b07ab3a4f30b7690ab46b038b08d204a853a9b6aa7bdb02f2f")
    version("7.2", sha256="1a4e1f2aab0e65404b3414e23bd46616184b69b6231ce9313d9c630bd6e633c1")
    version("7.1", sha256="2c4c931ecaf19e8ab72a393ee732e25743208c9a58fa50023e3fac47064292cc")
    version("7.0.1", sha256="04954aea082ba1b90a461ffab82a3cee43fe2d5a60fed99f5cb4585ac7da8c66")
    version("6.2", sha256="bb9dbc87dcf8ec6785977a61f6fceee8febf1a682488eaab4c58cf50e4fa985f")
    version("5.9", sha256="d619740a1c2cc7c02a9763931546b320d0fa4093c415ff3873c2958e121c0609")
    version(
        "5.7.1",  # what Expanse ran over MVAPICH2 2.3.7
        sha256="cb5ce4e2e68ed012d9952e96ef880a802058c87a1d840a2093b19bddc7faa165",
        url="https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-5.7.1.tgz",
    )

    variant(
        "models",
        default="mpi",
        values=("mpi", "openshmem", "upc"),
        multi=True,
        description="Programming models that are measured, each built with its own compiler",
    )
    variant("xccl", default=False, description="NCCL (with +cuda) or RCCL (with +rocm) as well")
    variant("sycl", default=False, description="GPU buffers by SYCL, of Intel's compilers")
    variant("papi", default=False, description="Counters of PAPI beside the times")
    variant("graphing", default=False, description="Plots of the results by gnuplot")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi")
    depends_on("sos", when="models=openshmem")
    # CUDA 13 changed cudaMemPrefetchAsync, which 5.9 to 7.5 call the old way.
    depends_on("cuda@:12", when="+cuda")
    depends_on("nccl", when="+cuda +xccl")
    depends_on("rccl", when="+rocm +xccl")
    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", when=f"+cuda +xccl cuda_arch={_arch}")
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"+rocm +xccl amdgpu_target={_arch}")
    depends_on("intel-oneapi-dpct", when="+sycl")
    depends_on("papi", when="+papi")
    depends_on("gnuplot", when="+graphing")
    depends_on("imagemagick", when="+graphing")

    requires(
        "^[virtuals=mpi] mvapich2-x",
        when="models=upc",
        msg="no package here brings a UPC compiler but MVAPICH2-X: use ^mvapich2-x (an external), "
        "or leave models=upc out",
    )
    requires(
        "%c,cxx=oneapi",
        when="+sycl",
        msg="SYCL needs Intel's compilers: use %oneapi, or ~sycl",
    )
    conflicts(
        "cuda_arch=none", when="+cuda +xccl", msg="NCCL is built for a GPU: set cuda_arch, e.g. 80"
    )
    conflicts("+xccl", when="~cuda ~rocm", msg="NCCL needs +cuda, RCCL +rocm: add one, or ~xccl")
    conflicts("+cuda", when="+rocm", msg="one kind of GPU in one build: use +cuda or +rocm")
    for _gpu in ("cuda", "rocm"):
        conflicts(
            "+sycl", when=f"+{_gpu}", msg=f"configure takes one of them: drop {_gpu} or sycl"
        )
    conflicts("+sycl", when="@:7.3", msg="Intel GPUs are known since 7.4: use @7.4:, or ~sycl")
    conflicts(
        "+xccl",
        when="@:7.2 +cuda",
        msg="before 7.3 NCCL's programs are others and go elsewhere: use @7.3:, or ~xccl",
    )
    conflicts("+xccl", when="@:7.2 +rocm", msg="RCCL is known since 7.3: use @7.3:, or ~xccl")

    conflicts("+papi", when="@:6", msg="PAPI is known since 7.0: use @7.0:, or ~papi")
    conflicts("+graphing", when="@:6.1", msg="plots are known since 6.2: use @6.2:, or ~graphing")

    # --- building: once for each model, into one prefix -----------------------------------------

    def chosen_models(self):
        """The models of this spec, in a fixed order."""
        return [name for name in COMPILERS if self.spec.satisfies(f"models={name}")]

    def compilers(self, model):
        """The C and the C++ compiler of a model, as configure options."""
        if model == "mpi":
            return [f"CC={self.spec['mpi'].mpicc}", f"CXX={self.spec['mpi'].mpicxx}"]
        owner = self.spec["sos" if model == "openshmem" else "mpi"]
        cc, cxx = COMPILERS[model]
        options = [f"CC={join_path(owner.prefix.bin, cc)}"]
        return options + ([f"CXX={join_path(owner.prefix.bin, cxx)}"] if cxx else [])

    def gpu_args(self):
        """What the benchmarks of MPI take for GPU buffers; those of other models take none."""
        spec, args = self.spec, []
        if spec.satisfies("+cuda"):
            args += ["--enable-cuda", f"--with-cuda={spec['cuda'].prefix}"]
            architectures = spec.variants["cuda_arch"].value
            if "none" not in architectures:
                args.append("NVCCFLAGS=" + " ".join(self.cuda_flags(architectures)))
            if spec.satisfies("+xccl"):
                args += ["--enable-ncclomb", f"--with-nccl={spec['nccl'].prefix}"]
        if spec.satisfies("+rocm"):
            args += ["--enable-rocm", f"--with-rocm={spec['hip'].prefix}"]
            if spec.satisfies("+xccl"):
                args += ["--enable-rcclomb", f"--with-rccl={spec['rccl'].prefix}"]
        if spec.satisfies("+sycl"):
            # --with-sycl wants one folder with compiler and dpcpp-ct; here they are two packages
            headers = join_path(
                spec["intel-oneapi-dpct"].package.component_prefix, "include", "dpct"
            )
            args += ["--enable-sycl", f"CPPFLAGS=-I{headers}"]
        return args

    def configure_args(self):
        """Options that all models share."""
        args = []
        if self.spec.satisfies("+papi"):
            args += ["--enable-papi", f"--with-papi={self.spec['papi'].prefix}"]
        if self.spec.satisfies("+graphing"):
            args += [
                f"--with-convert={self.spec['imagemagick'].prefix.bin}",
                f"--with-gnuplot={self.spec['gnuplot'].prefix.bin}",
            ]
        return args

    def in_each(self):
        """Each model with the folder that it is built in."""
        for model in self.chosen_models():
            with working_dir(join_path(self.stage.source_path, f"build-{model}"), create=True):
                yield model

    def configure(self, spec, prefix):
        """configure once for each model."""
        script = Executable(join_path(self.stage.source_path, "configure"))
        for model in self.in_each():
            more = self.gpu_args() if model == "mpi" else []
            script(f"--prefix={prefix}", *self.compilers(model), *self.configure_args(), *more)

    def build(self, spec, prefix):
        """make in each folder."""
        for _ in self.in_each():
            make()

    def install(self, spec, prefix):
        """make install from each folder, into one prefix."""
        for _ in self.in_each():
            make("install")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        """nvcc and the stub of the driver's library, for a build on a node without a GPU."""
        if self.spec.satisfies("+cuda"):
            env.prepend_path("PATH", self.spec["cuda"].prefix.bin)
            env.prepend_path("LIBRARY_PATH", self.spec["cuda"].prefix.lib64.stubs)

    @run_after("install")
    def every_model_is_there(self):
        """configure drops a model without a word when its compiler fails: say so instead."""
        wanted = [folder for model in self.chosen_models() for folder in FOLDERS[model][:1]]
        wanted += list(XCCL_FOLDERS[:1]) if self.spec.satisfies("+xccl models=mpi") else []
        missing = [one for one in wanted if not os.path.isdir(join_path(self.prefix, TOP, one))]
        if missing:
            raise InstallError(
                f"configure left out {', '.join(missing)}: its compiler did not pass its test",
                "to do     look for “checking for MPI_Init”, shmem_barrier_all or upc_memput in "
                "config.log of the build folder",
            )

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        """All programs on PATH."""
        folders = [folder for model in self.chosen_models() for folder in FOLDERS[model]]
        folders += XCCL_FOLDERS if self.spec.satisfies("+xccl") else ()
        for folder in folders:
            path = join_path(self.prefix, TOP, *folder.split("/"))
            if os.path.isdir(path):  # older releases lack congestion and persistent
                env.prepend_path("PATH", path)

    # --- stand-alone tests: `spack test run osu-micro-benchmarks` --------------------------------

    def launcher(self, ranks):
        """The command that starts ``ranks`` of a program, from how the MPI was built."""
        mpi = self.spec["mpi"]
        for name in ("mpiexec", "mpirun"):
            path = join_path(mpi.prefix.bin, name)
            if os.path.isfile(path):
                return Executable(path), ["-n", str(ranks)]
        srun = which("srun")
        if srun is None:
            raise SkipTest("the MPI has no launcher of its own, and there is no srun here")
        sinfo = which("sinfo", required=True)
        said = sinfo("-h", "-o", "%P %a %T", output=str, error=str, fail_on_error=False)
        # Outside of an allocation it goes to the default partition, whose name ends in an
        # asterisk; a state that ends in one is of nodes that do not respond.
        free = re.search(r"^\S+\* up (idle|mixed)$", said, re.M)
        if not free and not os.environ.get("SLURM_JOB_ID"):
            raise SkipTest(f"srun starts this MPI's ranks, and has no node to: {said}")
        # What --mpi= must say the MPI knows; others' builds tell srun by their environment.
        word = getattr(mpi.package, "slurms_word", None)
        kind = [f"--mpi={word}"] if word and mpi.satisfies("process_managers=slurm") else []
        return srun, [*kind, "-n", str(ranks)]

    def run_program(self, folder, name, arguments, pattern):
        """Start two ranks of a program and look for ``pattern`` in what they print."""
        if not self.spec.satisfies("models=mpi"):
            raise SkipTest("built without the benchmarks of MPI")
        start, words = self.launcher(2)
        program = join_path(self.prefix, TOP, *folder.split("/"), name)
        for name, value in OPEN_MPI.items():
            start.add_default_env(name, value)
        # A wrong provider or PMI hangs rather than fails.
        out = start(*words, program, *arguments, output=str, error=str, timeout=180)
        if not re.search(pattern, out, re.M):
            raise AssertionError(f"{name} did not print {pattern!r}; it printed:\n{out}")
        return out

    def test_world(self):
        """two ranks of osu_hello form one world"""
        out = self.run_program("mpi/startup", "osu_hello", [], r"with 2 processes")
        print("world of", re.search(r"with (\d+) processes", out).group(1))

    def test_latency(self):
        """osu_latency between two ranks"""
        self.run_program(
            "mpi/pt2pt", "osu_latency", ["-m", "8:8", "-i", "100", "-x", "10"], r"^8\s+\d+\.\d+"
        )

    def test_persistent(self):
        """osu_latency_persistent between two ranks"""
        if self.spec.satisfies("@:7.0"):
            raise SkipTest("persistent requests are measured since 7.1")
        self.run_program(
            "mpi/pt2pt/persistent",
            "osu_latency_persistent",
            ["-m", "8:8", "-i", "100", "-x", "10"],
            r"^8\s+\d+\.\d+",
        )

    def test_allreduce(self):
        """osu_allreduce over two ranks, its result checked"""
        checked = ["-c"] if self.spec.satisfies("@7.0:") else []
        self.run_program(
            "mpi/collective",
            "osu_allreduce",
            ["-m", "8:8", "-i", "100", "-x", "10", *checked],
            r"^8\s+\d+\.\d+" + (r"\s+Pass" if checked else ""),
        )
