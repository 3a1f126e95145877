"""All checks pass on a real MPI as it is: the one that `mvstack install` made here, or Debian's."""

from __future__ import annotations

import pytest
from checks_tree import mpi_here
from test_reframe_mpi import of_debian

from mvstack.test.results import problems
from mvstack.test.run import run_checks

pytestmark = pytest.mark.slow


def test_everything_passes_as_it_is(tmp_path):
    plan = mpi_here(tmp_path)
    plan |= {"mpi": plan["mpi"][:1]}
    results = run_checks(plan, tmp_path / "out", ["smoke"])
    failed = [one.where for one in problems(results)]
    assert failed == ([f"OneSided with {plan['mpi'][0]['module']}"] if of_debian(plan) else [])
    benchmarks = [case for case in results["cases"] if case["check"].startswith("Benchmark")]
    assert len(benchmarks) == 3
    for case in benchmarks:
        assert [figure["size"] for figure in case["figures"]] == [2**n for n in range(2, 21)]
        assert all(figure["value"] > 0 for figure in case["figures"])
        assert case["benchmark"]
