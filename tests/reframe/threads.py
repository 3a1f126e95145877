"""Programs get the level of threads that they ask for, and threads may send at once."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

LEVELS = ("single", "funneled", "serialized", "multiple")


@rfm.simple_test
class Threads(rfm.RegressionTest, MvapichStackMixin):
    """MPI_Init_thread gives what was asked for; two threads of each of two ranks send at once."""

    level = parameter(["single", "funneled", "serialized", "multiple"], loggable=True)
    sourcepath = "threads.c"
    build_system = "SingleSource"
    # MVAPICH2 gives MPI_THREAD_SINGLE alone where it binds its ranks
    env_vars = {"MV2_ENABLE_AFFINITY": "0"}
    tags = {"smoke", "correct"}

    @run_after("init")
    def ask_for_level(self):
        self.executable_opts = [self.level]

    @run_before("compile")
    def with_threads(self):
        self.build_system.cflags = ["-pthread"]

    def planned(self):
        """The highest level of the build: our recipes' default, and unknown of a site's MPI."""
        said = re.search(r"\bthreads=(\w+)", self.mpi.get("spack", {}).get("spec", ""))
        level = self.mpi.get("parameters", {}).get("thread_level") or (said and said[1])
        return level or ("single" if self.mpi.get("provided") else "multiple")

    @sanity_function
    def level_is_there(self):
        text = self.output()
        got = re.findall(r"^rank \d+ of (\d+) asked for \w+, got (\w+)$", text, re.M)
        if [int(ranks) for ranks, _ in got] != [self.num_tasks] * self.num_tasks:
            raise SanityError(
                f"{self.num_tasks} ranks were started, and {len(got)} came through MPI_Init_thread "
                f"of level {self.level}; see the check WorldSize"
            )
        wanted = min(self.level, self.planned(), key=LEVELS.index)
        least = min((level for _, level in got), key=LEVELS.index)
        if LEVELS.index(least) < LEVELS.index(wanted):
            raise SanityError(
                f"MPI_Init_thread was asked for MPI_THREAD_{self.level.upper()} and gave "
                f"MPI_THREAD_{least.upper()}: programs whose threads call MPI end, or run wrong. "
                f"Was this MPI configured with --enable-threads={self.planned()}? (mpichversion)"
            )
        if self.level == least == "multiple":
            if found := re.search(r"^(?:wrong|hung): (.*)$", text, re.M):
                raise SanityError(f"two threads of each rank sent at once: {found[0]}")
            if not re.search(
                rf"^right messages of 2 threads of {self.num_tasks} ranks$", text, re.M
            ):
                raise SanityError("two threads of each rank sent at once, and a rank died")
        return True
