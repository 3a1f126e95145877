"""Estimates: a recorded build takes what it took, others follow the table, the table is whole."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.ci.estimate import seconds
from mvstack.ci.graph import Node
from mvstack.model.base import validated
from mvstack.model.build_times import BuildTimes, build_times
from mvstack.model.load import load_release
from mvstack.model.yamlfile import parse_yaml
from mvstack.support.errors import InvalidInput

TABLE = """
default: {serial_seconds: 40, parallel_core_seconds: 120, why: a small library}
assumed: {serial_share: 0.2, why: as measured}
recorded:
  - {package: A, version: "1.0", seconds: 100.0, cores: 2, builder: spack, source: a record}
estimates:
  - {package: B, also: [b-c], serial_seconds: 10, parallel_core_seconds: 20, why: small}
"""


def node(name: str, version: str = "1.0", needs: tuple[str, ...] = (), kind: str = "package"):
    return Node("key", kind, name, version, "content", needs)


def test_a_recorded_build_takes_what_it_took():
    assert seconds(node("MPICH", "4.0.2"), 2) == pytest.approx(470.6)  # the longer of two
    assert seconds(node("OSU-Micro-Benchmarks", "7.5"), 2) == pytest.approx(65.0)


def test_only_what_is_parallel_gets_faster_with_cores():
    recorded = next(row for row in build_times().recorded if row.seconds == 470.6)
    assert recorded.serial_seconds == 106.8
    expected = 106.8 + (470.6 - 106.8) * 2 / 16
    assert seconds(node("MPICH", "4.0.2"), 16) == pytest.approx(expected)


def test_names_count_without_case_and_versions_only_where_a_row_has_them():
    assert seconds(node("mpich", "5.0"), 8) == seconds(node("MPICH", "4.0.2"), 8)
    assert seconds(node("mvapich", "3.0rc"), 2) == pytest.approx(535.6)
    assert seconds(node("mvapich", "4.1"), 2) == pytest.approx(684.5)  # no row: the upper median
    assert seconds(node("quantum-espresso"), 4) == seconds(node("QuantumESPRESSO"), 4)


def test_a_compiler_of_the_system_is_a_module_and_one_from_source_is_long():
    module = seconds(node("GCC", "12.2.0", ("GCCcore-12.2.0.eb",), "compiler"), 8)
    source = seconds(node("GCC", "12.2.0", (), "compiler"), 8)
    assert module < 5 < 1000 < source
    assert seconds(node("gcc", "12.2.0", ("glibc", "zlib")), 8) == source


def test_what_no_row_names_takes_the_default():
    default = build_times().default
    expected = default.serial_seconds + default.parallel_core_seconds / 4
    assert seconds(node("nobody-knows-this"), 4) == pytest.approx(expected)


@given(st.sampled_from([row.package for row in build_times().estimates]), st.integers(1, 256))
def test_more_cores_never_take_longer(name, cores):
    assert 0 < seconds(node(name), cores + 1) <= seconds(node(name), cores)


def test_a_build_without_a_core_is_refused():
    with pytest.raises(ValueError, match="needs a core"):
        seconds(node("MPICH"), 0)


def test_all_packages_of_the_release_are_known():
    known = {name for row in build_times().recorded for name in row.names}
    known |= {name for row in build_times().estimates for name in row.names}
    release = load_release()
    wanted = {package.name.lower() for package in release.packages}
    wanted |= set(release.mpi) | {"gmpich", "gmvapich"}
    assert wanted <= known


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores: 2", "cores: 0", "cores"),
        ("seconds: 100.0", "seconds: .inf", "seconds"),
        ("cores: 2", "cores: 2, serial_seconds: 100.5", "serial_seconds"),
        ("source: a record", 'source: ""', "source"),
        ("why: small", "because: small", "why"),
        ("builder: spack", "builder: make", "builder"),
        ("also: [b-c]", "also: [B]", "twice"),
        ("also: [b-c]", "also: [b]", "twice"),
    ],
)
def test_a_wrong_table_is_refused(old, new, message):
    assert old in TABLE
    validated(BuildTimes, parse_yaml(TABLE, Path("t.yaml")))
    with pytest.raises(InvalidInput) as caught:
        validated(BuildTimes, parse_yaml(TABLE.replace(old, new), Path("t.yaml")))
    assert message in str(caught.value)
