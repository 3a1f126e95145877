"""The report's page, written by processes of its own."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checks_tree import installed_plan

from mvstack.report.page import render
from mvstack.report.summary import gather

SAMPLES = Path(__file__).parents[1] / "data" / "report"


def test_the_same_records_give_the_same_bytes_in_another_process(tmp_path):
    program = (
        "import sys; from pathlib import Path; from mvstack.report.page import write_html;"
        "from mvstack.report.summary import gather;"
        "write_html(gather(Path(sys.argv[1])), Path(sys.argv[2]))"
    )
    made = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.html"
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "TZ": f"X{seed}"}
        command = [sys.executable, "-c", program, str(SAMPLES / "mvapich-two-devices"), str(path)]
        subprocess.run(command, check=True, env={**environment, "HOME": str(tmp_path)})
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert made[0].decode() == render(gather(SAMPLES / "mvapich-two-devices"))


def test_matplotlib_is_not_imported_before_a_page_is_written():
    program = "import sys, mvstack.report.page; sys.exit('matplotlib' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0


def test_two_releases_of_an_installed_tree_stand_side_by_side(tmp_path):
    """The records of the tree here, and the same as those of a release that took half the time."""
    plan = installed_plan()
    own = Path(plan["tree"]) if plan else Path()
    if not plan or len(list(own.glob("records/results/*.json"))) < 2:
        pytest.skip("no tree with two runs of the checks is installed here (mvstack up local)")
    old = tmp_path / "2000.01" / own.name / "records"
    for records in (old, tmp_path / own.parent.name / own.name / "records"):
        shutil.copytree(own / "records", records, ignore=shutil.ignore_patterns("last-test"))
    (old / "plan.json").write_text(json.dumps(plan | {"release": "2000.01"}))
    for path in (old / "results").iterdir():
        run = json.loads(path.read_text())
        figures = [x for case in run["cases"] for x in case["figures"] if x["unit"] == "us"]
        for one in figures:
            one["value"] = one["value"] and one["value"] / 1000
        path.write_text(json.dumps(run | {"started": f"2000{run['started'][4:]}"}))
    data = gather(tmp_path / own.parent.name / own.name)
    both = [one for one in data.courses if one.since]
    assert both and {one.since for one in both} == {"2000.01"}
    for one in both:
        assert one.ratio == pytest.approx(1000 if one.unit == "us" else 1)
        assert one.beyond in (("worse", "") if one.unit == "us" else ("",))
        assert len({x.release for x in one.values}) == 2
    assert any(one.beyond == "worse" for one in both)
    page = render(data)
    assert len(re.findall(r'<svg class="spark"', page)) == len(data.courses)
    assert "What changed since 2000.01" in page and ">worse</span>" in page
