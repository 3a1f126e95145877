"""Every partition of every system is solved by the pinned Spack, as `mvstack lock` does it.

It takes hours: `./tests/run all tests/whole/test_systems_lock.py -k expanse` chooses some.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from spack_here import spack_here

from mvstack.builders.spack.environments import solved
from mvstack.install import stages
from mvstack.model.load import load_system, system_names
from mvstack.model.spack import spack_pins
from mvstack.support.progress import Progress

PARTITIONS = [
    f"{name}/{part}"
    for name in system_names()
    if name != "local"  # it is what this machine is
    for part in load_system(name).partitions
]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("title", PARTITIONS)
def test_it_locks_as_the_machine_that_it_is(title: str, tmp_path: Path) -> None:
    """The gates are in `solved`; the last one of them is asked here in other words."""
    root = spack_here(tmp_path / "state").clones.home.parents[1]
    name, _, part = title.partition("/")
    plan = stages.plan_for(load_system(name), part, None, None)
    answers = [answer for _, answer in solved(plan, root, tmp_path, Progress())]
    assert answers[-1].built()
    seen = {node.os for answer in answers for node in answer.nodes.values()}
    assert seen == {spack_pins().os_of(plan.os)}
