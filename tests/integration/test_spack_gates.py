"""What the gates read without Spack is what the pinned Spack itself says. No solver is asked."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from spack_here import run, spack_here

from mvstack.builders.spack.isolated import Isolated
from mvstack.model.constraint import matches_version

VERSIONS = ["1", "1.8", "1.8.1", "1.9", "1.10.0", "1.1.1w", "2.0b", "2.3.7", "2.3.7-1", "2.3.7-2"]
VERSIONS += ["3.0rc", "3.0rc1", "3.0", "3.0.1", "4.0", "4.1", "4.10", "develop", "main"]
RANGES = [*VERSIONS, *(f"={v}" for v in VERSIONS), *(f"{v}:" for v in VERSIONS)]
RANGES += [*(f":{v}" for v in VERSIONS), "1.8:2.3.7", "2.3:3.0", "4.0:4.1", "3:3", "1.9:develop"]

ASK = """
import json, sys
from spack.spec import Spec
asked = json.load(open(sys.argv[1]))
answers = {"versions": []}
for version, wanted in asked["versions"]:
    answers["versions"].append(Spec(f"zlib@={version}").satisfies(Spec(f"zlib@{wanted}")))
json.dump(answers, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def spack(tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    return spack_here(tmp_path_factory.mktemp("spack-gates"))


def ask(spack: Isolated, folder: Path, **asked: Any) -> Any:
    script, question, answer = folder / "ask.py", folder / "asked.json", folder / "answers.json"
    script.write_text(ASK)
    question.write_text(json.dumps(asked))
    done = run(spack, "python", str(script), str(question), str(answer))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(answer.read_text())


def test_versions_are_in_the_ranges_that_spack_puts_them_in(
    spack: Isolated, tmp_path: Path
) -> None:
    cases = list(itertools.product(VERSIONS, RANGES))
    answers = ask(spack, tmp_path, versions=cases)["versions"]
    ours = [matches_version(version, (wanted,)) for version, wanted in cases]
    differ = [case for case, we, it in zip(cases, ours, answers, strict=True) if we != it]
    assert not differ
    assert any(answers) and not all(answers)
