"""OMB-J: the OSU Micro-Benchmarks in Java. Builtin has those in C (osu-micro-benchmarks)."""

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class OmbJ(Package):
    """Latency, bandwidth and blocking collectives in Java, over MVAPICH2-J or Open MPI's Java.

    They are in the tarball of the C benchmarks. With Open MPI's bindings those that MVAPICH2-J
    alone can run are left out, and the other way round, as their README says.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/benchmarks/"
    url = "https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-7.5.2.tar.gz"

    license("BSD-3-Clause", checked_by="mvapich-stack")

    # The hash is builtin's of osu-micro-benchmarks.
    version("7.5.2", sha256="618de3d0b1122f73a9229177d2da1e5cd62e431190580cb915f2605849cbbbdc")

    variant(
        "bindings",
        default="mvapich2-j",
        values=("mvapich2-j", "openmpi"),
        multi=False,
        description="Whose Java bindings of MPI",
    )

    depends_on("java", type=("build", "run"))
    depends_on("mvapich2-j", when="bindings=mvapich2-j")
    depends_on("openmpi +java", when="bindings=openmpi")

    @property
    def bindings(self):
        """The jar of the bindings."""
        if self.spec.satisfies("bindings=openmpi"):
            return join_path(self.spec["openmpi"].prefix.lib, "mpi.jar")
        return join_path(self.spec["mvapich2-j"].prefix.lib, "mvapich2-j.jar")

    def sources(self):
        """The benchmarks for these bindings, and what they share."""
        ours = self.spec.satisfies("bindings=openmpi")
        found = find("mpi", "*.java", recursive=True)
        # OSUBandwidthOMPI stands for OSUBandwidth, OMPIHelloWorld for HelloWorld
        special = {one for one in found if "OMPI" in os.path.basename(one)}
        plain = {os.path.basename(one).replace("OMPI", "") for one in special}
        if ours:
            return [one for one in found if os.path.basename(one) not in plain]
        return [one for one in found if one not in special]

    def install(self, spec, prefix):
        classes = join_path(prefix, "share", "omb-j")
        mkdirp(classes)
        javac = Executable(join_path(spec["java"].prefix.bin, "javac"))
        with working_dir("java"):
            javac("-cp", self.bindings, "-d", classes, *self.sources())
        install("COPYRIGHT", prefix.share)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.prepend_path("CLASSPATH", join_path(self.prefix, "share", "omb-j"))
        env.prepend_path("CLASSPATH", self.bindings)
