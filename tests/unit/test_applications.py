"""What is recorded of applications, and the page that shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from applications_page import applications_page
from install_tree import install, plan_in
from installed_rows import merged, rows_of, written

from mvstack.model.load import load_release
from mvstack.plan import easyconfigs
from mvstack.report.seen import Row, hash_of, read_record
from mvstack.support.errors import InvalidInput
from mvstack.tree.records import Records

HPCC = "HPCC-1.5.0-gmvapich-2026.11-ucx.eb"


def row(**changes: object) -> Row:
    values = {
        "package": "HPCC",
        "version": "1.5.0",
        "builder": "easybuild",
        "mpi": "mvapich/4.0-ucx",
        "date": "2026-11-22",
        "state": "built",
        "of": "x",
    }
    return Row(**{**values, **changes})  # type: ignore[arg-type]


def test_a_newer_row_takes_the_place_of_an_older_one() -> None:
    rows = merged([row(), row(package="A")], [row(state="run", seconds=36.0)])
    assert [(one.package, one.state) for one in rows] == [("A", "built"), ("HPCC", "run")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(written([row(figure="1.2 Gflop/s")]))
    assert read_record(path) == [row(figure="1.2 Gflop/s")]
    assert read_record(tmp_path / "none") == []


def test_lines_that_are_none_are_named_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    good = written([row()])
    path.write_text(f"no json\n{good}{good.replace('built', 'perfect')}")
    with pytest.raises(InvalidInput) as error:
        read_record(path)
    assert [one.where.rpartition(":")[2] for one in error.value.problems] == ["1", "3"]


def test_one_easyconfig_counts_over_every_mpi() -> None:
    assert hash_of(HPCC) == hash_of("HPCC-1.5.0-gmvapich-2026.11-ofi.eb") != ""
    assert hash_of("Nothing-1.0.eb") == ""


def tree_of(tmp_path: Path, result: str, *cases: dict[str, object], target: str = "zen3") -> Path:
    plan = plan_in(tmp_path)
    plan = replace(plan, packages=plan.packages[:1], target=target)
    install(plan)
    records = Records(Path(plan.tree))
    records.plan(plan.as_dict())
    package = plan.packages[0]
    records.append("builds", {"easyconfig": package.easyconfig, "result": result, "seconds": 36.4})
    folder = Path(plan.tree, "software", "HPCC", f"1.5.0-{package.easyconfig[11:-3]}")
    folder.mkdir(parents=True)
    (folder / "hpcc").write_bytes(b"x" * 2_000_000)
    results = Path(plan.tree, "records", "results")
    results.mkdir(parents=True)
    (results / "a.json").write_text(json.dumps({"cases": list(cases)}))
    return Path(plan.tree)


def case(result: str, ranks: int) -> dict[str, object]:
    figure = {"name": "HPL_Tflops", "size": None, "value": 0.0123, "unit": "Tflop/s"}
    return {
        "check": f"Hpcc {ranks}",
        "mpi": "mvapich/4.0-ucx",
        "result": result,
        "ranks": ranks,
        "benchmark": "HPCC 1.5.0",
        "figures": [figure],
    }


@pytest.mark.parametrize(
    ("cases", "state", "checks"),
    [
        ([], "built", ""),
        ([case("pass", 1), case("pass", 2)], "run", "2 of 2 passed on 1, 2 ranks"),
        ([case("pass", 1), case("fail", 2)], "built", "1 of 2 passed on 1 ranks"),
        ([case("skip", 1)], "built", ""),
    ],
)
def test_a_tree_tells_what_was_built_and_run(
    tmp_path: Path, cases: list[dict[str, object]], state: str, checks: str
) -> None:
    (found,) = rows_of(tree_of(tmp_path, "built", *cases))
    assert (found.package, found.state, found.checks) == ("HPCC", state, checks)
    assert (found.seconds, found.size_mb, found.of) == (36.4, 2, hash_of(HPCC))
    passed = any(one["result"] == "pass" for one in cases)
    assert found.figure.startswith("HPL Tflops 0.0123 Tflop/s on ") == passed


def test_what_failed_to_build_is_said_to_have_failed(tmp_path: Path) -> None:
    assert rows_of(tree_of(tmp_path, "failed"))[0].state == "failed"


def test_a_row_of_another_architecture_says_so(tmp_path: Path) -> None:
    assert rows_of(tree_of(tmp_path, "built"))[0].mpi == "mvapich/4.0-ucx"
    (found,) = rows_of(tree_of(tmp_path / "arm", "built", target="neoverse_v1"))
    assert found.mpi == "mvapich/4.0-ucx on aarch64"


def test_the_page_shows_a_row_for_as_long_as_its_recipe_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import applications_page as page

    def shown(*rows: Row) -> str:
        monkeypatch.setattr(page, "read_record", lambda: list(rows))
        return next(line for line in applications_page().splitlines() if "`hpcc/1.5.0`" in line)

    assert "| recipe | recipe |" in shown()
    fresh = row(state="run", of=hash_of(HPCC), seconds=36.4, checks="1 of 1 passed")
    assert "| run, 36 s | recipe | 1 of 1 passed |" in shown(fresh)
    assert "| recipe | recipe |" in shown(row(state="run", of="an older easyconfig"))
    spec = next(one.spack for one in load_release().packages if one.name == "HPCC")
    assert "| recipe | built |" in shown(row(builder="spack", of=spec))


def test_the_page_has_one_line_of_a_module_that_each_builder_has_a_row_of() -> None:
    rows = [one for one in load_release().packages if one.module == "hpl/2.3"]
    assert {one.where.builder for one in rows} == {"easybuild", "spack"}
    table = [line for line in applications_page().splitlines() if line.startswith("| `hpl/2.3`")]
    assert len(table) == 1 and "—" not in table[0]


def test_of_rows_alike_that_over_our_own_mpi_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    import applications_page as page

    rows = [row(mpi=mpi, of=hash_of(HPCC), checks=mpi) for mpi in ("mpich/4", "mvapich/4.0-ucx")]
    for order in (rows, rows[::-1]):
        monkeypatch.setattr(page, "read_record", lambda order=order: order)
        assert "| mvapich/4.0-ucx |" in applications_page()


def test_every_package_of_the_release_that_names_a_toolchain_has_its_easyconfig() -> None:

    release, there = load_release(), easyconfigs.index()
    missing = [
        f"{one.name} {one.version}"
        for one in release.packages
        if one.toolchain
        and easyconfigs.by_hand(one, release.name) not in there
        and not (one.toolchain == "gcc" or one.where.builder == "spack")
    ]
    assert missing == []
