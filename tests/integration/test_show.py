"""`mvstack list` and `show`: what a person finds in a terminal, and what a script reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from said import Mvstack

from mvstack.model.load import load_release, load_system, system_names
from mvstack.report.offers import planned
from mvstack.report.seen import Row


def test_a_partition_says_how_to_load_and_run_it_in_lines_to_copy(
    mvstack: Mvstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MVSTACK_ROOT")  # else it is below that
    said = mvstack("show", "expanse/cpu").out
    tree = "/cm/shared/apps/mvapich-stack/2026.11/expanse-cpu"
    assert f"    source {tree}/init/bash\n" in said
    assert "    module load mvapich-stack/2026.11 mvapich/4.0-ucx\n" in said
    (shown,) = json.loads(mvstack("show", "expanse/cpu", "--json").out)
    load = ["module load mvapich-stack/2026.11 mvapich/4.0-ucx"]
    assert shown["lines"]["load it"] == [f"source {tree}/init/bash", *load]
    assert shown["lines"]["run in a job"] == ["srun --mpi=pmi2 -n 256 ./program"]
    assert said.count("    srun --mpi=pmi2 -n 256 ./program\n") == 2  # alone, and in the job
    assert "    #SBATCH --ntasks-per-node=128\n" in said
    for words in ("infiniband", "728", "not installed", "mvstack explain expanse/cpu", "lammps"):
        assert words in said
    assert "passed over" not in said  # that is explain's


def test_a_job_keeps_its_indentation(mvstack: Mvstack) -> None:
    (shown,) = json.loads(mvstack("show", "voyager/gaudi", "--json").out)
    lines = shown["lines"]["kubectl apply -f job.yaml, where job.yaml is"]
    assert yaml.safe_load("\n".join(lines))["spec"]["slotsPerWorker"] == 8
    said = mvstack("show", "voyager/gaudi").out
    assert "\n    spec:\n      mpiImplementation: MPICH\n" in said


def test_a_system_tells_its_sources_and_what_it_does_not_offer(mvstack: Mvstack) -> None:
    system, *parts = json.loads(mvstack("show", "expanse", "--json").out)
    assert system["kind"] == "system" and "not confirmed" in system["facts"]["status"][0]
    assert any("expanse/a100" in one for one in system["facts"]["not offered"])
    assert [one["name"] for one in parts] == ["expanse/cpu", "expanse/gpu"]


def test_what_is_installed_here_is_said(mvstack: Mvstack, tmp_path: Path) -> None:
    plan = tmp_path / "apps" / "2026.11" / "expanse-cpu" / "records" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    (shown,) = json.loads(mvstack("show", "expanse/cpu", "--root", plan.parents[3], "--json").out)
    assert shown["facts"]["here"] == [f"2026.11 below {plan.parents[3]}"]
    rows = json.loads(mvstack("list", "--root", plan.parents[3], "--json").out)
    assert [one["system"] for one in rows if one["installed"]] == ["expanse/cpu"]


@pytest.mark.parametrize("name", ["lammps", "LAMMPS", "lammps/20250722"])
def test_a_package_is_known_by_its_name_and_its_module(mvstack: Mvstack, name: str) -> None:
    (shown,) = json.loads(mvstack("show", name, "--json").out)
    versions = {one.module for one in load_release().packages if one.name == "LAMMPS"}
    assert versions <= set(shown["facts"]) and shown["kind"] == "package"
    on = {row["partition"]: row["module"] for row in shown["rows"]}
    assert on["expanse/cpu"] == "lammps/20250722" and on["azure-hbv4/hpc"] == "lammps/4jul2026"


def test_an_mpi_is_known_by_the_module_of_a_build(mvstack: Mvstack) -> None:
    """As `list mpi` names it."""
    (shown,) = json.loads(mvstack("show", "mvapich/4.0-ucx", "--json").out)
    assert (shown["kind"], shown["name"]) == ("MPI", "mvapich")
    assert mvstack("show", "mvapich/4.1-mrail").code == 3


def test_what_a_package_was_seen_to_do_is_that_of_the_record(
    mvstack: Mvstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = next(one for one in load_release().packages if one.name == "HPCC")
    fields = {
        "package": "HPCC",
        "version": package.version,
        "builder": "spack",
        "date": "2026-01-01",
    }
    row = Row(**fields, mpi="mvapich@4.0 on expanse/cpu", state="built", of=package.spack)
    monkeypatch.setattr("mvstack.report.seen.read_record", lambda: [row])
    monkeypatch.setattr("mvstack.report.seen.read_rows", lambda *_: [])  # no lock of any partition
    (shown,) = json.loads(mvstack("show", "hpcc", "--json").out)
    assert shown["facts"]["seen"] == ["spack 2026-01-01: built, over mvapich@4.0 on expanse/cpu"]
    seen = {row["partition"]: row["seen"] for row in shown["rows"]}
    assert seen["expanse/cpu"].startswith("rendered; 1 of ")
    other = row.model_copy(update={"state": "failed"})
    monkeypatch.setattr("mvstack.report.seen.read_record", lambda: [other])
    offers = {one.title: one.seen for one in planned().every()}
    assert offers["expanse/cpu"] == "rendered"


def test_a_name_of_two_kinds_shows_both(mvstack: Mvstack) -> None:
    kinds = {one["kind"]: one for one in json.loads(mvstack("show", "efa", "--json").out)}
    assert set(kinds) == {"fabric", "provider"}
    assert "aws-p5/gpu" in [row["partition"] for row in kinds["fabric"]["rows"]]


@pytest.mark.parametrize(
    "name",
    ["daint", "comet/cpu", "hypre", "mvapich-plus", "slingshot-11", "nvidia", "cxi"],
)
def test_every_kind_of_name_can_be_shown(mvstack: Mvstack, name: str) -> None:
    said = mvstack("show", name)
    assert said.code == 0 and name in said.out.lower()


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["show", "exanse"], "expanse"),
        (["show", "lamps"], "lammps"),
        (["show", "infinband"], "infiniband"),
        (["show", "expanse/cp"], "expanse/cpu"),
        (["explain", "expanse/cp"], "expanse/cpu"),
    ],
)
def test_a_typo_gets_the_nearest_name(mvstack: Mvstack, words: list[str], near: str) -> None:
    said = mvstack(*words)
    assert said.code == 3 and near in said.err and "to go on" in said.err


def test_the_machine_that_one_is_on_is_explained(mvstack: Mvstack) -> None:
    said = mvstack("show", "local")
    assert said.code == 3 and "mvstack explain local" in said.err


def test_a_system_file_is_shown(mvstack: Mvstack, tmp_path: Path) -> None:
    file = Path(tmp_path, "mine.yaml")
    ours = Path(__file__).resolve().parents[2] / "environments" / "systems" / "expanse.yaml"
    file.write_text(ours.read_text().replace("name: expanse", "name: mine"))
    (shown,) = json.loads(mvstack("show", f"{file}/cpu", "--json").out)
    assert shown["name"] == "mine/cpu"
    assert shown["facts"]["why"] == [f"mvstack explain {file}/cpu"]


def test_the_list_has_every_partition_and_what_nothing_is_offered_on(mvstack: Mvstack) -> None:
    rows = {one["system"]: one for one in json.loads(mvstack("list", "--json").out)}
    systems = [load_system(name) for name in system_names()]
    parts = {f"{one.name}/{part}" for one in systems for part in one.partitions}
    assert set(rows) >= parts | {"local", "daint/hybrid"}
    assert rows["expanse/gpu"]["mpi"] == ["mvapich-plus/5.0.0-ucx"]
    assert rows["daint/hybrid"]["status"] == "not offered" and rows["daint/hybrid"]["because"]
    first = mvstack("list").out.splitlines()[0].split()
    assert first == [
        *("system", "mpi", "fabric", "gpu", "launcher", "builder", "status", "installed")
    ]


def test_the_reasons_of_a_historic_release_are_asked_of_that_release(mvstack: Mvstack) -> None:
    (shown,) = json.loads(mvstack("show", "expanse/cpu", "--release", "2023.08", "--json").out)
    (why,) = shown["facts"]["why"]
    assert why == "mvstack explain expanse/cpu --release 2023.08"
    assert "mvapich2 2.3.7" in mvstack(*why.split()[1:]).out


def test_a_release_of_some_systems_lists_those_alone(mvstack: Mvstack) -> None:
    rows = json.loads(mvstack("list", "--release", "2014.08", "--json").out)
    assert [one["system"] for one in rows] == ["gordon/cpu", "gordon/vsmp"]


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_release_without_packages_is_no_traceback(
    mvstack: Mvstack, words: tuple[str, ...]
) -> None:
    said = mvstack("list", "packages", "--release", "2014.08", *words)
    assert (said.code, said.out) == (0, "[]\n" if words else "no packages\n")


def test_mpi_builds_are_listed_with_the_partitions_that_get_them(mvstack: Mvstack) -> None:
    rows = json.loads(mvstack("list", "mpi", "--json").out)
    told = {part: row["module"] for row in rows for part in row["on"]}
    assert told["gordon/cpu"] == "mvapich2/2.3.7-2-mrail"
    assert {row["product"] for row in rows} >= {"MVAPICH", "MVAPICH2", "MVAPICH-Plus"}
    assert set(told) == {one.title for one in planned().every() if one.plan}


@pytest.mark.parametrize("name", ["roce", "amd", "verbs;ofi_rxm"])
def test_fabrics_gpus_and_providers_are_words_of_show(mvstack: Mvstack, name: str) -> None:
    (shown,) = json.loads(mvstack("show", name, "--json").out)
    assert shown["facts"]["why"] and shown["kind"] in ("fabric", "GPU", "provider")


def test_a_partition_without_an_image_of_its_own_names_the_one_that_serves_it(
    mvstack: Mvstack,
) -> None:
    said = " ".join(mvstack("show", "azure-hx").out.split())
    assert "image azure-hbv4/hpc is made for these machines, too" in said
