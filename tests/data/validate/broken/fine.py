"""A check beside the broken one."""

import reframe as rfm
from reframe.core.builtins import sanity_function


@rfm.simple_test
class Fine(rfm.RunOnlyRegressionTest):
    """It passes."""

    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    sourcesdir = None
    local = True  # no launcher: the tree has none
    executable = "true"
    tags = {"smoke"}

    @sanity_function
    def passes(self):
        return True
