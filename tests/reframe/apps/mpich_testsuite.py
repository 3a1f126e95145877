"""MPICH's own tests: some of each kind of what the MPI standard says, each by its own verdict."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

import judging
from app_mixin import AppMixin

# Those that take no arguments and are right on two ranks and on four, of all kinds; seconds
# together. `runtests` in the same folder runs all there are. The two of distributed graphs hang
# over an MVAPICH 4.0 without our patch of MPI_Dist_graph_create.
PROGRAMS = [
    "pt2pt/isendrecv",
    "pt2pt/bsend5",
    "pt2pt/sendall",
    "coll/allred2",
    "coll/allgather_struct",
    "coll/alltoallw_zeros",
    "coll/exscan",
    "coll/gather2",
    "coll/nonblocking",
    "coll/op_commutative",
    "coll/redscat",
    "datatype/getpartelm",
    "datatype/tresized2",
    "comm/comm_create_group",
    "comm/comm_idup",
    "comm/dup_with_info",
    "group/groupcreate",
    "topo/cartcreates",
    "topo/cartsuball",
    "topo/dgraph_unwgt",
    "topo/distgraph1",
    "rma/fetchandadd",
    "rma/getgroup",
    "rma/lockopts",
    "rma/putfidx",
    "rma/wintest",
    "attr/attrend2",
    "io/i_noncontig_coll2",
    "io/rdwrord",
    "io/setviewcur",
    "f77/coll/allredint8f",
    "f90/coll/alltoallwf90",
]
LIMIT = 60  # seconds after which a program that hangs is ended, and the next one begins


@rfm.simple_test
class MpichTestsuite(rfm.RunOnlyRegressionTest, AppMixin):
    """Messages, collectives, windows, files, groups and topologies pass MPICH's tests of them."""

    software = "MPICH-testsuite"
    tags = {"app", "nightly", "mpich-testsuite"}
    ranks = parameter([2, 4])

    @run_after("setup")
    def only_compiled_ones(self):
        """Spack installs the sources, and compiles them by `spack test run`."""
        compiled = self.package(self.software)["easyconfig"]
        self.skip_if(not compiled, "Spack compiles and runs them: `spack test run mpich-testsuite`")

    @run_before("run")
    def prepare(self):
        suite = "$EBROOTMPICHMINTESTSUITE/test/mpi"
        *first, last = PROGRAMS
        for program in first:
            line = self.before(f"{suite}/{program}", self.num_tasks)
            line = f'timeout --kill-after=10 {LIMIT} {line} || echo "ended with status $?"'
            self.prerun_cmds = [*self.prerun_cmds, f"echo 'test {program}'", line]
        self.prerun_cmds = [*self.prerun_cmds, f"echo 'test {last}'"]
        self.trace_loader(f"{suite}/{last}")


def complaints(text, ranks):
    """What is wrong with what the programs printed: each says so once, from its first rank."""
    _, *parts = re.split(r"^test (\S+)$", text, flags=re.M)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    found = judging.equal("programs that ran", list(said), PROGRAMS)
    for program, words in said.items():
        verdicts = re.findall(r"^ *No Errors *$", words, re.M)
        failed = re.findall(r"^ended with status (\d+)$", words, re.M)
        if failed in (["124"], ["137"]):  # those of `timeout`
            found.append(f"{program} did not end within {LIMIT} s")
        elif failed or len(verdicts) != 1:
            tail = " / ".join(line.strip() for line in words.splitlines()[:4] if line.strip())
            found.append(f"{program} did not say No Errors once, but: {tail or 'nothing'}")
    return found


def figures(text):
    """None: they measure nothing."""
    return {}
