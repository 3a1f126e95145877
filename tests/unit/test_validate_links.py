"""What the check Rails says of a node's links, from what its program prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reframe"))

from links import fault, read

MB = 1_000_000


def printed(speeds: dict[str, float], sent: dict[str, dict[str, int]] | None = None) -> str:
    """The program's lines for these bandwidths; each label moved 100 MB."""
    lines = [f"rails {label} {speed:.2f} {100 * MB}" for label, speed in speeds.items()]
    for label, counts in (sent or {}).items():
        lines += [f"sent {label} {name} {count}" for name, count in counts.items()]
    return "\n".join(lines)


GOOD = {"a": 100.0, "b": 99.0, "all": 198.0}


def test_two_links_of_a_node_are_read():
    text = printed(GOOD, {"all": {"a": 51 * MB, "b": 50 * MB}})
    speed, moved, sent = read(text)
    assert (
        speed == GOOD and moved["all"] == 100 * MB and sent == {"all": {"a": 51 * MB, "b": 50 * MB}}
    )
    assert fault(text, 2, ["a", "b"]) == ""


@pytest.mark.parametrize(
    ("speeds", "sent", "says"),
    [
        ({"a": 100, "all": 100}, {}, "b carries nothing: no program ran over it alone"),
        (
            {"a": 100, "b": 100},
            {},
            "no program ran over all 2 links; each one alone gave a 100 MB/s",
        ),
        (
            {"a": 100, "b": 10, "all": 20},
            {},
            "b is slow: alone the links give a 100 MB/s, b 10 MB/s",
        ),
        ({"a": 100, "b": 100, "all": 110}, {}, "1.10 times the best one alone (100); expected 2"),
        ({"a": 100, "b": 100, "all": 250}, {}, "2.50 times the best one alone"),
        (GOOD, {"all": {"a": 100 * MB, "b": 0}}, "b carries too little: all 2 links together"),
        ({**GOOD, "all": 100}, {"all": {"a": 100 * MB, "b": 7}}, "of the bytes a 100%, b 0%"),
        (GOOD, {"all": {"a": 10, "b": 10}}, "messages take another way than the fabric"),
        (GOOD, {"a": {"a": 10, "b": 10}}, "of 100000000 bytes sent by a, the adapters' own"),
        ({}, {}, "a and b carries nothing"),
    ],
)
def test_each_fault_is_named(speeds, sent, says):
    assert says in fault(printed(speeds, sent), 2, ["a", "b"])


def test_four_links_of_a_rank_each_are_held_against_the_nearest():
    assert fault(printed({"nearest": 25, "all": 99}), 4, ["nearest"]) == ""
    assert "all 4 links together give 50 MB/s, 2.00 times" in fault(
        printed({"nearest": 25, "all": 50}), 4, ["nearest"]
    )
