"""What a build is said to take comes from what was timed, here before elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from install_tree import look, plan_in

from mvstack.builders.easybuild.expected import expected, times_known


def test_the_last_build_of_a_tree_counts_before_the_record_of_two_cores(tmp_path: Path) -> None:
    nodes = {item.node.name: item.node for item in look(plan_in(tmp_path))}
    hpcc, mpi = nodes["HPCC"], nodes["MVAPICH"]
    assert expected([hpcc], times_known(tmp_path)).endswith(" s on 2 cores")
    assert expected([mpi], times_known(tmp_path)) == "not timed before"
    (tmp_path / "records").mkdir()
    rows = [
        {"easyconfig": hpcc.key, "result": "built", "seconds": 600.0},
        {"easyconfig": hpcc.key, "result": "failed", "seconds": 5.0},
        {"easyconfig": hpcc.key, "result": "cached", "seconds": 0.1},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "records" / "builds.jsonl").write_text(text + '{"easyconf')  # a power cut
    times = times_known(tmp_path)
    assert expected([hpcc], times) == "about 10 min"
    assert expected([hpcc, mpi], times) == "about 10 min, and 1 that were not timed"
