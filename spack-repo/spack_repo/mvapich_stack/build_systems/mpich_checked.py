"""What the recipes of MVAPICH and MVAPICH2 check while they build, and run when they are tested.

It refuses or it tests, and changes nothing of what is built: Spack's package hash is of package.py
alone.
"""

import os
import re

from spack.package import *


class MpichChecked(PackageBase):
    """Refusals around configure, and ranks for stand-alone tests, of an MPI over MPICH.

    The recipe has `optimisation` (O2 …) and `slurms_word` (what srun --mpi= must say).
    """

    def refuse_unknown_options(self, foreign):
        """Refuse what no configure script of this source takes: it would be ignored silently.

        `foreign`: folders whose scripts belong to tests or to libraries that are not the MPI's.
        """
        source, known = self.stage.source_path, set()
        for folder, folders, files in os.walk(source):
            if os.path.relpath(folder, source).startswith(foreign):
                folders[:] = []
            elif "configure" in files:
                with open(os.path.join(folder, "configure"), errors="replace") as script:
                    block = re.search(r"^ac_user_opts='(.*?)'$", script.read(), re.M | re.S)
                known.update(block.group(1).split() if block else [])
        unknown = []
        for word in self.configure_args():
            name = re.sub("^--disable-", "--enable-", word.split("=")[0])
            name = re.sub("^--without-", "--with-", name)
            if word.startswith("--") and name[2:].replace("-", "_") not in known:
                unknown.append(word)
        if unknown:
            raise InstallError(
                f"configure of {self.spec.format('{name}@{version}')} does not know "
                f"{', '.join(unknown)}: the recipe and this source do not fit"
            )

    def refuse_unoptimised(self, parts):
        """Refuse Makefiles without the -O level that was asked for."""
        for part in parts:
            makefile = os.path.join(self.stage.source_path, part, "Makefile")
            if not os.path.exists(makefile):
                continue
            with open(makefile, errors="replace") as made:
                line = re.search(r"^CFLAGS\s*=(.*)$", made.read(), re.M)
            levels = re.findall(r"(?:^|\s)-(O[0-9sgz]?|Ofast)(?=\s|$)", line[1]) if line else []
            if levels[-1:] != [self.optimisation]:
                raise InstallError(
                    f"{makefile}: CFLAGS says {levels or 'no -O at all'}, "
                    f"asked for {self.optimisation}"
                )

    # --- stand-alone tests: `spack test run` ----------------------------------------------------

    def compiled(self, wrapper, source):
        """The program made of a source that the recipe of mvapich keeps for these tests."""
        packages = os.path.join(os.path.dirname(os.path.dirname(__file__)), "packages")
        path = join_path(packages, "mvapich", "test", source)
        program = join_path(os.getcwd(), os.path.splitext(source)[0])
        Executable(join_path(self.prefix.bin, wrapper))("-O1", path, "-o", program)
        return program

    def srun(self):
        """srun with its --mpi; skips where Slurm could not start two ranks soon."""
        slurm = self.spec["slurm"].prefix.bin
        sinfo = Executable(join_path(slurm, "sinfo"))
        said = sinfo("-h", "-o", "%P %a %T", output=str, error=str, fail_on_error=False)
        # Outside of an allocation it goes to the default partition, whose name ends in an
        # asterisk; a state that ends in one is of nodes that do not respond.
        free = re.search(r"^\S+\* up (idle|mixed)$", said, re.M)
        if not free and not os.environ.get("SLURM_JOB_ID"):
            raise SkipTest(f"srun starts this build's ranks, and has no node to: {said}")
        return [join_path(slurm, "srun"), f"--mpi={self.slurms_word}"]

    def run_ranks(self, launch, program, count, variables):
        """What `count` ranks of a program print, started by the words of `launch`."""
        if self.spec.satisfies("~wrapperrpath"):
            # the program does not know where the library is: a module or `spack load` tells it
            there = os.environ.get("LD_LIBRARY_PATH", "")
            variables["LD_LIBRARY_PATH"] = f"{self.prefix.lib}:{there}".rstrip(":")
        said = [f"{name}={value}" for name, value in variables.items()]
        # mpirun_rsh hands on what stands before the program, the others the environment.
        rsh = said if launch[0].endswith("mpirun_rsh") else []
        words = [*launch, *rsh, program, str(count)]
        print(*([] if rsh else said), *words)
        # A wrong provider, device or PMI hangs rather than fails.
        output = Executable(words[0])(
            *words[1:], output=str, error=str, timeout=180, extra_env=variables
        )
        print(output)
        return output
