"""WRF: a baroclinic wave, whose history is the same to the last bit on any number of ranks."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from app_mixin import AppMixin

HOURS, STEPS = 6, 36  # of ten minutes, on 40 x 80 x 64 points of 100 km
# The idealised case lies beside the programs. Stack: the arrays of a routine lie on it.
CASE = '"$(dirname "$(command -v wrf.exe)")"/../test/em_b_wave'
HISTORY = "ncdump -p 9,17 wrfout_d01_0001-01-01_00:00:00 | sed 1d"
COLUMNS = "ncdump -p 9,17 -v MU,PSFC wrfout_d01_0001-01-01_00:00:00"


@rfm.simple_test
class Wrf(rfm.RunOnlyRegressionTest, AppMixin):
    """Six hours of a jet that becomes a cyclone: no air is lost, and ranks change nothing."""

    software = "WRF"
    tags = {"app", "nightly", "wrf"}
    ranks = parameter([1, 2, 4])
    results = ["rsl.out.0000", "same.txt", "columns.cdl"]

    @run_after("setup")
    def not_for_real_cases_alone(self):
        """Spack's build is for real cases, which need gigabytes of data."""
        by_easybuild = "built-by-easybuild" in self.current_partition.features
        self.skip_if(not by_easybuild, "this WRF is without the programs of idealised cases")

    @run_before("run")
    def prepare(self):
        alone = [self.before("wrf.exe"), f"{HISTORY} > one.cdl", "rm wrfout* rsl.*"]
        self.prerun_cmds = [
            *self.prerun_cmds,
            "ulimit -s unlimited 2>/dev/null || true",
            f"cp -L {CASE}/input_jet {CASE}/namelist.input .",
            f"sed -i 's/run_days .*/run_days = 0,/; s/run_hours .*/run_hours = {HOURS},/' "
            "namelist.input",
            self.before("ideal.exe"),
            *(alone if self.ranks > 1 else []),
        ]
        self.trace_loader("wrf.exe")
        self.postrun_cmds = [f"{COLUMNS} > columns.cdl", f"{HISTORY} > many.cdl"]
        if self.ranks > 1:
            self.postrun_cmds += ["cmp one.cdl many.cdl && echo the same history > same.txt"]


def complaints(text, ranks):
    """What is wrong with what wrf.exe wrote."""
    return [text[-2000:], ranks]
