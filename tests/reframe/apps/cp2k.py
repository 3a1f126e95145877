"""CP2K: the energy of a water molecule with exact exchange, and the forces on its atoms."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

# Hartree, of 2025.2 with libxc 5.2 and Libint 2.7 on one rank
ENERGY, EXCHANGE = -17.212582475861, -0.981551084554
ELECTRONS = 8  # of valence
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
    energy = judging.number(r"^ ENERGY\| Total FORCE_EVAL .* (\S+)$", text)
    exchange = judging.number(r"^ +Hartree-Fock Exchange energy: +(\S+)$", text)
    density = judging.number(r"^ +Electronic density on regular grids: +(\S+) ", text)
    processes = judging.number(r"Total number of message passing processes +(\d+)$", text)
    forces = re.findall(r"^ FORCES\| +(\d) +(\S+) +(\S+) +\S+ +\S+$", text, re.M)
    sideways, across = ([float(one[at]) for one in forces] for at in (1, 2))
    return [
        *judging.equal("processes", processes, ranks),
        *judging.said(r"\*\*\* SCF run converged", text, "the SCF did not converge"),
        *judging.said(r"PROGRAM ENDED AT", text, "CP2K did not come to its end"),
        # Printed to 1e-15; sums of ranks differ by 1e-13, other compilers' by more.
        *judging.near("total energy", energy, ENERGY, 1e-9),
        # The SCF stops at 1e-8.
        *judging.near("exact exchange", exchange, EXCHANGE, 1e-7),
        # on grids of 300 Ry
        *judging.near("electrons", -density, ELECTRONS, 1e-6),
        *judging.equal("atoms with a force", len(forces), 3),
        # The molecule is its own mirror image, and flat.
        *judging.near("force out of the plane", sum(map(abs, sideways)), 0, 1e-6),
        *judging.near("force across, of all atoms", sum(across), 0, 1e-6),
    ]


def figures(text):
    """The wall time of the whole run, the slowest rank's."""
    row = r"^ CP2K +1 +\S+ +\S+ +\S+ +\S+ +(\S+)$"
    return judging.finite({"run": "s"}, [judging.number(row, text)])
