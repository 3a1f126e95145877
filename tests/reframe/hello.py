"""The compiler wrappers of the module make C and Fortran programs that talk."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Hello(rfm.RegressionTest, MvapichStackMixin):
    """A message from rank 1 reaches rank 0, in C and in Fortran with mpi_f08."""

    language = parameter(["C", "Fortran"], loggable=True)
    tags = {"smoke", "correct"}

    @run_after("init")
    def choose_source(self):
        self.sourcepath = {"C": "hello.c", "Fortran": "hello.f90"}[self.language]

    @sanity_function
    def heard(self):
        text = self.output()
        heard = re.findall(rf"^{self.language} heard (\d+) from (\d+) of (\d+)", text, re.M)
        if heard != [("1001", "1", "2")]:
            raise SanityError(
                f"rank 0 should have heard 1001 from rank 1 of 2, and heard {heard or 'nothing'}"
            )
        return True
