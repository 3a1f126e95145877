"""Fabrics: described, read, compared; each planted fault is named, and nothing else is."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from fabric_world import DESCRIBED, KINDS, Planter, tree_system, unlike
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

from mvstack.cli.fabric import _captured, check
from mvstack.fabric.compare import Comparison, Fault
from mvstack.fabric.judge import count_faults, fault_policy, jobs_by_node, metrics
from mvstack.fabric.links import Device, End, Fabric, Link, read_fabric
from mvstack.fabric.names import cleaned, written
from mvstack.fabric.page import page
from mvstack.fabric.plan import described, fabric_text, planned
from mvstack.model.load import load_system, parse_system
from mvstack.model.system import System
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.home import DATA

RULES = fault_policy()


def text(fabric: Fabric) -> str:
    return fabric_text(fabric)


def read(fabric: Fabric) -> Fabric:
    """As it comes back from what ibnetdiscover would print; counters stay."""
    states = "\n".join(  # as iblinkinfo --line
        f'0x{end.guid} "{fabric.devices[end.guid].name}" 7 {end.port:4}[  ] ==( 4X 14.0625 Gbps '
        f'{state.replace("/", "/  ")})==> 8 1[  ] "other" ( )'
        for end, state in fabric.states.items()
    )
    found = read_fabric(text(fabric), states, "", {})
    found.counters = fabric.counters
    return found


def faults(plan: Fabric, found: Fabric, *others: str) -> list[Fault]:
    seen = Comparison(plan, found, [*others, *RULES.anywhere])
    return [*seen.faults, *count_faults(seen, {}, 0, RULES)]


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_described_fabric_has_its_size_and_is_as_described(name: str) -> None:
    system = load_system(name)
    plan = planned(system)
    switches = sum(one.switch for one in plan.devices.values())
    assert (len(plan.devices) - switches, switches, len(plan.links)) == DESCRIBED[name]
    assert len(plan.partitions) == sum(system.partitions[x].nodes for x in system.wiring.nodes)
    assert faults(plan, read(plan)) == []


@pytest.mark.parametrize("name", ["comet", "expanse"])
def test_a_tree_is_as_oversubscribed_as_the_partition_says(name: str) -> None:
    system = load_system(name)
    wiring, said = system.wiring, system.partitions["cpu"].network.oversubscription or "1:1"
    tree = wiring.tree
    down = sum(wiring.nodes.values()) * tree.leaves * wiring.node_width
    up = (tree.spines or tree.leaves) * tree.core_links * wiring.width
    most, least = map(int, said.split(":"))
    assert down * least == up * most


def test_each_rail_of_a_torus_is_a_fabric_of_its_own() -> None:
    gordon = load_system("gordon")
    one, two = planned(gordon, 1), planned(gordon, 2)
    assert {x.label for x in one.devices.values() if not x.switch} == set(two.partitions)
    assert "gcn-1-1 mlx4_1" in {x.name for x in two.devices.values()}
    with pytest.raises(InvalidInput, match="rail 3"):
        planned(gordon, 3)
    lines = described(gordon.wiring, one)["torus-2QoS.conf"]
    assert "\ntorus 4 4 4\n" in lines and lines.count("p_link") == lines.count("m_link") == 3


def test_a_switch_of_a_torus_has_three_links_to_each_of_six_neighbours() -> None:
    plan = planned(load_system("gordon"))
    seen = Comparison(plan, plan, [])
    around = [pair for pair in seen.plan.links if "gordon-r1-000" in pair]
    there = {one for pair in around for one in pair if one.startswith("gordon")}
    ends = ("100", "300", "010", "030", "001", "003", "000")
    assert there == {f"gordon-r1-{x}" for x in ends}
    assert {len(seen.plan.links[x]) for x in around if set(x) <= seen.switches} == {3}


def test_a_ring_of_two_has_one_way_and_one_of_one_has_none() -> None:
    gordon = load_system("gordon")
    torus = gordon.wiring.torus.model_copy(update={"size": [2, 1, 3]})
    cpu = gordon.partitions["cpu"].model_copy(update={"nodes": 96})
    wiring = gordon.wiring.model_copy(update={"torus": torus})
    system = gordon.model_copy(update={"wiring": wiring, "partitions": {"cpu": cpu}})
    plan = planned(system)
    assert len(plan.links) == 96 + 3 * (3 + 2 * 3)
    lines = described(wiring, plan)["torus-2QoS.conf"]
    assert "xp_link" in lines and "zm_link" in lines and "y" not in lines.partition("torus 2")[2]


def test_topology_conf_has_every_node_once() -> None:
    system = load_system("comet")
    files = described(system.wiring, planned(system))
    lines = files["topology.conf"].splitlines()[1:]
    nodes = [
        x for line in lines if "Nodes=" in line for x in line.partition("Nodes=")[2].split(",")
    ]
    assert len(nodes) == len(set(nodes)) == 1944
    assert lines[-1].count("rack-") == 27 and lines[108] == (
        "SwitchName=rack-1 Switches=comet-01-l1,comet-01-l2,comet-01-l3,comet-01-l4"
    )


SHAPES = st.builds(
    tree_system,
    st.integers(2, 12),
    racks=st.integers(2, 5),
    leaves=st.integers(1, 4),
    spines=st.integers(2, 4),
    up=st.integers(1, 3),
    cores=st.integers(3, 8),
    core_links=st.integers(1, 4),
)


@given(SHAPES, st.lists(st.sampled_from(KINDS), max_size=8), st.integers(0, 2**32))
@settings(deadline=None)
def test_each_planted_fault_is_named_and_nothing_else(
    system: System, kinds: list[str], seed: int
) -> None:
    plan = planned(system)
    assert faults(plan, read(plan)) == []
    planter = Planter(read(plan), seed)
    for kind in kinds:
        planter.plant(kind)
    assert unlike(planter.told, faults(plan, read(planter.fabric))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_each_kind_can_be_planted_in_comet(kind: str) -> None:
    plan = planned(load_system("comet"))
    planter = Planter(read(plan), 1)
    assert planter.plant(kind) and planter.told
    assert unlike(planter.told, faults(plan, read(planter.fabric))) == []


def test_ten_thousand_nodes_take_seconds() -> None:
    system = tree_system(18, racks=140, leaves=4, spines=3, up=6, cores=18, core_links=6)
    system = system.model_copy(update={"wiring": system.wiring.model_copy(update={"ports": 160})})
    began = time.process_time()
    plan = planned(system)
    planter = Planter(read(plan), 3)
    for kind in KINDS:
        assert planter.plant(kind)
    assert len(plan.partitions) == 10_080
    assert unlike(planter.told, faults(plan, read(planter.fabric))) == []
    assert time.process_time() - began < 20


def test_ten_thousand_wrong_names_take_seconds_too() -> None:
    system = tree_system(18, racks=140, leaves=4, spines=1, up=1, cores=2, core_links=1)
    system = system.model_copy(update={"wiring": system.wiring.model_copy(update={"ports": 160})})
    plan = planned(system)
    site = read(plan)
    for guid, one in site.devices.items():
        site.devices[guid] = one._replace(name=one.name if one.switch else f"localhost{guid} a")
    began = time.process_time()
    assert {x.kind for x in faults(plan, site)} == {"name"}
    assert time.process_time() - began < 10


def test_ports_of_the_sites_own_are_no_fault() -> None:
    """Only which devices are joined, and how often, is planned."""
    plan = planned(tree_system(3, racks=2, leaves=2, spines=2, up=2, cores=2, core_links=2))
    turned = {
        end: End(end.guid, 81 - end.port) if plan.devices[end.guid].switch else end
        for link in plan.links
        for end in link.ends
    }
    moved = [x._replace(ends=(turned[x.ends[0]], turned[x.ends[1]])) for x in plan.links]
    site = Fabric(dict(plan.devices), moved)
    assert faults(plan, read(site)) == []
    gone = next(x for x in site.links if all(plan.devices[e.guid].switch for e in x.ends))
    site.links.remove(gone)
    found = faults(plan, read(site))
    assert [one.kind for one in found] == ["link"] and "1 of 2 links" in found[0].place


def test_what_may_be_anywhere_is_no_fault() -> None:
    plan = planned(load_system("comet"))
    site = read(plan)
    for port, name in ((28, "cw3e-oss-1-5 HCA-1"), (29, "Mellanox Technologies Aggregation Node")):
        core = next(x.guid for x in site.devices.values() if x.name == "comet-core-01")
        guid = f"0f{port:013x}0"
        site.devices[guid] = Device(guid, name, False, 1)
        site.links.append(Link((End(core, port), End(guid, 1)), 4, "EDR"))
    assert faults(plan, read(site), *load_system("comet").wiring.others) == []
    assert [one.kind for one in faults(plan, read(site))] == ["unknown"]


def test_who_is_elsewhere_is_not_taken_for_missing() -> None:
    """A node moves to another leaf; in its old port is one with a wrong name, whose own is free."""
    plan = planned(tree_system(3, racks=1, leaves=2, cores=1, core_links=1))
    site = read(plan)
    at = {one.label: guid for guid, one in site.devices.items()}
    site.devices[at["n01-002"]] = site.devices[at["n01-002"]]._replace(name="a1 HCA-1")
    moved = {
        at["n01-001"]: End(at["l01-2"], 79),  # was in port 1 of the other leaf
        at["n01-002"]: End(at["l01-1"], 1),  # calls itself a1, was in port 2
    }
    links = [x for x in site.links if not {end.guid for end in x.ends} & set(moved)]
    site.links = links + [Link((end, End(guid, 1)), 4, "HDR") for guid, end in moved.items()]
    found = {(one.kind, one.nodes) for one in faults(plan, site)}
    assert found == {("cable", ("n01-001",)), ("name", ("n01-002",))}


def test_a_tool_that_failed_is_told() -> None:
    plan = planned(tree_system(2, racks=1, leaves=1, cores=1, core_links=1))
    site = read_fabric(text(plan), "", "ibqueryerrors failed: no path", {})
    assert [(x.kind, x.place) for x in faults(plan, site)] == [("unread", "ibqueryerrors")]


def test_lines_that_break_parsers_are_named_by_their_number() -> None:
    plan = planned(load_system("gordon"))
    lines = text(plan).split("\n")
    lines.insert(7, "a name with a line end")
    found = faults(plan, read_fabric("\n".join(lines), "", "", {}))
    assert [(x.kind, x.place) for x in found] == [("unread", "ibnetdiscover, line 8")]


@given(st.integers(0, 60_000), st.text(max_size=80))
def test_what_is_cut_off_or_rubbish_is_told_and_nothing_breaks(length: int, more: str) -> None:
    plan = planned(tree_system(6, racks=4, leaves=2, spines=2, up=3, cores=4, core_links=4))
    whole = text(plan)
    cut = whole[:length]
    site = read_fabric(cut + more, more, more, {})
    found = faults(plan, site)
    comment = re.fullmatch(r"\s*#.*\s*", more)  # one line after the last
    assert found or (cut + ("" if comment else more)).rstrip() == whole.rstrip()


ERRORS = """Errors for 0x200000000000010 "core-01"
   GUID 0x200000000000010 port ALL: [SymbolErrorCounter == 51] [PortXmitData == 1 (3.815MB)]
   GUID 0x200000000000010 port 1: [SymbolErrorCounter == {}] [PortXmitData == {} (3.815MB)]
