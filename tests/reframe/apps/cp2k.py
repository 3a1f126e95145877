"""CP2K: the energy of a water molecule with exact exchange, and the forces on its atoms."""

import math

import reframe as rfm
from reframe.core.builtins import parameter, run_before

from app_mixin import AppMixin

ENERGY = math.nan
INPUT = """&GLOBAL
  PROJECT water
  RUN_TYPE ENERGY_FORCE
  PRINT_LEVEL MEDIUM
&END GLOBAL
&FORCE_EVAL
  METHOD QUICKSTEP
  &PRINT
    &FORCES
    &END FORCES
  &END PRINT
  &DFT
    BASIS_SET_FILE_NAME BASIS_MOLOPT
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 300
      REL_CUTOFF 50
    &END MGRID
    &QS
      EPS_DEFAULT 1.0E-12
    &END QS
    &POISSON
      PERIODIC NONE
      PSOLVER WAVELET
    &END POISSON
    &SCF
      SCF_GUESS ATOMIC
      EPS_SCF 1.0E-8
      MAX_SCF 60
      &OT
        PRECONDITIONER FULL_ALL
        MINIMIZER DIIS
      &END OT
    &END SCF
    &XC
      &XC_FUNCTIONAL
        &PBE
          SCALE_X 0.75
          SCALE_C 1.0
        &END PBE
      &END XC_FUNCTIONAL
      &HF
        FRACTION 0.25
        &SCREENING
          EPS_SCHWARZ 1.0E-10
        &END SCREENING
      &END HF
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 8.0 8.0 8.0
      PERIODIC NONE
    &END CELL
    &COORD
      O 4.000 4.000 4.060
      H 4.000 4.757 3.474
      H 4.000 3.243 3.474
    &END COORD
    &KIND H
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PBE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PBE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""


@rfm.simple_test
class Cp2k(rfm.RunOnlyRegressionTest, AppMixin):
    """A quarter of exact exchange on water: one energy, and forces that add up to nothing."""

    software = "CP2K"
    tags = {"app", "nightly", "cp2k"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        self.write_input("water.inp", INPUT)
        self.trace_loader("cp2k.psmp", "-i", "water.inp")


def complaints(text, ranks):
    """What is wrong with what cp2k.psmp printed."""
    return [text, ranks]


def figures(_text):
    """None yet."""
    return {}
