"""Verdicts on CloverLeaf and miniFE: output really seen, on two ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import cloverleaf, minife  # noqa: E402

# The lines that judge, of CloverLeaf 1.3's clover.out.
CLOVERLEAF = """
   Task Count      2
                       Volume            Mass         Density        Pressure Internal Energy  Kinetic Energy    Total Energy
 step:      0      0.1000E+03      0.2800E+02      0.2800E+00      0.1720E+00      0.4300E+02      0.0000E+00      0.4300E+02
 step:     87      0.1000E+03      0.2800E+02      0.2800E+00      0.1671E+00      0.4179E+02      0.1193E+01      0.4298E+02

Test problem   2 is within   0.1301714E-10% of the expected solution
 This test is considered PASSED
 Wall clock    8.3000919818878174     
"""  # noqa: E501, W291
# What miniFE 2.1.0 printed, and of its YAML file the lines that judge.
MINIFE = """Starting CG solver ... 
Initial Residual = 25.0167
Iteration = 20   Residual = 0.011473
Iteration = 40   Residual = 2.94886e-06
Iteration = 60   Residual = 4.53604e-11
Final Resid Norm: 1.3227e-16
verifying solution at ~ (0.5, 0.5, 0.5) ...
solution matches analytic solution to within 0.06 or better.
  number of processors: 2
  Global Nrows: 15625
  Global NNZ: 389017
CG solve: 
  Iterations: 79
    Total CG Mflops: 2191.5
"""  # noqa: W291
GOOD = [(cloverleaf, CLOVERLEAF), (minife, MINIFE)]


def name(value: object) -> str:
    return value.__name__ if isinstance(value, ModuleType) else ""


@pytest.mark.parametrize(("app", "text"), GOOD, ids=name)
def test_output_really_seen_is_right(app, text):
    assert app.complaints(text, 2) == []
    assert app.complaints(text, 1)
    assert app.complaints("", 2)


def test_figures():
    steps = cloverleaf.figures(CLOVERLEAF)
    assert steps["steps"] == (8.3000919818878174, "s")
    assert steps["step_rate"][0] == pytest.approx(9.66, rel=1e-3)
    assert minife.figures(MINIFE) == {"CG": (2191.5, "Mflop/s")}
    assert cloverleaf.figures("") == minife.figures("") == {}


@pytest.mark.parametrize(
    ("app", "text", "pattern", "replacement", "complaint"),
    [
        (cloverleaf, CLOVERLEAF, "0.1193E[+]01", "0.1192E+01", "kinetic energy is 1.192"),
        (cloverleaf, CLOVERLEAF, "0.1301714E-10", "0.2001714E-03", "% off the kinetic energy is"),
        (cloverleaf, CLOVERLEAF, "0.1301714E-10", "NaN", "% off the kinetic energy is nan"),
        (cloverleaf, CLOVERLEAF, "problem   2", "problem   3", "% off the kinetic energy is nan"),
        (cloverleaf, CLOVERLEAF, "(?s)(:     87.*?)0.2800E[+]02", r"\1 0.2798E+02",
         "mass at step 87"),
        (cloverleaf, CLOVERLEAF, "0.4298E[+]02", "0.4290E+02", "energy at step 87"),
        (cloverleaf, CLOVERLEAF, "(:      0 .*)0.4300E[+]02$", r"\1 0.4400E+02",
         "energy at step 0"),
        (cloverleaf, CLOVERLEAF, "step:     87", "step:     86", "at step 87 is nan"),
        (cloverleaf, CLOVERLEAF, "Count      2", "Count      1", "ranks is 1.0, expected 2"),
        (minife, MINIFE, "25.0167", "23.0181", "residual at the start"),
        (minife, MINIFE, "0.011473", "0.0107181", "residual at step 20"),
        (minife, MINIFE, "2.94886e-06", "2.94896e-06", "residual at step 40"),
        (minife, MINIFE, "4.53604e-11", "nan", "residual at step 60"),
        (minife, MINIFE, "1.3227e-16", "1.3227e-08", "residual at the end is"),
        (minife, MINIFE, "Iterations: 79", "Iterations: 200", "steps is 200"),
        (minife, MINIFE, "15625", "17576", "unknowns is 17576"),
        (minife, MINIFE, "389017", "389000", "entries is 389000"),
        (minife, MINIFE, "processors: 2", "processors: 1", "ranks is 1.0, expected 2"),
        (minife, MINIFE, "solution matches.*", "max absolute error is 0.07:", "did not say"),
    ],
)  # fmt: skip
def test_each_wrong_result_is_refused(app, text, pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
    assert count == 1
    found = app.complaints(spoilt, 2)
    assert any(complaint in said for said in found), found
