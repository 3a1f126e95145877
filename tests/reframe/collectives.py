"""Collectives give the right values, at every size, on every rank."""

import re

import reframe as rfm
from reframe.core.builtins import sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

WIDTH = {"int": 4, "double": 8}
SIZES = [2**power for power in range(2, 21)]  # bytes a rank: 4 B to 1 MiB
EXPECTED = {
    (what, kind, size)
    for what in ("allreduce", "alltoall", "bcast", "allgather")
    for kind, width in WIDTH.items()
    for size in SIZES
    if size >= width
}


@rfm.simple_test
class Collectives(rfm.RegressionTest, MvapichStackMixin):
    """Allreduce, alltoall, bcast and allgather of int and double, each element compared."""

    sourcepath = "collectives.c"
    tags = {"smoke", "correct"}

    @sanity_function
    def every_value_is_right(self):
        text = self.output()
        wrong = re.findall(r"^wrong (.*)$", text, re.M)
        if wrong:
            raise SanityError(f"{len(wrong)} wrong results; the first: {wrong[0]}")
        rows = re.findall(r"^right (\w+) (\w+) (\d+)$", text, re.M)
        if len(rows) != len(set(rows)):
            raise SanityError(
                "results were printed more than once: the ranks are worlds of their own; see the "
                "check WorldSize"
            )
        missing = EXPECTED - {(what, kind, int(size)) for what, kind, size in rows}
        if missing:
            raise SanityError(
                f"{len(missing)} of {len(EXPECTED)} results were never printed, among them "
                f"{' '.join(map(str, min(missing)))}"
            )
        return True
