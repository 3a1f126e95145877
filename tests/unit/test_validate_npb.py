"""The verdict on the NAS kernels: what they printed on two ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import npb  # noqa: E402

# What a kernel of NPB 3.4.3 prints at its end, shortened.
END = """

 {kernel} Benchmark Completed{stop}
 Class           =                        {size}
 Time in seconds =                     0.06
 Total processes =                        2
 Active processes=                        {active}
 Mop/s total     =                  {rate}
 Mop/s/process   =                  2066.07
 Verification    =               SUCCESSFUL
 Version         =                    3.4.3
"""
TEXT = "".join(
    END.format(
        kernel=kernel,
        stop="" if kernel == "IS" else ".",  # the one in C
        size="A" if kernel in npb.MEASURED else "S",
        active=1 if kernel in {"BT", "SP"} else 2,
        rate="1763.34" if kernel == "CG" else "4132.14",
    )
    for kernel in ("BT", "EP", "FT", "IS", "LU", "MG", "SP", "CG")
)


def test_output_really_seen_is_right():
    assert npb.complaints(TEXT, 2) == []
    others = dict.fromkeys(("FT_A", "IS_A", "MG_A"), (4132.14, "Mop/s"))
    assert npb.figures(TEXT) == {"CG_A": (1763.34, "Mop/s"), **others}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"(LU Bench.*?)SUCCESSFUL", r"\1UNSUCCESSFUL", "LU did not verify its result"),
        (r"(FT Bench.*?)SUCCESSFUL", r"\1NOT PERFORMED", "FT did not verify its result"),
        (r" MG Bench.*?Version", " Version", "kernels that came to their end"),
        (r"(EP Bench.*?processes = +)2", r"\g<1>1", "EP's processes"),
        (r"(CG Bench.*?Active processes= +)2", r"\g<1>1", "CG's processes"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, TEXT, count=1, flags=re.S)
    assert count == 1
    assert any(complaint in said for said in npb.complaints(spoilt, 2))


def test_other_ranks_are_refused():
    assert npb.complaints(TEXT, 1)
    assert npb.complaints("", 2)
    assert npb.figures("") == {}
