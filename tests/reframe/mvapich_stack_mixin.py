"""The contract of every check of mvapich-stack: what it may rely on, and what is proved of each.

A check is a ReFrame test with this mixin. It runs in an environment whose ``extras`` (which
settings.py takes from the plan) hold:

``mpi``        the plan's entry of the MPI build under test: product, version, device, launch, …
``tree``       the folder below which everything under test was installed
``packages``   what else the plan installed

The mixin starts programs by the plan's launch line, the one that the module's help prints, and
gives helpers whose messages say what a person should look at.
"""

import os
import re
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError

import flux_job
import references
from planned_launcher import PlannedLauncher

# The libraries that are MPI itself; Debian's MPICH calls its own libmpich.
LIBMPI = re.compile(r"/libmpi(ch)?\.so[.\d]*$")
# What an MPI that is measured may come without, as PyPI's MPICH does.
LACKING = {
    "libmpifort": "a program in Fortran cannot run over it",
    "libmpicxx": "a program with MPI's C++ bindings cannot run over it",
}
# The last line of a job script; not every scheduler tells how a job ended.
ENDED = "job-script-ended"
# Launchers that come with the MPI, so that the right one lies in its tree.
OWN_LAUNCHERS = ("mpiexec", "mpirun", "mpirun_rsh")


def tail(text):
    """The last lines of ``text`` as one."""
    return " / ".join(line for line in text.splitlines()[-3:]) or "nothing"


def library_name(path):
    """``libmpifort`` of .../libmpifort.so.12, and of Debian's .../libmpichfort.so.12."""
    return Path(path).name.partition(".so")[0].replace("libmpich", "libmpi")


