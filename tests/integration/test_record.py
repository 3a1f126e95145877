"""`mvstack test --record` on a tree: the rows that it writes judge the next run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from measured_tree import measured
from typer.testing import CliRunner

from mvstack.cli.main import app

pytestmark = pytest.mark.slow


def test_what_is_recorded_judges_the_next_run(tmp_path: Path, monkeypatch) -> None:
    plan = measured(tmp_path / "root")
    plan["mpi"][0]["software"], plan["target"] = "MPICH", "zen3"
    tree, site = Path(plan["tree"]), tmp_path / "site"
    (tree / "records" / "plan.json").write_text(json.dumps(plan))
    (site / "references").mkdir(parents=True)
    monkeypatch.setenv("MVSTACK_SITE", str(site))

    def tested(*words: str) -> str:
        options = ["test", "local", "--tag", "bench", "--root", plan["root"], *words]
        done = CliRunner().invoke(app, options, catch_exceptions=False)
        print(done.stdout)
        assert done.exit_code == 0, done.output
        return done.stdout

    said = tested("--record")
    assert "no row, for fewer than 6 kept runs do not say how much it varies: Benchmark " in said
    assert said.endswith("no figure has a row to write\n")
    (first,) = (tree / "records" / "results").iterdir()
    for number in range(5):
        shutil.copy(first, first.with_name(f"{number}.json"))

    said = tested("--record")
    file = site / "references" / "local.yaml"
    assert "+++ references/local.yaml\n@@ -0,0 " in said
    assert f"written: {file}; review it as any change\n" in said
    rows = yaml.safe_load(file.read_text())
    assert {row["mpi"] for row in rows} == {"mpich/4.0.2-ucx"}
    assert "; 7 runs had " in rows[0]["source"]

    options = ["test", "local", "--tag", "bench", "--root", plan["root"]]
    CliRunner().invoke(app, options)  # a busy machine may fail
    results = json.loads((tree / "records/last-test/results.json").read_text())
    figures = [row for case in results["cases"] for row in case["figures"]]
    judged = {(row["name"], row["size"]) for row in figures if row["reference"]}
    assert judged == {(row["figure"], row.get("size")) for row in rows}
