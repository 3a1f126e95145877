"""WRF: a baroclinic wave, whose history is the same to the last bit on any number of ranks."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

import judging
from app_mixin import AppMixin

HOURS, STEPS = 6, 36  # of ten minutes
COLUMNS = 40 * 80  # of 64 points, 100 km apart
# What the column of air weighs more than the base state, in Pa, least and most after six hours: of
# 4.7.1 with GCC 14.2 on one rank.
LEAST, MOST = -39.3085, 35.5872
# The idealised case lies beside the programs.
CASE = '"$(dirname "$(command -v wrf.exe)")"/../test/em_b_wave'
OUTPUT = "wrfout_d01_0001-01-01_00:00:00"
# all that is in it, but its name and the number of ranks
HISTORY = f"ncdump -p 9,17 {OUTPUT} | sed 1d | grep -v :NTASKS_"


@rfm.simple_test
class Wrf(rfm.RunOnlyRegressionTest, AppMixin):
    """Six hours of a jet that becomes a cyclone: no air is lost, and ranks change no bit."""

    software = "WRF"
    tags = {"app", "nightly", "wrf"}
    ranks = parameter([1, 2, 4])
    results = ["rsl.out.0000", "same.txt", "air.cdl"]

    @run_after("setup")
    def not_for_real_cases_alone(self):
        """Spack's build is for real cases, which need gigabytes of data."""
        by_easybuild = "built-by-easybuild" in self.current_partition.features
        self.skip_if(not by_easybuild, "this WRF is without the programs of idealised cases")

    @run_before("run")
    def prepare(self):
        alone = [self.before("wrf.exe"), f"{HISTORY} > one.cdl", f"rm {OUTPUT} rsl.*"]
        self.prerun_cmds = [
            *self.prerun_cmds,
            "ulimit -s unlimited 2>/dev/null || true",  # arrays of a routine lie on the stack
            f"cp -L {CASE}/input_jet {CASE}/namelist.input .",
            f"sed -i 's/run_days .*/run_days = 0,/; s/run_hours .*/run_hours = {HOURS},/' "
            "namelist.input",
            self.before("ideal.exe"),
            *(alone if self.ranks > 1 else []),
        ]
        self.trace_loader("wrf.exe")
        same = "cmp one.cdl many.cdl && echo the same history as on one rank > same.txt"
        self.postrun_cmds = [
            f"ncdump -p 9,17 -v MU {OUTPUT} > air.cdl",
            *([f"{HISTORY} > many.cdl", f"{same} || true"] if self.ranks > 1 else []),
            *self.postrun_cmds,
        ]


def complaints(text, ranks):
    """What is wrong with what wrf.exe wrote."""
    found = judging.said(r"SUCCESS COMPLETE WRF$", text, "wrf.exe did not come to its end")
    tasks = judging.numbers(r"^ *Ntasks in X +(\d+) *, ntasks in Y +(\d+)", text, 2)
    found += judging.equal("ranks", tasks[0] * tasks[1], ranks)
    found += judging.equal("steps", len(_steps(text)), STEPS)
    air = judging.variable("MU", text)
    found += judging.equal("columns of air, at the start and the end", len(air), 2 * COLUMNS)
    if len(air) == 2 * COLUMNS:
        start, end = (sum(air[at : at + COLUMNS]) / COLUMNS for at in (0, COLUMNS))
        # Pa of 100,000 in single precision; nothing flows over the edges
        found += judging.near("air in all, in Pa, that came or went", end - start, 0, 1e-5)
        # printed with nine digits; other compilers' order of sums shows in the fifth
        found += judging.near("the lightest column", min(air[COLUMNS:]), LEAST, 0.01)
        found += judging.near("the heaviest column", max(air[COLUMNS:]), MOST, 0.01)
    if ranks > 1:
        same = r"^the same history as on one rank$"
        found += judging.said(same, text, "the history differs from that on one rank")
    return found


def figures(text):
    """The time of a step, without the first, in which WRF makes its tables."""
    rest = _steps(text)[1:]
    return judging.finite({"step": "s"}, [sum(rest) / len(rest)]) if rest else {}


def _steps(text):
    """The seconds that each step took."""
    line = r"^Timing for main: time \S+ on domain +1: +(\S+) elapsed seconds$"
    return [float(seconds) for seconds in re.findall(line, text, re.M)]
