"""The compiler wrappers of the module make C, C++ and Fortran programs that talk."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Hello(rfm.RegressionTest, MvapichStackMixin):
    """A message from rank 1 reaches rank 0: in C, C++, and Fortran with mpi_f08, mpi and mpif.h.

    The last one receives by MPI_Irecv into a small array, which gfortran 14 and newer read too
    early, unless mpifort tells them not to.
    """

    language = parameter(["C", "C++", "Fortran", "mpi", "mpif.h"], loggable=True)
    tags = {"smoke", "correct"}

    @run_after("init")
    def choose_source(self):
        sources = {
            "C": "hello.c",
            "C++": "hello.cpp",
            "Fortran": "hello.f90",
            "mpi": "hello_mpi.f90",
            "mpif.h": "hello_mpif.f90",
        }
        self.sourcepath, self.build_system = sources[self.language], "SingleSource"

    @run_before("compile")
    def optimise(self):
        """What reads too early is the optimiser."""
        self.build_system.fflags = ["-O2"]

    @sanity_function
    def heard(self):
        said = re.findall(rf"^{re.escape(self.language)} heard (.*)$", self.output(), re.M)
        if said != ["1001 from 1 of 2"]:
            early = "; gfortran read before MPI_Wait, and mpifort must say -fno-tree-sra"
            raise SanityError(
                f"rank 0 should have heard 1001 from 1 of 2, and heard {said or 'nothing'}"
                f"{early if said == ['0 from 1 of 2'] else ''}"
            )
        return True
