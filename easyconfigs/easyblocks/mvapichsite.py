"""An MPI that the site already has, as an EasyBuild module: links to it, nothing is compiled.

Toolchains look for ``$EBROOT…/bin``, ``lib`` and ``include``, and the module hierarchy wants a
module that opens what is built over the MPI. The easyconfig names the site's ``prefix``.
"""

import os
import shutil
from pathlib import Path

from easybuild.framework.easyblock import EasyBlock
from easybuild.framework.easyconfig import MANDATORY
from easybuild.tools.build_log import EasyBuildError

WRAPPERS = {"MPICC": "mpicc", "MPICXX": "mpicxx", "MPIFC": "mpifort", "MPIF90": "mpifort"}


class MvapichSite(EasyBlock):
    """Support for an MPI that is installed below a folder of the site."""

    @staticmethod
    def extra_options():
        """Easyconfig parameters of this easyblock."""
        return EasyBlock.extra_options({"prefix": [None, "Where the site has the MPI", MANDATORY]})

    def configure_step(self):
        """Stop where there is no MPI to compile with."""
        for name in ("bin/mpicc", "include/mpi.h"):
            if not Path(self.cfg["prefix"], name).exists():
                raise EasyBuildError(
                    "%s has no %s: correct the prefix of %s under externals of the system's file",
                    self.cfg["prefix"],
                    name,
                    self.name,
                )

    def build_step(self):
        """Nothing to compile."""

    def install_step(self):
        """Link what is below the site's prefix, file by file.

        EasyBuild takes a folder that is a link for a path outside, and refuses it.
        """
        for name in ("bin", "include", "lib", "lib64", "libexec", "share/man"):
            there = Path(self.cfg["prefix"], name)
            if there.is_dir():
                shutil.copytree(there, Path(self.installdir, name), copy_function=os.symlink)

    def sanity_check_step(self, *args, **kwargs):
        """The wrapper compiles and links a program that calls MPI."""
        program = "printf '#include <mpi.h>\\nint main(void) { return MPI_Init(0, 0); }\\n'"
        compiled = f"{program} | %(installdir)s/bin/mpicc -x c - -o /dev/null"
        paths = {"files": ["bin/mpicc", "include/mpi.h"], "dirs": ["bin"]}
        command = compiled.replace("%(installdir)s", self.installdir)
        super().sanity_check_step(custom_paths=paths, custom_commands=[command])

    def make_module_extra(self, *args, **kwargs):
        """MPI_HOME, the wrappers, and one MPI at a time."""
        txt = super().make_module_extra(*args, **kwargs)
        for variable in ("MPI_HOME", "MPI_ROOT"):
            txt += self.module_generator.set_environment(variable, self.cfg["prefix"])
        for variable, wrapper in WRAPPERS.items():
            path = f"{self.cfg['prefix']}/bin/{wrapper}"
            txt += self.module_generator.set_environment(variable, path)
        return txt + 'family("mpi")\n'
