"""Checks that go wrong in every way that one can; they need no MPI."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_before, sanity_function
from reframe.core.exceptions import SanityError


class Shell(rfm.RunOnlyRegressionTest):
    """A line of shell."""

    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    sourcesdir = None
    local = True
    executable = "echo"

    @sanity_function
    def passes(self):
        return True


@rfm.simple_test
class Passes(Shell):
    """It passes, twice."""

    word = parameter(["one", "two"], loggable=True)
    tags = {"quick", "good"}


@rfm.simple_test
class Hangs(Shell):
    """It does not return."""

    tags = {"hang"}
    executable = "sleep"
    executable_opts = ["600"]
    time_limit = "1s"


@rfm.simple_test
class Fails(Shell):
    """It says what is wrong on standard error."""

    tags = {"quick"}
    executable = "sh"
    executable_opts = ["-c", "'echo first >&2; echo the library is gone >&2'"]

    @sanity_function
    def fails(self):
        raise SanityError("the answer is 41; look at the question")


@rfm.simple_test
class Crashes(Shell):
    """Its job ends with an exit code."""

    tags = {"quick"}
    executable = "sh"
    executable_opts = ["-c", "'echo no memory >&2; exit 3'"]

    @sanity_function
    def ended_well(self):
        return sn.assert_eq(self.job.exitcode, 0, "the program ended with exit code {0}")


@rfm.simple_test
class DoesNotCompile(rfm.RegressionTest):
    """Its compiler refuses."""

    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    tags = {"quick"}
    sourcesdir = None
    local = True

    @run_before("compile")
    def write_source(self):
        self.sourcepath = "bad.c"
        self.prebuild_cmds = ["echo 'int main(' > bad.c"]
        self.build_system = "SingleSource"
        self.build_system.cc = "gcc"

    @sanity_function
    def passes(self):
        return True


@rfm.simple_test
class Slow(Shell):
    """Its figure is half of the reference."""

    tags = {"quick"}
    reference = {"*": {"bandwidth_1024": (200.0, -0.2, None, "MB/s")}}

    @performance_function("MB/s")
    def bandwidth_1024(self):
        return sn.defer(100.0)


@rfm.simple_test
class Skips(Shell):
    """It has a reason not to run."""

    tags = {"quick"}

    @run_before("run")
    def has_a_reason(self):
        self.skip_if(True, "there is no such package in the plan")
