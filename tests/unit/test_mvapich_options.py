"""Tables of configure options: consistent, and true to the sources that they were read from.

The second half needs unpacked source trees: set MVSTACK_TEST_MPI_SOURCES to a folder that holds
mvapich-4.0, mvapich-3.0 (with its configure scripts made), mvapich2-2.3.7, mpich-4.0.2, or some of
them.
"""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

EASYBLOCKS = Path(__file__).resolve().parents[2] / "easyconfigs" / "easyblocks"
sys.path.insert(0, str(EASYBLOCKS))

import mpich_options  # noqa: E402
import mvapich_configure  # noqa: E402
import mvapich_options as tables  # noqa: E402

VERSIONS = sorted(tables.VERSIONS)
SOURCES = os.environ.get("MVSTACK_TEST_MPI_SOURCES", "")
READ = {
    "mvapich2-2.3.7": tables.TABLE_2_3_7,
    "mvapich-3.0": tables.TABLE_3_0,
    "mvapich-4.0": tables.TABLE_4_0,
}


def source_tree(name):
    """The unpacked source, or a skip that says how to get it looked at."""
    if not SOURCES:
        pytest.skip(
            "MVSTACK_TEST_MPI_SOURCES is not set: the tables were not compared with any source"
        )
    tree = Path(SOURCES) / name
    if not (tree / "configure").is_file():
        pytest.skip(f"{tree}/configure is not there: {name} was not compared")
    return tree


def options_in(script):
    """Names such as enable_fast that a configure script lists as its own."""
    text = script.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^ac_user_opts='(.*?)'$", text, re.M | re.S)
    assert found, f"{script} has no ac_user_opts"
    return set(found.group(1).split())


def autoconf_names(part):
    """The options of a Part as configure lists them."""
    return {
        name[2:].replace("-", "_")
        for name in tables.spellings(part)
        if name.startswith(("--enable-", "--with-"))
    }


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_version_has_what_a_build_needs(name, version):
    options = tables.options_for(name, version)
    for one in (
        "--with-device",
        "--with-pm",
        "--enable-fast",
        "--disable-romio",
        "--enable-shared",
        "--with-file-system",
        "--without-slurm",
    ):
        assert one in options.flags
    assert "hydra" in options.pm
    assert "none" in options.gpu
    assert {"ufs", "nfs", "lustre"} <= options.file_systems
    assert options.source


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_the_easyblock_can_say_every_pmi_to_configure(name, version):
    generation = mvapich_configure.generation(name, version)
    assert tables.options_for(name, version).pmi <= set(mvapich_configure.PMI_OPTIONS[generation])


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_what_is_called_unknown_is_not_in_the_table(name, version):
    options = tables.options_for(name, version)
    unknown = tables.unknown_in(name, version)
    assert unknown
    assert not set(unknown) & options.flags
    assert all(unknown.values())


@pytest.mark.parametrize(
    "option",
    [
        "--disable-new-dtags",
        "--disable-cuda",
        "--disable-hip",
        "--enable-wrapper-rpath",
        "--disable-alloca",
        "--enable-registration-cache",
        "--enable-error-messages",
    ],
)
def test_options_of_other_recipes_that_4_0_ignores(option):
    assert option not in tables.options_for("MVAPICH", "4.0").flags
    assert option in tables.unknown_in("MVAPICH", "4.0")
    assert option in tables.unknown_in("MVAPICH", "4.1")


def test_4_1_is_4_0_and_says_that_nobody_has_looked():
    newest, read = tables.options_for("MVAPICH", "4.1"), tables.options_for("MVAPICH", "4.0")
    assert newest.flags == read.flags
    assert read.confirmed
    assert not newest.confirmed
    assert "4.0" in newest.source


def test_3_0_says_that_it_is_the_release_candidate():
    options = tables.options_for("MVAPICH", "3.0")
    assert not options.confirmed
    assert "3.0rc" in options.source
    assert "--with-rdma" not in options.flags


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_a_misread_value_belongs_to_a_known_option(name, version):
    options = tables.options_for(name, version)
    for one in tables.misread_in(name, version):
        assert one.split("=")[0] in options.flags
        assert "=" in one


