"""tests/lab/fabric and `mvstack fabric`: 48 nodes in ibsim, infiniband-diags, planted faults."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fabric_world import KINDS, Planter, unlike
from lab_fabric import LIVE, Checked, checked, console, copied, lab, lacking

from mvstack.cli.fabric import READ, TOOLS
from mvstack.fabric.compare import Fault
from mvstack.fabric.plan import fabric_text, planned
from mvstack.model.load import load_system
from mvstack.support.home import DATA

TREE = "{racks: 4, leaves: 2, spines: 2, up: 3, cores: 4, core_links: 4}"
CAPTURE = "; ".join(f"{' '.join(TOOLS[one])} >cap/{one} || echo status $?" for one in READ)


@pytest.fixture(autouse=True)
def tools() -> None:
    if missing := lacking():
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a system with 48 nodes on eight leaves in four racks."""
    text = (DATA / "environments" / "systems" / "comet.yaml").read_text()
    for old, new in (
        ("name: comet\n", "name: small\n"),
        ("nodes: 1944", "nodes: 48"),
        ("nodes: {cpu: 18}", "nodes: {cpu: 6}"),
        (re.findall("tree: ({.*})", text)[0], TREE),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path_factory.mktemp("system") / "small.yaml"
    path.write_text(text)
    return path


def mvstack(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "mvstack", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def as_faults(done: Checked) -> list[Fault]:
    return [
        Fault(str(x["kind"]), str(x["place"]), str(x["says"]), tuple(x["nodes"]))  # type: ignore[arg-type]
        for x in done.faults
    ]


FILED = ("slow", "renamed", "twin", "unnamed switch", "stranger")
CABLED = ("narrow", "swapped nodes", "swapped uplinks")


@pytest.mark.parametrize("kinds", [(*FILED, "count"), (*CABLED, "link"), LIVE])
def test_each_planted_fault_is_named_and_none_else(
    small: Path, kinds: tuple[str, ...], tmp_path: Path
) -> None:
    assert {*FILED, *CABLED, *LIVE} == set(KINDS) - {
        "state"
    }  # opensm brings up every port of ibsim
    planter = Planter(copied(planned(load_system(str(small)))), 6)
    planter.touched.add("comet-core-01")  # where the subnet manager is
    for kind in kinds:
        assert kind in LIVE or planter.plant(kind), kind
    net = tmp_path / "net"
    net.write_text(fabric_text(planter.fabric))
    lines = [line for kind in kinds if kind in LIVE for line in console(planter, kind)]
    done = checked(tmp_path, str(small), lines, "--net", net)
    assert done.status == 1 and len(planter.told) >= len(kinds)
    assert unlike(planter.told, as_faults(done)) == []


def test_a_capture_says_the_same_elsewhere(small: Path, tmp_path: Path) -> None:
    """Clean, then two counters and a leaf without power; the same from files, with jobs and use."""
    (tmp_path / "cap").mkdir()
    before = CAPTURE.replace("cap/", "before/")
    lines = [
        f"mkdir before; {before}",
        f"mvstack fabric check {small} --metrics clean.prom",
        "lab count comet-01-l1 2 SymbolErrorCounter 77",
        "lab count comet-01-l1 3 PortXmitData 500000000000",
        "lab cut comet-02-l2",
        CAPTURE,
    ]
    done = checked(tmp_path, str(small), lines)
    assert [(x.kind, x.place.partition(" to ")[0]) for x in as_faults(done)] == [
        ("switch", "comet-02-l2"),
        ("SymbolErrorCounter", "comet-01-l1 port 2"),
    ]
    assert 'kind="' not in (tmp_path / "clean.prom").read_text()

    (tmp_path / "cap" / "squeue").write_text(
        "17 anna comet-01-[02-04],comet-02-12\n18 ben comet-02-01\n"
    )
    os.utime(tmp_path / "before" / "ibnetdiscover", (1000, 1000))
    os.utime(tmp_path / "cap" / "ibnetdiscover", (1300, 1300))
    words = ("--from", "cap", "--since", "before", "--jobs", "--metrics", "now.prom", "--json")
    words += ("--html", "now.html")
    said = mvstack("fabric", "check", small, *words, cwd=tmp_path)
    found = json.loads(said.stdout)["faults"]
    assert said.returncode == 1, said.stderr
    assert [(x["kind"], x["jobs"]) for x in found] == [
        ("switch", ["17 (anna)"]),
        ("SymbolErrorCounter", ["17 (anna)"]),
        ("use", ["17 (anna)"]),
    ]
    metrics = (tmp_path / "now.prom").read_text()
    assert 'mvstack_fabric_faults{kind="switch"} 1' in metrics
    assert re.search(r'device="comet-01-l1",port="2".*counter="SymbolErrorCounter"} 77', metrics)

    page = (tmp_path / "now.html").read_text()
    assert '<h3>comet-02-l2 <span class="bad">missing</span>' in page and "3 errors" in page
    assert re.findall(r'id="(rack-\w+)" open', page) == ["rack-1", "rack-2"]
    assert "42 of 48</b>nodes" in page and "2</b>of 4 racks with errors" in page

    told = mvstack("fabric", "check", f"{small}/cpu", "--from", "cap", cwd=tmp_path)
    assert told.returncode == 1 and "comet-02-l2: this switch is missing" in told.stderr
    assert "to go on  clean or replace the cable" in told.stderr
    like = mvstack("fabric", "check", small, "--from", "cap", "--like", "cap", cwd=tmp_path)
    assert "SymbolErrorCounter" in like.stderr and "missing" not in like.stderr


def test_without_rights_it_says_what_to_capture(small: Path, tmp_path: Path) -> None:
    if Path("/dev/infiniband/umad0").exists():
        pytest.skip("this machine has an adapter")
    done = mvstack("fabric", "check", small, cwd=tmp_path)
    assert done.returncode == 7
    assert "/dev/infiniband/umad" in done.stderr
    for word in ("ibnetdiscover > DIR/ibnetdiscover", "iblinkinfo --line >", "--from DIR"):
        assert word in done.stderr
    empty = mvstack("fabric", "check", small, "--from", ".", cwd=tmp_path)
    assert (
        empty.returncode == 3 and "as root on a node of the fabric: ibnetdiscover" in empty.stderr
    )


def test_a_map_is_cleaned_and_then_checks_clean(small: Path, tmp_path: Path) -> None:
    done = mvstack("fabric", "describe", small, "--to", "made", cwd=tmp_path)
    assert done.returncode == 0 and "48 adapters, 20 switches" in done.stdout
    assert {x.name for x in (tmp_path / "made").iterdir()} == {
        *("ibnetdiscover", "node-name-map", "topology.conf")
    }
    good = (tmp_path / "made" / "node-name-map").read_text()
    (tmp_path / "map").write_text(good.replace("\n", "\n\n", 1))
    check = ("fabric", "check", small, "--from", "made", "--names")
    bad = mvstack(*check, "map", cwd=tmp_path)
    assert bad.returncode == 1 and "map:2: a blank line" in bad.stderr
    mended = mvstack("fabric", "names", "map", "--to", "clean", cwd=tmp_path)
    assert mended.returncode == 0 and "map:2: a blank line: left out" in mended.stderr
    assert (tmp_path / "clean").read_text() == good
    assert mvstack(*check, "clean", cwd=tmp_path).returncode == 0


def test_the_lab_needs_no_root_and_leaves_nothing(small: Path, tmp_path: Path) -> None:
    """A status of the command's own, and neither a process nor a folder after it."""
    script = (
        "ibnetdiscover 2>/dev/null | grep -c ^Ca; lab count nobody 1 SymbolErrorCounter 1; exit 5"
    )
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        done = lab("--folder", tmp_path / "kept", small, "sh", "-c", script, cwd=tmp_path)
    finally:
        del os.environ["TMPDIR"]
    assert done.returncode == 5 and done.stdout == "48\n", done.stderr
    assert "lab: no device nobody" in done.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"kept"}
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True)
    assert running.stdout == ""


@pytest.mark.parametrize("words", [[], ["comet"], ["--rail", "x", "comet", "true"], ["--x"]])
def test_the_lab_says_how_it_is_used(words: list[str], tmp_path: Path) -> None:
    done = lab(*words, cwd=tmp_path)
    assert done.returncode == 2 and "tests/lab/fabric [--rail N]" in done.stdout
