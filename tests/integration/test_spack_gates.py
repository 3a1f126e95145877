"""What the gates read without Spack is what the pinned Spack itself says. No solver is asked."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from spack_here import run, spack_here

from mvstack.builders.spack.gates.deprecated import deprecated_versions
from mvstack.builders.spack.isolated import Isolated
from mvstack.model.constraint import matches_version
from mvstack.model.spack_lock import read_lock

TOP = Path(__file__).resolve().parents[2]
LOCKS = TOP / "tests" / "data" / "locks"
VERSIONS = ["1", "1.8", "1.8.1", "1.9", "1.10.0", "1.1.1w", "2.0b", "2.3.7", "2.3.7-1", "2.3.7-2"]
VERSIONS += ["3.0rc", "3.0rc1", "3.0", "3.0.1", "4.0", "4.1", "4.10", "develop", "main"]
RANGES = [*VERSIONS, *(f"={v}" for v in VERSIONS), *(f"{v}:" for v in VERSIONS)]
RANGES += [*(f":{v}" for v in VERSIONS), "1.8:2.3.7", "2.3:3.0", "4.0:4.1", "3:3", "1.9:develop"]

ASK = """
import json, sys
import spack.repo
from spack.spec import Spec
asked = json.load(open(sys.argv[1]))
answers = {"versions": [], "deprecated": {}}
for version, wanted in asked["versions"]:
    answers["versions"].append(Spec(f"zlib@={version}").satisfies(Spec(f"zlib@{wanted}")))
for name in asked["packages"]:
    versions = spack.repo.PATH.get_pkg_class(name).versions
    answers["deprecated"][name] = sorted(str(v) for v, a in versions.items() if a.get("deprecated"))
json.dump(answers, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def spack(tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    return spack_here(tmp_path_factory.mktemp("spack-gates"))


def ask(spack: Isolated, folder: Path, **asked: Any) -> Any:
    script, question, answer = folder / "ask.py", folder / "asked.json", folder / "answers.json"
    script.write_text(ASK)
    question.write_text(json.dumps({"versions": [], "packages": [], **asked}))
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


def test_deprecated_versions_are_those_that_spack_knows(spack: Isolated, tmp_path: Path) -> None:
    lock = read_lock(LOCKS / "bad-builtin.lock")
    repos = {"builtin": spack.clones.builtin}
    found = {
        f"{namespace}.{name}": sorted(row.deprecated)
        for (namespace, name), row in deprecated_versions(lock, repos).items()
    }
    answers = ask(spack, tmp_path, packages=sorted(found))["deprecated"]
    assert found == answers
    assert found["builtin.mvapich"] == ["3.0"]
    assert len(found) > 5
    print(f"{len(found)} recipes read", file=sys.stderr)