@given(st.text(max_size=20), st.text(max_size=20))
def test_an_unread_version_is_a_lookup_error_that_lists_the_read_ones(name, version):
    if (name, version) in tables.VERSIONS:
        return
    with pytest.raises(LookupError, match=r"known are MVAPICH2 2\.3\.7"):
        tables.options_for(name, version)
    if name not in ("MVAPICH", "MVAPICH2"):
        assert tables.unknown_in(name, version) == {}


def test_facts_do_not_leak_to_versions_that_only_look_alike():
    assert tables.unknown_in("MVAPICH", "40.1") == {}
    assert tables.misread_in("MVAPICH", "30") == {}
    assert tables.unknown_in("MVAPICH2", "2.3.7-1") == tables.unknown_in("MVAPICH2", "2.3.7")


def test_the_caller_cannot_change_the_facts():
    tables.unknown_in("MVAPICH", "4.0").clear()
    assert tables.unknown_in("MVAPICH", "4.0")


def test_run_as_a_program_it_prints_every_version(capsys):
    runpy.run_path(str(EASYBLOCKS / "mvapich_options.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for name, version in VERSIONS:
        assert f"{name} {version} (" in printed
    assert "NOT confirmed" in printed
    assert "--enable-fast=opt: " in printed


@pytest.mark.parametrize("folder", sorted(READ))
def test_each_table_has_the_options_of_its_source_and_no_others(folder):
    tree = source_tree(folder)
    standard = autoconf_names(tables.STANDARD) | {"with_aix_soname", "enable_largefile"}
    for script, part in READ[folder].items():
        assert autoconf_names(part) == options_in(tree / script / "configure") - standard, script


@pytest.mark.parametrize(
    ("folder", "name", "version"),
    [
        ("mvapich2-2.3.7", "MVAPICH2", "2.3.7"),
        ("mvapich-3.0", "MVAPICH", "3.0"),
        ("mvapich-4.0", "MVAPICH", "4.0"),
    ],
)
def test_words_are_those_of_the_source(folder, name, version):
    tree = source_tree(folder)
    options = tables.options_for(name, version)
    romio = (tree / "src/mpi/romio/configure.ac").read_text(encoding="utf-8", errors="replace")
    listed = re.search(r"known_filesystems_m4_w\],\s*\[([^\]]*)\]", romio)
    assert listed
    assert set(listed.group(1).split()) == options.file_systems
    managers = {one.name for one in (tree / "src/pm").iterdir() if one.is_dir()} - {"util"}
    ours = {"mpirun" if one == "mpirun_rsh" else one for one in options.pm} - {"none"}
    # slurm needs no folder: srun starts ranks of a library without process manager; hydra2 is not
    # offered.
    assert ours - {"slurm"} == managers - {"slurm", "hydra2"}
    for device in options.devices:
        family, _, rest = device.partition(":")
        channels = rest.split(",") if family == "ch4" else [rest.split(":")[0]]
        kind = "netmod" if family == "ch4" else "channels"
        for channel in channels:
            assert (tree / "src/mpid" / family / kind / channel).is_dir(), device
        if device.count(":") == 2:
            netmod = tree / "src/mpid/ch3/channels/nemesis/netmod" / device.split(":")[2]
            assert netmod.is_dir(), device


def test_the_table_of_mpich_is_true_to_its_source():
    tree = source_tree("mpich-4.0.2")
    known = set()
    for script in (".", "src/mpl", "src/mpi/romio", "src/pm/hydra", "modules/yaksa"):
        known |= options_in(tree / script / "configure")
    for flag in mpich_options.options_for("4.0.2").flags:
        assert (
            re.sub("^without", "with", re.sub("^disable", "enable", flag[2:])).replace("-", "_")
            in known
        ), flag
