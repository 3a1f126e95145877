"""The guides are followed word by word: their commands run, and their files pass."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.support.home import DATA
from mvstack.test.expected import expected_checks

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"# (our-site/\S+)\n")
GUIDES = ["site.md", *(f"adding/{path.name}" for path in (DATA / "docs/adding").glob("*.md"))]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.setenv("MVSTACK_SITE", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mvstack(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints that must do as it is told."""
    monkeypatch.setenv("MVSTACK_SITE", "")  # each command is a process of its own for a reader
    program, *words = shlex.split(line)
    assert program == "mvstack"
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{line}: {result.output}{result.exception}"
    return result.output


def follow(guide: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run the commands and write the files of ``guide``; what each command printed."""
    printed = {}
    for language, text in BLOCK.findall((DATA / "docs" / guide).read_text()):
        if language == "console":
            for line in text.splitlines():
                assert line.startswith("$ "), line
                printed[line[2:]] = mvstack(line[2:], monkeypatch)
        elif named := FILE.match(text):
            path = Path(named[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text[named.end() :])
    return printed


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_works_as_it_is_written(guide: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(guide, monkeypatch)
    # what it wrote last is right as well
    mvstack("mvstack --site our-site check", monkeypatch)


def test_an_application_is_a_row_an_easyconfig_and_a_check(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = follow("adding/application.md", monkeypatch)
    follow_check = mvstack("mvstack --site our-site new check Zeta", monkeypatch)
    assert "check_zeta.py" in follow_check
    assert "zeta/1.2.0" in printed["mvstack --site our-site list packages"]
    files = [path for path in Path("our-site").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".md", ".lua", ".yaml", ".eb", ".py"}
    assert len(files) == 5  # two of them are the site's own
    stack = Path("rendered/azure-hbv4/hpc/easystack.yaml").read_text()
    assert "Zeta-1.2.0-gmvapich-2026.11-ucx" in stack


def test_the_check_of_the_guide_is_one_that_is_expected_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follow("adding/check.md", monkeypatch)
    found = expected_checks(Path("our-site/checks"), ["zeta"])
    assert [one.software for one in found] == ["Zeta"] * 3


def test_nothing_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    follow("site.md", monkeypatch)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for line in ("site our-site", "system mycluster", "application Zeta 1.2.0", "check Zeta"):
        words = shlex.split(f"--site our-site new {line}")
        result = CliRunner().invoke(app, words)
        assert "exists already" in str(result.exception)
    assert before == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", ["system ../x", "application '' 1", "application a/b 1"])
def test_a_name_that_would_be_another_path_is_refused(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mvstack("mvstack new site our-site", monkeypatch)
    result = CliRunner().invoke(app, ["--site", "our-site", "new", *shlex.split(words)])
    assert "this cannot be used" in str(result.exception)


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_the_current_folder(name: str) -> None:
    result = CliRunner().invoke(app, ["new", "site", name])
    assert "an empty name is no folder" in str(result.exception)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("system alps", "mvapich-stack has a system alps; yours replaces it"),
        ("application hpcc 9.9", "has HPCC 1.5.0; yours is added to it"),
        ("system lab", ""),
    ],
)
def test_who_begins_what_is_here_already_is_warned(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mvstack("mvstack new site our-site", monkeypatch)
    result = CliRunner().invoke(app, ["--site", "our-site", "new", *shlex.split(words)])
    assert result.exit_code == 0 and said in result.output
    assert ("warning" in result.output) == bool(said)


def test_without_a_site_there_is_nowhere_to_write() -> None:
    result = CliRunner().invoke(app, ["new", "system", "lab"])
    assert "mvstack new site DIR" in str(result.exception)


def test_a_second_application_is_told_as_rows_to_append(monkeypatch: pytest.MonkeyPatch) -> None:
    follow("adding/application.md", monkeypatch)
    said = mvstack("mvstack --site our-site new application Eta 2.0", monkeypatch)
    row = said[said.index("  - name: Eta") : said.index("edit them")]
    with Path("our-site/releases/2026.11.yaml").open("a") as stream:
        stream.write(row)
    assert "eta/2.0" in mvstack("mvstack --site our-site list packages", monkeypatch)
