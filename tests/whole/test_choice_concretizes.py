"""What the policy chooses, the pinned Spack can solve for: a sample that covers every pair.

Each two of fabric, GPU, product, device, launcher and PMI that some machine gets together are
together in one spec of the sample. Level Zero is not in it: the policy asks a site for its own UCX.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from spack_here import run, spack_here

from mvstack.builders.spack.isolated import Isolated
from mvstack.model.load import load_policy

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from choice_space import accepted, machines  # noqa: E402

# What stands outside every build: a solver needs no more of it than that it is there.
OUTSIDE = """\
packages:
  cray-pmi:
    externals: [{spec: cray-pmi@5.0.17, prefix: /opt/cray/pe/pmi/default}]
    buildable: false
  slurm:
    externals: [{spec: slurm@24.05.8 +pmix, prefix: /opt/slurm}]
    buildable: false
"""


def solvable() -> Iterator[tuple[str, frozenset[str]]]:
    """(spec, what it shows) for each different build, on machines that provide nothing."""
    bare = (
        one
        for one in machines()
        if one.externals == "none" and one.arch and one.facts.arch == "x86_64" and not one.facts.nic
    )
    seen = set()
    for got in accepted(load_policy(), bare):
        for build in got.builds:
            under = build.spack["transport"]
            spec = f"{build.spack['spec']} target=x86_64_v3"
            spec += f" ^{under['spec']}" if under else ""
            if spec not in seen:
                seen.add(spec)
                shown = {
                    "fabric": build.fabric,
                    "gpu": got.choice.facts.gpu,
                    "product": build.product,
                    "device": build.device,
                    "launcher": build.launcher,
                    "pmi": build.pmi,
                }
                yield spec, frozenset(f"{k}={v}" for k, v in shown.items())


def pairwise() -> dict[str, str]:
    """Name → spec: the first that shows the most pairs not seen yet, until all were seen."""
    rows = [(spec, set(combinations(sorted(shown), 2)), shown) for spec, shown in solvable()]
    left = set().union(*(pairs for _, pairs, _ in rows))
    taken: dict[str, str] = {}
    while left:
        spec, pairs, shown = max(rows, key=lambda row: len(row[1] & left))
        taken["_".join(sorted(one.partition("=")[2].replace(":", "-") for one in shown))] = spec
        left -= pairs
    return taken


SAMPLE = pairwise()


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    made = spack_here(tmp_path_factory.mktemp("spack"))
    scope = tmp_path_factory.mktemp("outside") / "packages.yaml"
    scope.write_text(OUTSIDE)
    done = run(made, "config", "add", "-f", str(scope))
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def answers(isolated: Isolated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the answers to all: one process, which reads the recipes once."""
    folder = tmp_path_factory.mktemp("answers")
    specs = folder / "specs.json"
    specs.write_text(json.dumps(list(SAMPLE.items())))
    inside = TESTS / "spack" / "concretize_all.py"
    done = run(isolated, "python", str(inside), str(specs), str(folder))
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("name", SAMPLE)
def test_it_concretizes(answers: Path, name: str) -> None:
    answer = json.loads((answers / f"{name}.answer.json").read_text())
    assert "error" not in answer, f"{SAMPLE[name]}\n{answer['error']}"