class MvapichStackMixin(rfm.RegressionTestPlugin):
    """Launch line, compilers, time limit and proofs that all checks share."""

    #: Which benchmark made the figures, for the report: "IMB-MPI1", "hpcc", …
    benchmark = variable(str, value="", loggable=True)

    @run_after("init")
    def agree_to_the_contract(self):
        """Any system, every MPI build; two ranks; a limit, for a hang is a failure."""
        self.valid_systems = ["*"]
        self.valid_prog_environs = ["+mpi"]
        self.descr = type(self).__doc__
        self.num_tasks = 2
        if self.time_limit is None:
            self.time_limit = "60s"
        self.build_time_limit = "120s"

    @run_after("setup")
    def on_ranks(self):
        """On another number of ranks, where `mvstack compare` asks for it."""
        self.num_tasks = self.mpi.get("ranks", self.num_tasks)

    def ask_for(self, ranks):
        """So many ranks; or as many as a "node", or the "nodes", of a job of the plan."""
        if ranks not in ("node", "nodes"):
            self.num_tasks = ranks
        else:
            job = self.current_environ.extras
            nodes = 1 if ranks == "node" else job["nodes"]
            self.skip_if(ranks == "nodes" and nodes == 1, "a job of the plan has one node")
            self.num_tasks_per_node = job["per_node"]
            self.num_tasks = nodes * job["per_node"]

    @property
    def mpi(self):
        """The plan's entry of the MPI build under test."""
        return self.current_environ.extras["mpi"]

    @property
    def under_test(self):
        """What people call it: a peer that is measured has the row of the MPI that it replaces."""
        return self.mpi.get("peer") or self.mpi["module"]

    @property
    def tree(self):
        """The folder below which everything under test was installed."""
        return self.current_environ.extras["tree"]

    def package(self, name):
        """The plan's entry of package ``name`` for this MPI build, or None."""
        for package in self.current_environ.extras["packages"]:
            if package["name"].lower() == name.lower() and package.get("mpi") in (
                None,
                "",
                self.mpi["module"],
            ):
                return package
        return None

    @run_before("run")
    def launch_as_planned(self):
        """Start the program by the plan's launch line; say which launcher that is."""
        self.job.launcher = PlannedLauncher(self.mpi["launch"])
        launcher = shlex.split(self.mpi["launch"])[0]
        self.prerun_cmds = [
            *self.mpi.get("instead", []),  # another MPI in the place of that of the module
            *self.prerun_cmds,
            f"ranks={self.num_tasks}",
            f'echo "launcher $(command -v {launcher})"',
        ]
        if "-hostfile hosts" in self.mpi["launch"]:  # mpirun_rsh asks no scheduler
            self.prerun_cmds += [f"{self.current_environ.extras['hosts']} > hosts"]
        self.postrun_cmds = [*self.postrun_cmds, f"echo {ENDED}"]
        if hasattr(self.job, "fluxjob"):
            flux_job.ask_for(self)

    @run_before("sanity")
    def tell_what_did_not_start(self):
        """Before ReFrame, which says no more than the exit code."""
        found = re.search(r"^launcher (.*)$", self.file(self.stdout), re.M)
        launcher = shlex.split(self.mpi["launch"])[0]
        if found and not found[1]:
            raise SanityError(
                f"the launcher {launcher} of the plan's launch line is not on PATH: look at "
                f"`module show {self.mpi['module']}`"
            )
        if found and Path(launcher).name in OWN_LAUNCHERS and not self.below_tree(found[1]):
            raise SanityError(
                f"{found[1]} is not the launcher of the MPI under test ({self.under_test}): it "
                f"lies outside {self.mpi.get('provided') or self.tree}. Another {launcher} comes "
                f"first on PATH, and programs started by "
                f"it may each see a world of 1: look at the modules that are loaded, and at "
                f"`module show {self.mpi['module']}`"
            )
        said = re.search(
            r"^(\S+): error while loading shared libraries: (\S+): (.*)",
            self.file(self.stderr),
            re.M,
        )
        if said:
            raise SanityError(
                f"{said[1]} did not start: the library {said[2]}, which it or the MPI needs, is "
                f"not there ({said[3]}). Run mpi-doctor, with {self.mpi['module']} loaded, on a "
                f"node of this partition: it names the file that needs it, and what to do"
            )

    def output(self):
        """What the job printed, to its end."""
        text = self.file(self.stdout)
        if ENDED not in text or not re.search(r"^launcher ", text, re.M):
            raise SanityError(f"the job ended before its time; it printed {tail(text)}")
        return text

    def file(self, name):
        """The text of a file that the job wrote."""
        path = Path(self.stagedir, str(name))
        return path.read_text(errors="replace") if path.exists() else ""

    def below_tree(self, path, places=()):
        """Whether ``path``, links followed, lies in the tree under test, or is the site's MPI."""
        places = places or [self.tree, self.mpi.get("provided") or self.tree]
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(place)) for place in places)

    def prove_libmpi(self, loaded, who):
        """Fail unless each of the paths ``loaded`` that is an MPI is that of the plan."""
        mpi = sorted({path for path in loaded if LIBMPI.search(path)})
        place = self.mpi.get("provided") or self.tree
        for path in loaded:
            library = library_name(path)
            wanted = self.mpi.get("loads", {}).get(library)
            if wanted and not Path(wanted).exists():
                raise SanityError(
                    f"{who} loaded {path}, and the MPI that is measured comes without {library}: "
                    f"{LACKING[library]}"
                )
            if wanted and os.path.realpath(path) != wanted:
                raise SanityError(
                    f"{who} loaded {path}, and not {wanted} of the MPI that is measured: a program "
                    f"with an RPATH, as Spack builds it, cannot run over another MPI; else look at "
                    f"LD_LIBRARY_PATH"
                )
        if not mpi:
            raise SanityError(f"{who} loaded no libmpi: is it a static or a serial program?")
        for path in mpi:
            if not self.below_tree(path, [place]):
                raise SanityError(
                    f"{who} loaded {path}, which is not the MPI under test ({self.under_test} "
                    f"below {place}): look at LD_LIBRARY_PATH and at `ldd` of the program"
                )

    def trace_loader(self, *command):
        """Run ``command`` so that every rank's dynamic loader notes what it loaded."""
        self.executable = "env"
        self.executable_opts = ["LD_DEBUG=libs", "LD_DEBUG_OUTPUT=loader", *command]

    def prove_traced(self, program=""):
        """Fail unless each rank started by :meth:`trace_loader` loaded the MPI under test.

        Of a job that runs several programs: each rank of ``program``.
        """
        name = f"loader.{program}.*" if program else "loader.*"
        traces = map(self.file, Path(self.stagedir).glob(name))
        ranks = [re.findall(r"calling init: (\S+)", trace) for trace in traces]
        ranks = [loaded for loaded in ranks if any(LIBMPI.search(path) for path in loaded)]
        if len(ranks) != self.num_tasks:
            raise SanityError(
                f"{len(ranks)} of {self.num_tasks} processes loaded a libmpi: look at the files "
                f"{name} in {self.stagedir}"
            )
        words = [one for one in self.executable_opts if "=" not in one]
        who = program or (words[0] if words else "it")
        for loaded in ranks:
            self.prove_libmpi(loaded, who)

    def record_figures(self, rows):
        """Hand ``(figure, bytes or None, value, unit)`` rows to ReFrame, with their references."""
        known = references.load(self.current_system.name)
        partition = self.current_partition.name
        judged, self.perf_variables = {}, {}
        for figure, size, value, unit in rows:
            name = figure if size is None else f"{figure}_{size}"
            self.perf_variables[name] = sn.make_performance_function(sn.defer(value), unit)
            found = references.reference(known, partition, self.mpi["module"], figure, size, unit)
            if found:
                judged[name] = found
        self.reference = {self.current_partition.fullname: judged} if judged else {}
