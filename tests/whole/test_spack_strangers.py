"""What strangers type into a stock Spack with our repository: the answer, or first of all why not.

strangers.yaml beside this file is the table. One Spack solves all of it, in half an hour or so.
"""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from spack_stock import STACK, Stock

INSIDE = Path(__file__).with_name("spack_strangers_inside.py")
ROWS = YAML(typ="safe").load(Path(__file__).with_name("strangers.yaml"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    stock = Stock(tmp_path_factory.mktemp("stock"))
    stock.takes(stock.packages)
    stock.run("repo", "add", str(STACK))
    rows, found = stock.folder / "rows.json", stock.folder / "answers.jsonl"
    rows.write_text(json.dumps(ROWS))
    stock.run("python", str(INSIDE), str(rows), str(found))
    return {one["spec"]: one for one in map(json.loads, found.read_text().splitlines())}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("spec", [row["spec"] for row in ROWS])
def test_a_strangers_spec_is_answered_or_refused_with_the_reason_first(answers, spec):
    assert not answers[spec]["wrong"], answers[spec]


def test_the_table_holds_answers_and_refusals_and_no_row_twice():
    assert len({row["spec"] for row in ROWS}) == len(ROWS) >= 40
    assert all(("refused" in row) != ("is" in row) for row in ROWS)
