"""A site's own folder: what it holds goes before ours, and an error names its file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mvstack.builders.easybuild.command import EasyBuild
from mvstack.model.load import load_policy, load_release, load_system, release_names, system_names
from mvstack.plan import easyconfigs
from mvstack.plan.make import make_plan
from mvstack.render.partition import render
from mvstack.sources.spec import known_sources
from mvstack.support.errors import InvalidInput, Missing
from mvstack.support.home import DATA, checkout, home, use

NEWEST = release_names()[0]
ROW = """builds:
  - id: lab-ours
    when: {fabric: [infiniband]}
    use:
      product: mvapich
      devices: ["ch4:ucx"]
      transports: {"ch4:ucx": {library: ucx}}
    believe: {transports: [rc_mlx5]}
    why: the lab measured it
    source: the lab
"""
PACKAGES = f"""name: "{NEWEST}"
extends: "{NEWEST}"
packages:
  - name: Zeta
    version: "1.0"
    title: The lab's own
    toolchain: gmvapich
    module: zeta/1.0
    why: the lab's
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty site's folder, in use."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("MVSTACK_SITE", str(folder))
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_sites_system_is_listed_and_stands_for_ours_of_that_name(site: Path) -> None:
    ours = (DATA / "environments" / "systems" / "azure-hbv4.yaml").read_text()
    write(site / "systems" / "lab.yaml", ours.replace("name: azure-hbv4", "name: lab"))
    write(site / "systems" / "azure-hbv4.yaml", ours.replace("Microsoft Azure", "The lab"))
    assert {"lab", "expanse"} <= set(system_names())
    assert load_system("lab").name == "lab"
    assert load_system("azure-hbv4").site == "The lab"


def test_a_sites_policy_row_is_tried_before_ours(site: Path) -> None:
    before = load_policy().builds
    write(site / "policy" / "builds.yaml", ROW)
    policy = load_policy()
    assert policy.builds[0].id == "lab-ours"
    assert [row.id for row in policy.builds[1:]] == [row.id for row in before]
    plan = make_plan(load_system("azure-hbv4"), "hpc", load_release(), policy)
    assert plan.mpi[0].why == "the lab measured it"


def test_an_error_in_a_sites_policy_names_its_file_and_line(site: Path) -> None:
    path = write(site / "policy" / "builds.yaml", ROW.replace("why: the", "wy: the"))
    with pytest.raises(InvalidInput) as error:
        load_policy()
    assert f"{path}:9" in str(error.value) and "did you mean why" in str(error.value)


def test_a_sites_release_adds_packages_to_ours(site: Path) -> None:
    ours = load_release()
    write(site / "releases" / f"{NEWEST}.yaml", PACKAGES)
    found = load_release()
    assert [one.name for one in found.packages] == [*(one.name for one in ours.packages), "Zeta"]
    assert (found.title, found.mpi) == (ours.title, ours.mpi)


@pytest.mark.parametrize("other", ["2001.01", "2099.01"])
def test_a_release_extends_one_that_is_there(site: Path, other: str) -> None:
    text = PACKAGES.replace(f'extends: "{NEWEST}"', f'extends: "{other}"')
    path = write(site / "releases" / f"{NEWEST}.yaml", text)
    with pytest.raises(InvalidInput, match=rf"{path}:2: extends: there is no release {other}"):
        load_release()


def test_a_release_with_a_mistake_names_the_line_of_the_site(site: Path) -> None:
    path = write(site / "releases" / f"{NEWEST}.yaml", PACKAGES.replace("title:", "titel:"))
    with pytest.raises(InvalidInput, match=rf"{path}:6"):
        load_release()


def test_a_sites_easyconfig_stands_for_ours_and_is_part_of_what_eb_searches(site: Path) -> None:
    name = "HPCC-1.5.0-gmvapich-2026.11-ofi.eb"
    ours = easyconfigs.find(name, "a test")
    own = write(site / "easyconfigs" / "h" / "HPCC" / name, ours.read_text() + "\n# the lab's\n")
    assert easyconfigs.find(name, "a test") == own
    command = EasyBuild(site, site, site, system_compiler=False).command("x.eb")
    robot = next(word for word in command if word.startswith("--robot=")).split(":")
    assert robot.index(str(site / "easyconfigs")) < robot.index(str(easyconfigs.FOLDER))


def test_a_sites_sources_are_known_beside_ours(site: Path) -> None:
    ours = known_sources()
    row = "sources:\n  zeta.tgz: {pypi: zeta==1, why: the lab's, source: the lab}\n"
    write(site / "policy" / "sources.yaml", row)
    assert set(known_sources()) == {*ours, "zeta.tgz"}


def test_a_sites_lines_end_the_core_module(site: Path) -> None:
    plan = make_plan(load_system("expanse"), "cpu", load_release(), load_policy())
    before = render(plan)[f"modules/mvapich-stack/{NEWEST}.lua"]
    write(site / "modulefiles" / "site.lua", 'setenv("LAB", "1")\n')
    after = render(plan)[f"modules/mvapich-stack/{NEWEST}.lua"]
    assert after.startswith(before.rstrip()) and after.endswith('\nsetenv("LAB", "1")\n')


def test_a_folder_is_named_the_same_on_every_machine(site: Path) -> None:
    assert home().named(site / "easyconfigs" / "a.eb") == "easyconfigs/a.eb"
    assert home().named(DATA / "easyconfigs" / "a.eb") == "easyconfigs/a.eb"


def test_a_site_is_a_folder_and_a_slip_in_its_folders_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such folder"):
        use(tmp_path / "none")
    (tmp_path / "system").mkdir()
    with pytest.raises(InvalidInput, match="system: a site has no such folder"):
        use(tmp_path)


def test_using_a_site_tells_processes_that_we_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_SITE", "")
    use(tmp_path)
    assert os.environ["MVSTACK_SITE"] == str(tmp_path) and home().site == tmp_path


def test_what_needs_a_clone_says_so_when_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mvstack.support.home.INSTALLED", True)
    with pytest.raises(Missing, match="mvstack diff needs a clone"):
        checkout("mvstack diff")


def test_a_file_that_nothing_reads_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path))
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "sm.yml").touch()
    with pytest.raises(InvalidInput, match=r"sm.yml: nothing reads .*\n.* call it sm.yaml"):
        system_names()
