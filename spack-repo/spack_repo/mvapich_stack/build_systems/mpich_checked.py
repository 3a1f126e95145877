"""What the recipes of MVAPICH and MVAPICH2 check while they build, and run when they are tested.

It refuses or it tests, and changes nothing of what is built: Spack's package hash is of package.py
alone.
"""

import os
import re
import socket

from spack.package import *


class MpichChecked(PackageBase):
    """Refusals around configure, and ranks for stand-alone tests, of an MPI over MPICH.

    The recipe has `optimisation` (O2 …), `slurms_word` (what srun --mpi= must say), `managers`
    (process managers that are built; the first is the one to use), `calls_itself` and `device`
    (what mpichversion says that it is).
    """

    #: variables of each run in which four ranks receive from any source
    any_source_ways = ({},)

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

    def launch(self, count=2):
        """Words that start ranks on this host, as this build's ranks are started."""
        if self.spec.satisfies("process_managers=slurm"):
            return [*self.srun(), "-n", str(count)]
        if not self.managers:
            raise SkipTest("process_managers=none: something outside this build starts its ranks")
        if self.managers[0] == "mpirun":
            return self.by_mpirun_rsh(count)
        if self.managers == ["remshell"]:
            raise SkipTest("remshell starts ranks by ssh, also on this host")
        return [join_path(self.prefix.bin, "mpiexec"), "-n", str(count)]

    def by_mpirun_rsh(self, count=2):
        """Words that start ranks here through no ssh: it is left out for the host's own name
        alone, not for localhost (seen with 2.3.7). In a file, because 3.0rc's ranks hang in
        MPI_Init where the command line names the hosts."""
        with open("hosts", "w") as hosts:
            hosts.write(f"{socket.gethostname()}:{count}\n")
        rsh = join_path(self.prefix.bin, "mpirun_rsh")
        return [rsh, "-np", str(count), "-hostfile", os.path.abspath("hosts")]

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

    def ranks(self, wrapper, source, launch, variables=()):
        """What ranks of a source print, which the recipe of mvapich keeps for these tests."""
        packages = os.path.join(os.path.dirname(os.path.dirname(__file__)), "packages")
        path = join_path(packages, "mvapich", "test", source)
        program = join_path(os.getcwd(), os.path.splitext(source)[0])
        Executable(join_path(self.prefix.bin, wrapper))("-O1", path, "-o", program)
        # MVAPICH2 and 3.0 end in MPI_Init where they have fewer cores than ranks, and bind them.
        sets = {"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0", **dict(variables)}
        if self.spec.satisfies("~wrapperrpath"):
            # the program does not know where the library is: a module or `spack load` tells it
            there = os.environ.get("LD_LIBRARY_PATH", "")
            sets["LD_LIBRARY_PATH"] = f"{self.prefix.lib}:{there}".rstrip(":")
        said = [f"{name}={value}" for name, value in sets.items()]
        # mpirun_rsh hands on what stands before the program, the others the environment.
        rsh = launch[0].endswith("mpirun_rsh")
        count = launch[launch.index("-np" if rsh else "-n") + 1]
        words = [*launch, *(said if rsh else []), program, count]
        print(*([] if rsh else said), *words)
        # A wrong provider, device or PMI hangs rather than fails. Not Executable's own `timeout`,
        # which ends the launcher alone, and then waits for the ranks.
        output = Executable("timeout")(
            "--kill-after=10", "180", *words, output=str, error=str, extra_env=sets
        )
        print(output)
        return output

    @property
    def expected(self):
        """What rank 0 must print: a world of two, this version, this device.

        A re-release may say the name of the first: 2.3.7-1 says 2.3.7 (seen, of its GA tree).
        """
        names = {str(self.version), str(self.version).partition("-")[0]}
        version = "|".join(re.escape(name) for name in sorted(names))
        return [
            r"(?m)^world of 2$",
            rf"(?m)^{self.calls_itself} Version *:\s+(?:{version})(?![0-9.-])",
            rf"(?m)^{self.calls_itself} Device *:\s+{re.escape(self.device)}\s*$",
        ]

    def test_world(self):
        """two ranks see one world of two, and the library is the one asked for"""
        check_outputs(self.expected, self.ranks("mpicc", "world.c", self.launch()))

    def test_world_mpirun_rsh(self):
        """the same, started by mpirun_rsh where it was built beside another launcher"""
        if "mpirun" not in self.managers[1:]:
            raise SkipTest("mpirun_rsh was not built, or test_world is started by it")
        check_outputs(self.expected, self.ranks("mpicc", "world.c", self.by_mpirun_rsh()))

    def test_world_fortran(self):
        """two ranks of a program that uses mpi_f08"""
        if self.spec.satisfies("~fortran"):
            raise SkipTest("built without Fortran")
        output = self.ranks("mpifort", "worldf.f90", self.launch())
        check_outputs([r"(?m)^fortran world of 2$"], output)

    def test_any_source(self):
        """four ranks receive from any source, each way that this build's ranks reach each other"""
        for variables in self.any_source_ways:
            if "MPIR_CVAR_NOLOCAL" in variables and self.spec.satisfies("mvapich@:3"):
                # Ranks that take themselves for alone make the same files in /dev/shm: a third of
                # the runs ends in MPI_Init by a bus error (3.0rc, ch4:ucx).
                continue
            output = self.ranks("mpicc", "any_source.c", self.launch(4), variables)
            check_outputs([r"(?m)^any source of 4$"], output)

    def test_what_it_says(self):
        """mpichversion says the version and the device without being launched"""
        said = Executable(join_path(self.prefix.bin, "mpichversion"))(output=str, error=str)
        check_outputs(self.expected[1:], said)
