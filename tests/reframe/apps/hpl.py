"""High-Performance Linpack with a problem of seconds, judged by its own residual."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin
from hpcc_output import THRESHOLD, grid, hpl_lines

# It takes about a second. Of 1200 rows, solved in 0.1 s, the rates of five runs on a busy machine
# lay between 8.8 and 15.1 Gflop/s, of 3200 between 25.5 and 28.2.
SIZE, BLOCK = 3200, 80
# HPL 2.0 and 2.3 print the same row, but for the exponent's digits.
ROW = rf"^W\S+ +{SIZE} +{BLOCK} +(\d+) +(\d+) +(\S+) +(\S+)$"
RESIDUAL = r"^\|\|Ax-b\|\|_oo/\(eps\S+N\)= +(\S+) \.+ (\w+)$"


@rfm.simple_test
class Hpl(rfm.RunOnlyRegressionTest, AppMixin):
    """HPL solves a system of 3200 over all ranks with a residual that passes."""

    software = "HPL"
    tags = {"app", "nightly", "hpl"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        self.write_input("HPL.dat", input_file(self.num_tasks))
        self.trace_loader("xhpl")


def input_file(ranks):
    """The text of HPL.dat. HPL reads line by line, the first words of each."""
    output = "6            output goes to stdout"
    lines = hpl_lines(ranks, SIZE, BLOCK, THRESHOLD, "HPL", output)
    return "\n".join(lines) + "\n"


def complaints(text, ranks):
    """What is wrong with what xhpl printed."""
    ended = r"^ +(\d+) tests? completed and (?:passed|failed) residual checks"
    done = judging.number(r"^Finished +(\d+) tests with the following results:$", text)
    return [
        *judging.equal("process grid", judging.numbers(ROW, text, 4)[:2], grid(ranks)),
        *judging.below("scaled residual", judging.numbers(RESIDUAL, text, 2)[0], THRESHOLD),
        *judging.said(RESIDUAL.replace(r"(\w+)", "PASSED"), text, "HPL did not say PASSED"),
        *judging.equal("tests finished", done, 1),
        *judging.said(ended.replace(r"(\d+)", "1").replace("|failed", ""), text, "none passed"),
    ]


def figures(text):
    """HPL's own rate."""
    return judging.finite({"HPL": "Gflop/s"}, [judging.numbers(ROW, text, 4)[3]])
