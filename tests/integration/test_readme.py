"""README begins with two commands; CI runs these two and no others."""

from __future__ import annotations

import re
from pathlib import Path

from shown_commands import commands_of

TOP = Path(__file__).resolve().parents[2]


def test_ci_runs_the_first_two_commands_of_the_readme() -> None:
    code = commands_of((TOP / "README.md").read_text())
    ran = re.findall(r"^step \w+ (.+)$", (TOP / ".ci" / "run").read_text(), re.M)
    assert len(ran) == 2
    assert code[:2] == ran


def test_files_that_the_readme_names_are_there() -> None:
    text = (TOP / "README.md").read_text()
    named = re.findall(r"\]\(([^)#]+)", text) + re.findall(r"^\| `([a-z/-]+)` \|", text, re.M)
    assert named
    assert [name for name in named if not (TOP / name).exists()] == []
