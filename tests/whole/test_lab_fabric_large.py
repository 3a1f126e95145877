"""Comet, Expanse and Gordon in ibsim: routing, no false error, each of 60 planted ones named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fabric_world import DESCRIBED, Planter, unlike
from lab_fabric import LIVE, checked, console, copied, lacking

from mvstack.fabric.compare import Fault
from mvstack.fabric.plan import fabric_text, planned
from mvstack.model.load import load_system

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ENGINES = {"comet": "ftree", "expanse": "ftree", "gordon": "torus-2QoS"}
# how many of each; what the console cannot do stands in the file that ibsim reads
PLANTED = {
    **{"slow": 5, "narrow": 5, "renamed": 4, "twin": 4, "unnamed switch": 3, "stranger": 3},
    **{"swapped nodes": 2, "swapped uplinks": 2},
    **{"count": 16, "node": 5, "link": 5, "switch": 2},
}


@pytest.fixture(autouse=True)
def tools() -> None:
    if missing := lacking():
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")


@pytest.mark.parametrize("system", ENGINES)
def test_a_clean_fabric_is_routed_and_has_no_error(system: str, tmp_path: Path) -> None:
    done = checked(tmp_path, system, [])
    nodes, switches, links = DESCRIBED[system]
    assert (done.status, done.faults) == (0, [])
    assert done.said == f"{nodes:,} adapters, {switches} switches, {links:,} links"
    assert f"{ENGINES[system]} tables configured on all switches" in done.log


@pytest.mark.parametrize("seed", [1, 2])
def test_each_of_the_errors_planted_in_comet_is_named_and_none_else(
    seed: int, tmp_path: Path
) -> None:
    planter = Planter(copied(planned(load_system("comet"))), seed)
    planter.touched.add("comet-core-01")  # where the subnet manager is
    lines: list[str] = []
    for kind, count in PLANTED.items():
        for _ in range(count if kind not in LIVE else 0):
            assert planter.plant(kind), kind
    net = tmp_path / "net"
    net.write_text(fabric_text(planter.fabric))
    for kind in LIVE:
        for _ in range(PLANTED[kind]):
            lines += console(planter, kind)
    done = checked(tmp_path, "comet", lines, "--net", net)
    found = [
        Fault(str(x["kind"]), str(x["place"]), str(x["says"]), tuple(x["nodes"]))  # type: ignore[arg-type]
        for x in done.faults
    ]
    print(f"{len(planter.told)} planted, {len(found)} found")
    page, racks = (tmp_path / "page.html").read_text(), planned(load_system("comet")).racks
    named = {racks.get(x, 0) for one in found for x in re.split(r"[\s:,]+", one.place)} - {0}
    assert {int(x) for x in re.findall(r'id="rack-(\d+)" open', page)} == named
    assert f"<b>{len(named)}</b>of 27 racks with errors" in page
    assert done.status == 1 and len(planter.told) >= 50
    assert unlike(planter.told, found) == []
