"""docs/adding/fabric.md, followed: one policy row, one system file, one expectation.

The fabric is made up. Its row and its system stand in a site's folder, and in `check`, `explain`
and `render` it is a fabric like any other: its words, its build, its provider, its Spack spec.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from derived import schemas
from recipe_tables import FILE, fabric_tables
from ruamel.yaml import YAML
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.model.load import load_policy
from mvstack.support.errors import InvalidInput

DOCS = Path(__file__).resolve().parents[2] / "docs" / "adding" / "fabric.md"
ROW, SYSTEM = re.findall(r"^```yaml\n(.*?)^```$", DOCS.read_text(), re.S | re.M)
EXPECTED = ("mvapich/4.0-ofi", "warp", "netmod:=ofi fabrics:=warpfabric")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder, name, text in (
        ("policy", "fabrics.yaml", ROW),
        ("systems", "enterprise.yaml", SYSTEM),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path))
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.exception
    return done.stdout


def test_it_is_checked_explained_and_rendered(site: Path, tmp_path: Path) -> None:
    found = json.loads(run("check", "enterprise", "--json"))
    assert found["checked"] == ["enterprise/bridge"] and found["warnings"] == []

    module, provider, spec = EXPECTED
    (plan,) = json.loads(run("explain", "enterprise", "--json"))["plans"]
    (build,) = plan["mpi"]
    assert build["module"] == module and spec in build["spack"]["spec"]
    assert build["environment"]["FI_PROVIDER"]["value"] == provider
    assert build["believe"]["provider"] == [provider]
    assert build["spack"]["transport"]["spec"] == "libfabric fabrics=warp,shm,tcp"

    run("render", "enterprise", "--to", str(tmp_path / "made"))
    packages = tmp_path / "made" / "enterprise" / "bridge" / "spack" / "packages.yaml"
    written = YAML(typ="safe").load(packages.read_text())["packages"]
    assert written["libfabric"]["externals"][0]["spec"] == "libfabric@2.0 fabrics=shm,tcp,warp"


def test_the_schema_the_page_and_the_recipe_have_it_too(site: Path) -> None:
    policy = load_policy()
    schema = next(text for path, text in schemas().items() if path.name == "system.json")
    assert '"warpfabric"' in schema
    assert '    "warpfabric": "fabrics=warp,shm,tcp",\n' in fabric_tables(policy)[FILE]


def test_without_the_row_it_is_a_word_that_nobody_knows(site: Path) -> None:
    (site / "policy" / "fabrics.yaml").unlink()
    done = CliRunner().invoke(app, ["check", "enterprise"])
    assert isinstance(done.exception, InvalidInput)
    messages = [one.message for one in done.exception.problems]
    assert "fabric: unknown word" in messages and "providers: unknown word" in messages


def test_a_libfabric_without_its_provider_is_refused(site: Path) -> None:
    file = site / "systems" / "enterprise.yaml"
    file.write_text(SYSTEM.replace("[warp, shm, tcp]", "[shm, tcp]"))
    done = CliRunner().invoke(app, ["check", "enterprise"])
    assert isinstance(done.exception, InvalidInput)
    (problem,) = done.exception.problems
    line = SYSTEM[: SYSTEM.index("libfabric:")].count("\n") + 1
    assert problem.where == f"{file}:{line}" and "has no warp" in problem.message
