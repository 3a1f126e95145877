"""Trees, their likelihood and the verdict on RAxML's searches."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import phylogeny  # noqa: E402
from apps import raxml  # noqa: E402

# Printed by RAxML 8.2.13 on four ranks, shortened; the tree that each of the searches wrote.
SAID = "\n".join(
    [
        *(f"This is RAxML MPI Process Number: {rank}" for rank in (0, 2, 1, 3)),
        *(
            f"Inference[{number}]: Time 0.80376 CAT-based likelihood -6679.433992, best "
            "rearrangement setting 5"
            for number in (2, 3, 0, 1)
        ),
        "Overall execution time: 1.906053 secs or 0.000529 hours or 0.000022 days",
        "",
    ]
)
TREE = (
    "(b:0.10165166,((d:0.07986538,c:0.08369082):0.07932740,(((f:0.09451512,e:0.05860302):0.06"
    "447177,(g:0.05171352,h:0.08303583):0.10077558):0.08179390,(((o:0.06986117,p:0.10453416):"
    "0.07588853,(m:0.08294249,n:0.07127454):0.10584136):0.11252227,((i:0.07076400,j:0.0634302"
    "8):0.07286283,(k:0.09964587,l:0.06937473):0.07561308):0.05494224):0.18914104):0.07686367"
    "):0.08575028,a:0.08761329):0.0;"
    "\n"
)
GOOD = SAID + 4 * TREE


def test_the_alignment_is_the_same_everywhere():
    sequences = phylogeny.evolved()
    assert list(sequences) == list("abcdefghijklmnop")
    assert {len(one) for one in sequences.values()} == {600}
    lines = phylogeny.phylip(sequences).splitlines()
    assert lines[0] == "16 600" and lines[1].startswith("a         ")
    assert sum(b == "A" for one in sequences.values() for b in one) == 2388


def test_two_leaves_have_the_likelihood_of_the_closed_form():
    same, other = (phylogeny.log_likelihood(phylogeny.parsed("(a:0.1,b:0.2);"), {"a": "A", "b": b})
                   for b in "AC")  # fmt: skip
    decay = math.exp(-4 / 3 * 0.3)
    assert same == pytest.approx(math.log((1 + 3 * decay) / 16))
    assert other == pytest.approx(math.log((1 - decay) / 16))


def test_where_a_tree_is_rooted_does_not_matter():
    one = phylogeny.parsed("((a:0.1,b:0.2):0.3,(c:0.1,d:0.4):0.2);")
    other = phylogeny.parsed("(a:0.1,b:0.2,(c:0.1,d:0.4):0.5);")
    sequences = {"a": "ACGT", "b": "ACGA", "c": "TTGA", "d": "TCGA"}
    assert phylogeny.splits(one) == phylogeny.splits(other) != set()
    assert phylogeny.log_likelihood(one, sequences) == pytest.approx(
        phylogeny.log_likelihood(other, sequences)
    )


def test_the_true_tree_has_a_division_for_each_inner_branch():
    assert len(phylogeny.true_splits()) == 16 - 3


def test_output_really_seen_is_right():
    assert raxml.complaints(GOOD, 4) == []
    assert raxml.figures(GOOD) == {"searches": (1.906053, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"Number: 3", "Number: 0", "processes is [0, 0, 1, 2]"),
        (r"Inference\[3\]", "Inference[2]", "searches, each once"),
        (r"Inference\[3\].*\n", "", "searches, each once"),
        (r"-6679.433992", "-6679.53", "log likelihood of tree 2"),
        (r"-6679.433992", "nan", "log likelihood of tree 2"),
        (r"\(.*;\n", "", "trees is 3"),
        (r"i:0.07", "i:0.17", "log likelihood of tree 0"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    assert any(complaint in said for said in raxml.complaints(spoilt, 4))


def test_another_tree_is_refused():
    spoilt = GOOD.replace("b:", "x:", 1).replace("e:", "b:", 1).replace("x:", "e:", 1)
    assert raxml.complaints(spoilt, 4) == [
        "tree 0 is not the one along which the sequences evolved"
    ]


def test_ranks_that_are_worlds_of_their_own_are_seen():
    assert raxml.complaints(GOOD, 2)
    assert raxml.complaints(SAID.replace("Number: 2", "Number: 0") + 4 * TREE, 4)
