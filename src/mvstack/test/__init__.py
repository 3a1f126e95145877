"""Run the checks of tests/reframe on an installed tree, and say what they found.

    results = run_checks(plan, out=Path("checks"), tags=["smoke"])

``results`` (also written to ``out/results.json``) is described in :mod:`mvstack.test.results`.
"""

from mvstack.test.results import problems
from mvstack.test.run import run_checks

__all__ = ["problems", "run_checks"]
