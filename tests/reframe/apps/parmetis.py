"""ParMETIS: the graph of a square grid cut into four parts, by all ranks together."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

# Of src/parmetis_grid.c. With less than 10000 points one rank partitions, alone.
SIDE, PARTS = 128, 4
CUT = r"^cut (\d+) to (\d+) edges, ParMETIS says (\d+) to (\d+)$"
SIZES = r"^parts of (\d+) to (\d+) points; (\S+) s$"


@rfm.simple_test
class ParMetis(rfm.RegressionTest, AppMixin):
    """Parts are as large as was asked for, and the cut is short and what ParMETIS says it is."""

    software = "ParMETIS"
    tags = {"app", "nightly", "parmetis"}
    ranks = parameter([1, 2, 4])
    sourcepath = "parmetis_grid.c"
    links = ["-lparmetis", "-lmetis", "-lm"]


def complaints(text, ranks):
    """What is wrong with what src/parmetis_grid.c printed."""
    size, width = judging.numbers(r"^ParMETIS \S+ on (\d+) ranks, reals of (\d+) bits$", text, 2)
    counted, counted_elsewhere, said, said_elsewhere = judging.numbers(CUT, text, 4)
    smallest, largest, _ = judging.numbers(SIZES, text, 3)
    return [
        *judging.equal("ranks", size, ranks),
        # those of the METIS beside it; PETSc and others compile against both
        *judging.equal("bits of reals", width, 64),
        *judging.said(r"^status ok, 0 points in no part$", text, "not every point is in a part"),
        *judging.equal("cut, counted on all ranks", counted_elsewhere, counted),
        *judging.equal("cut that ParMETIS says", (said, said_elsewhere), (counted, counted)),
        # Two straight lines cut 2 * 128 edges; a partition of chance some 24000.
        *judging.below("cut", counted, 1.5 * 2 * SIDE),
        # 1.05 of a fourth was asked for; coarsening moves some points at once.
        *judging.below("largest part", largest, 1.08 * SIDE**2 / PARTS),
        *judging.near("smallest part", smallest, SIDE**2 / PARTS, 0.15 * SIDE**2 / PARTS),
    ]


def figures(text):
    """The time of the partitioning."""
    return judging.finite({"partition": "s"}, judging.numbers(SIZES, text, 3)[2:])