"""


def test_thresholds_are_data_and_a_value_at_one_is_none() -> None:
    plan = planned(tree_system(2, racks=1, leaves=1, cores=1, core_links=2))

    def kinds(now: str, before: str = "", seconds: float = 0) -> list[str]:
        then = read_fabric(text(plan), "", before, {}).counters
        seen = Comparison(plan, read_fabric(text(plan), "", now, {}), [])
        return [one.kind for one in count_faults(seen, then, seconds, RULES)]

    assert RULES.counters["SymbolErrorCounter"].above == 50 and RULES.use.above == 95
    assert kinds(ERRORS.format(50, 0)) == []
    assert kinds(ERRORS.format(51, 0)) == ["SymbolErrorCounter"]
    assert kinds(ERRORS.format(90, 0), ERRORS.format(40, 0), 60) == []
    assert kinds(ERRORS.format(60, 0), ERRORS.format(90, 0), 60) == ["SymbolErrorCounter"]
    full = int(4 * 50e9 / 32)  # words of four bytes in a second, on 4xHDR
    assert kinds(ERRORS.format(0, int(60 * full * 0.94)), ERRORS.format(0, 0), 60) == []
    assert kinds(ERRORS.format(0, int(60 * full * 0.97)), ERRORS.format(0, 0), 60) == ["use"]


def test_every_kind_of_fault_says_what_to_do() -> None:
    source = (DATA / "src" / "mvstack" / "fabric" / "compare.py").read_text()
    kinds = set(re.findall(r'Fault\(\s*"(\w+)"', source)) | {
        "use",
        "names",
        "node",
        "link",
        "name",
        "unknown",
    }
    assert all(RULES.todo(kind) for kind in kinds)
    assert set(RULES.kinds) <= kinds


def test_metrics_are_in_prometheus_format_and_quoted() -> None:
    plan = planned(tree_system(2, racks=2, leaves=1, spines=0, up=0, cores=1, core_links=2))
    site = read(plan)
    guid = next(x.guid for x in site.devices.values() if not x.switch)
    site.devices[guid] = site.devices[guid]._replace(name='odd"\\name')
    site.counters[End(guid, 1)] = {"SymbolErrorCounter": 77}
    seen = Comparison(plan, site, [])
    lines = metrics(seen, seen.faults).splitlines()
    sample = re.compile(r'[a-z_]+\{(?:[a-z_]+="(?:[^"\\]|\\["\\])*",?)+\} [\d.e+]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines), lines
    assert sum('odd\\"\\\\name' in line and line.endswith(" 77") for line in lines) == 1
    assert sum("link_gbps{" in line for line in lines) == 2 * len(plan.links)


def shown(plan: Fabric, found: Fabric) -> tuple[Comparison, str]:
    seen = Comparison(plan, found, RULES.anywhere)
    return seen, page(seen, seen.faults, RULES, "T")


def keys(text: str) -> list[str]:
    """The figures at the top of a page."""
    return [f"{one} {what}" for one, what in re.findall(r'"key"><b>(.*?)</b>(.*?)</div>', text)]


def racks(text: str) -> dict[str, str]:
    """Each rack of a page as it is, in the order of the page."""
    return dict(re.findall(r'<details class="rack" id="(rack-\w+)"(.*?)</details>', text, re.S))


def test_the_page_has_each_rack_with_its_switches_nodes_links_and_errors() -> None:
    plan = planned(tree_system(2, racks=2, leaves=1, spines=0, up=0, cores=1, core_links=2))
    site = read(plan)
    clean, text = shown(plan, site)
    assert keys(text) == [
        "4 nodes",
        "3 switches",
        "8 links",
        "0 errors",
        "0 of 2 racks with errors",
    ]
    assert list(racks(text)) == ["rack-1", "rack-2", "rack-none"] and "No errors" in text
    assert not any(" open" in one or "bad" in one for one in racks(text).values())
    assert text.count('class="node ') == len(clean.nodes) + 2
    gone = next(x for x in site.links if all(site.devices[y.guid].switch for y in x.ends))
    site.links.remove(gone)
    node = next(x for x in site.devices.values() if x.label == "n02-001")
    del site.devices[node.guid]
    site.links = [x for x in site.links if node.guid not in [y.guid for y in x.ends]]
    stranger = Device("f" * 16, "<script>", True, 36)
    site.devices[stranger.guid] = stranger
    seen, text = shown(plan, site)
    assert keys(text) == [
        *("3 of 4 nodes", "3 switches", "6 of 8 links", "3 errors", "2 of 2 racks with errors"),
    ]
    one, two, cores = (racks(text)[f"rack-{x}"] for x in (1, 2, "none"))
    assert "1 of 2 links" in one and "1 of 2 links" in cores and "1 of 2 links" not in two
    assert f'<span class="node missing">{node.label}</span>' in two
    assert all(" open" in x and '<span class="bad">1 error</span>' in x for x in (one, two, cores))
    assert "<script>" not in text and "&lt;script&gt;" in text.partition("<details")[0]
    for fault in seen.faults:
        assert escape(fault.says) in text, fault


def test_a_page_of_comet_has_27_racks_and_each_error_in_its_own() -> None:
    planter = Planter(read(plan := planned(load_system("comet"))), 4)
    for kind in KINDS:
        assert planter.plant(kind), kind
    seen, text = shown(plan, planter.fabric)
    assert len(racks(text)) == 28
    for name, its in racks(text).items():
        nodes, switches = its.count('<span class="node'), its.count("<h3>")
        assert (nodes, switches) == ((0, 18) if name == "rack-none" else (72, 7))
    for fault in seen.faults:
        names = {x for x in re.split(r"[\s:,]+", fault.place) if x in plan.racks}
        for name in names:
            assert str(escape(fault.says)) in racks(text)[f"rack-{plan.racks[name]}"], fault
    bad = {name for name, its in racks(text).items() if " open" in its}
    assert [*racks(text)][: len(bad)] == [x for x in racks(text) if x in bad]  # they come first
    said = f"{len(bad - {'rack-none'})} of 27 racks with errors"
    assert said in keys(text) and f"{len(seen.faults)} errors" in keys(text)
    counts = re.findall(r'<a href="#(rack-\w+)" class="wrong">\w+<small>(\d+) error', text)
    assert {name for name, _ in counts} == bad
    for name, count in counts:
        assert racks(text)[name].count("<li>") == int(count)
    assert not re.search(r'(src|href)="(?!#)|url\(|<script|@import', text)  # nothing is loaded


def test_without_racks_a_page_is_by_switches() -> None:
    plan = planned(load_system("gordon"))
    _, text = shown(plan, read(plan))
    assert text.count("<section") == 64 and not racks(text) and "rack" not in " ".join(keys(text))
    assert keys(text)[:3] == ["1,024 nodes", "64 switches", "1,600 links"]


def test_an_error_between_two_switches_is_shown_at_both() -> None:
    """Where no single cable can be named, a comma follows the second."""
    plan = planned(tree_system(2, racks=2, leaves=1, spines=0, up=0, cores=1, core_links=2))
    seen = Comparison(plan, read(plan), [])
    fault = Fault("link", "core-01 to l01-1, 1 of 2 links", "a link of these is missing")
    text = page(seen, [fault], RULES, "T")
    assert {name for name, its in racks(text).items() if fault.says in its} == {
        *("rack-1", "rack-none"),
    }


def test_jobs_of_slurm_are_laid_over_nodes() -> None:
    jobs = jobs_by_node(
        "17 anna n[01-03,07],m5\n18 ben n[1-2]x[01-02]\n19 eve (None)\n20 x n[a-b]\n"
    )
    assert jobs["n02"] == {"17 (anna)"} == jobs["m5"] == jobs["n07"]
    assert jobs["n2x01"] == {"18 (ben)"} and "n04" not in jobs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("spines: 3", "spines: 4"), "ports"),
        (("nodes: {cpu: 18}", "nodes: {gpu: 18}"), "partition gpu"),
        (("racks: 27", "racks: 26"), "more nodes than"),
        (("{slot:02}", "{place}"), "slot"),
        (("{slot:02}", "{slot.real}"), "a name such as"),
        (("cores: 18, ", ""), "core_links"),
        (("{slot:02}", "{leaf}"), "names: node: {leaf} is not known here; use rack, slot"),
        (("-l{leaf}", "-{spine}"), "leaf: {spine} is not known here; use rack, leaf"),
        (("core-{core:02}", "core-{rack}"), "core: {rack} is not known here; use core"),
        (("-{slot:02}", ""), "devices would be called"),
        (("  tree: {", "  torus: {size: [1, 2, 3], links: 1}\n  tree: {"), "either"),
    ],
)
def test_a_wrong_description_is_told_with_its_line(change: tuple[str, str], said: str) -> None:
    path = DATA / "environments" / "systems" / "comet.yaml"
    with pytest.raises(InvalidInput) as error:
        planned(parse_system(path.read_text().replace(*change), path))
    assert said in str(error.value) and re.search(r"comet.yaml:\d+", str(error.value))


def test_a_capture_that_is_not_all_utf_8_is_read(tmp_path: Path) -> None:
    (tmp_path / "ibnetdiscover").write_bytes(b"# caf\xe9\nSwitch\n")
    assert _captured(tmp_path, "ibnetdiscover").endswith("\nSwitch\n")


def test_a_partition_needs_a_description_beside_a_capture() -> None:
    with pytest.raises(InvalidInput, match=r"^alps/cpu: which nodes .*\n.*  check alps, or desc"):
        check("alps/cpu", like=Path("capture"))


def test_without_a_description_the_way_on_is_told() -> None:
    with pytest.raises(Refused, match="--like"):
        planned(load_system("frontera"))


def test_a_map_is_mended_line_by_line() -> None:
    given = (
        '0x0002c90200000001 "leaf 1"\r\n\n# racks\n0002C90200000002\tspine"1"  # top\n'
        '0x2c90200000001 "again"\n0x0002c90200000003 "spine_1"\n'
        '0x0002c90200000004 "good"\nrubbish\n0x0002c90200000005 "fine"\r\n'
    )
    names, mends = cleaned(given)
    assert list(names.values()) == ["leaf_1", "spine_1", "spine_1-2", "good", "fine"]
    assert list(mends) == [1, 2, 3, 4, 5, 6, 8, 9]
    assert "a blank line" in mends[2] and "a comment" in mends[3] and "CR" in mends[1]
    assert "leaf_1 already" in mends[5] and "no GUID and name" in mends[8]


NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LINES = st.one_of(
    st.builds('0x{:016x} "{}"'.format, st.integers(0, 5), NAME),
    st.builds("{:x}\t{} # {}".format, st.integers(0, 2**64 - 1), NAME, NAME),
    st.sampled_from(["", " ", "\r", "# rack 1", '"']),
    NAME,
)


@given(st.lists(LINES).map("\n".join))
def test_a_cleaned_map_is_clean_and_each_other_line_is_told(given: str) -> None:
    names, mends = cleaned(given)
    again, left = cleaned(written(names))
    assert again == names and left == {}
    assert len(set(names.values())) == len(names)
    assert all(re.fullmatch(r'0x[0-9a-f]{16} "[^\s"#]+"', x) for x in written(names).splitlines())
    lines = given.removesuffix("\n").split("\n") if given else []
    kept = [x for n, x in enumerate(lines, 1) if n not in mends]
    assert set(kept) <= set(written(names).splitlines())
    assert all(1 <= n <= len(lines) for n in mends)
