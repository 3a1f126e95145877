"""The verdict on the spikes of NEURON's ring."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import neuron  # noqa: E402

# What 8.2.6 printed on two ranks: the spikes of rank 0 (cells 0, 2, …), then those of rank 1.
ROWS = [f"spike {3.1 + 2.6 * number:.3f} {number % 16}" for number in range(76)]
GOOD = "\n".join(
    ["numprocs=2", *ROWS[::2], *ROWS[1::2], "spikes 76 last 198.100 ranks 2 seconds 0.646344", ""]
)


def test_output_really_seen_is_right():
    assert "spike 8.300 2\nspike 13.500 4\n" in GOOD and "\nspike 198.100 11\n" in GOOD
    assert neuron.complaints(GOOD, 2) == []
    assert neuron.figures(GOOD) == {"run": (0.646344, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"spike 8.300 2", "spike 8.325 2", "at another time or of another cell is [(8.325, 2)]"),
        (r"spike 8.300 2", "spike 8.300 3", "at another time or of another cell"),
        (r"spike 8.300 2\n", "", "spikes is 75, expected 76"),
        (r"spike 8.300 2\n", "spike 8.300 2\nspike 8.300 2\n", "spikes is 77, expected 76"),
        (r"ranks 2", "ranks 1", "spikes that NEURON counts, ranks"),
        (r"spikes 76", "spikes 38", "spikes that NEURON counts, ranks"),
        (r"spikes 76.*", "", "spikes that NEURON counts, ranks"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    assert any(complaint in said for said in neuron.complaints(spoilt, 2))


def test_coreneuron_is_to_have_run_where_it_was_asked_for():
    asked = "asked for CoreNEURON\n" + GOOD
    assert neuron.complaints(asked, 2) == ["CoreNEURON did not run: NEURON did instead"]
    assert neuron.complaints(asked + "Solver Time : 0.0475604\n", 2) == []


def test_worlds_of_one_are_refused():
    one = "\n".join([*ROWS, "spikes 76 last 198.100 ranks 1 seconds 0.1"])
    assert neuron.complaints(one, 1) == []
    assert neuron.complaints(one + "\n" + one, 2)
