"""The verdict on GROMACS's water."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import gromacs  # noqa: E402

# Of md.log, shortened.
GOOD = """
Using 2 MPI processes
           Step           Time
              0        0.00000

   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    7.89477e+03   -4.67465e+04    5.56610e+02   -3.82951e+04    6.42776e+03
   Total Energy    Temperature Pressure (bar)
   -3.18674e+04    3.04064e+02   -3.95662e+02

           Step           Time
             50        0.10000

   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    7.16009e+03   -4.58643e+04    5.12753e+02   -3.81915e+04    6.32353e+03
   Total Energy    Temperature Pressure (bar)
   -3.18679e+04    2.99133e+02   -1.50449e+03

  Conserved energy drift: -1.80e-03 kJ/mol/ps per atom
Performance:        8.090        2.966
Finished mdrun on rank 0 Sun Nov 22 06:50:49 2026
"""


def test_output_really_seen_is_right():
    assert gromacs.complaints(GOOD, 2) == []
    assert gromacs.figures(GOOD) == {"rate": (8.09, "ns/day")}


def test_the_first_table_is_that_of_the_start():
    found = gromacs.energies(GOOD)
    assert found["Potential"] == -38295.1 and found["Pressure (bar)"] == -395.662
    assert len(found) == 8
    assert gromacs.energies("") == {}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"Using 2 MPI processes", "Using 1 MPI process", "processes is 1.0, expected 2"),
        (r"Using 2 MPI processes", "Using 2 MPI threads", "processes is nan"),
        (r"-3.82951e\+04", "-3.82851e+04", "Potential is -38285.1"),
        (r"5.56610e\+02", "5.57010e+02", "Coul. recip. is 557.01"),
        (r" 5.56610e\+02", "         nan ", "Coul. recip. is nan"),
        (r"6.42776e\+03", "6.40776e+03", "Kinetic En. is 6407.76"),
        (r"-1.80e-03", "-2.34e+00", "drift of the conserved energy is -2.34"),
        (r"-1.80e-03", "nan", "drift of the conserved energy is nan"),
        (r".*drift.*", "", "drift of the conserved energy is nan"),
        (r"Finished.*", "", "did not come to its end"),
        (r"Energies", "No energies", "Potential is nan"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=0 if "Energies" in pattern else 1)
    assert count
    assert any(complaint in said for said in gromacs.complaints(spoilt, 2))
