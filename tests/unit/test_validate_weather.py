"""Verdicts on WRF and WPS: output in the form that was seen, and the same spoilt."""

from __future__ import annotations

import array
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import wps, wrf  # noqa: E402


def cdl(name: str, values: list[float]) -> str:
    """A variable as ncdump prints it."""
    rows = [
        ", ".join(f"{one:.9g}" for one in values[at : at + 7]) for at in range(0, len(values), 7)
    ]
    return f"\n {name} =\n  " + ",\n    ".join(rows) + " ;\n"


def air() -> str:
    """Two times of WRF's columns; the same in all, with the known extremes at the end."""
    start, end = [-1.0] * wrf.COLUMNS, [-1.0] * wrf.COLUMNS
    end[100], end[200] = wrf.LEAST, wrf.MOST
    end[300] += -2 - wrf.LEAST - wrf.MOST
    return cdl("MU", [*start, *end])


STEP = "Timing for main: time 0001-01-01_0{}:{}0:00 on domain   1:    0.12000 elapsed seconds\n"
STEPS = "".join(STEP.format(at // 6, at % 6) for at in range(1, wrf.STEPS + 1))
WRF = f""" Ntasks in X            1 , ntasks in Y            2
{STEPS}d01 0001-01-01_06:00:00 wrf: SUCCESS COMPLETE WRF
the same history as on one rank
{air()}"""


def test_the_wave_really_seen_is_right():
    assert wrf.complaints(WRF, 2) == []
    assert wrf.figures(WRF) == {"step": (pytest.approx(0.12), "s")}
    assert wrf.figures("") == {}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"SUCCESS COMPLETE", "FATAL CALLED FROM", "wrf.exe did not come to its end"),
        (r"in Y +2", "in Y            1", "ranks is 1.0, expected 2"),
        (r"Timing for main: time 0001-01-01_03.*\n", "", "steps is 35"),
        (r"the same history.*\n", "", "the history differs from that on one rank"),
        (r"MU =\n  -1,", "MU =\n  -0.5,", "air in all, in Pa, that came or went"),
        (r"-39\.3085", "-39.4085", "the lightest column is -39.4085"),
        (r"35\.5872", "35.6872", "the heaviest column is 35.6872"),
        (r"35\.5872", "NaNf", "the heaviest column is"),
        (r"-1, -1 ;", "-1 ;", "columns of air, at the start and the end is 6399"),
    ],
)
def test_a_wrong_wave_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, WRF, count=1)
    assert count == 1
    assert any(complaint in said for said in wrf.complaints(spoilt, 2))


def on_the_map(value) -> list[float]:
    points = [
        (35 + 10 * row / wps.NORTH_SOUTH, -110 + 20 * column / wps.EAST_WEST)
        for row in range(wps.NORTH_SOUTH)
        for column in range(wps.EAST_WEST)
    ]
    return [value(*where) for where in points]


WPS = "! Successful completion of geogrid.   !\n" + "".join(
    cdl(name, on_the_map(value))
    for name, value in {
        "XLAT_M": lambda latitude, _: latitude,
        "XLONG_M": lambda _, longitude: longitude,
        "HGT_M": wps.height,
        "LU_INDEX": wps.land,
    }.items()
)


def test_the_map_is_right():
    assert wps.complaints(WPS, 2) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"Successful completion", "ERROR", "geogrid did not come to its end"),
        (r"HGT_M =\n  \d+", "HGT_M =\n  911", "off the plane is [(35.0, -110.0, 911.0"),
        (r"HGT_M =\n  \d+", "HGT_M =\n  NaNf", "off the plane"),
        (r"LU_INDEX =\n  16", "LU_INDEX =\n  2", "of the wrong kind of land"),
        (r"LU_INDEX =\n  16,", "LU_INDEX =\n", "points of the map is 2999"),
    ],
)
def test_a_wrong_map_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, WPS, count=1)
    assert count == 1
    assert any(complaint in said for said in wps.complaints(spoilt, 2))


def test_the_world_that_geogrid_reads():
    world = array.array("h", wps.tile(wps.height))
    if sys.byteorder == "little":
        world.byteswap()
    assert len(world) == 180 * 360
    assert world[0] == wps.height(-89.5, -179.5) and world[-1] == wps.height(89.5, 179.5)
