import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Hpcc(Package):
    """Stands for HPCC. While it is half installed it runs what MVSTACK_TEST_HOOK names."""

    homepage = "https://hpcchallenge.org/"
    has_code = False

    version("1.5.0")

    depends_on("c", type="build")
    depends_on("mpi")

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        with open(join_path(prefix.bin, "hpcc"), "w") as script:
            script.write("#!/bin/sh\necho half\n")
        hook = os.environ.get("MVSTACK_TEST_HOOK")
        if hook:
            Executable("bash")(hook)
        with open(join_path(prefix.bin, "hpcc"), "w") as script:
            script.write("#!/bin/sh\necho whole\n")
        set_executable(join_path(prefix.bin, "hpcc"))
