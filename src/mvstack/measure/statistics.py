"""Medians and ratios of rounds, each with the interval that a bootstrap gives it. Pure.

Values of one operation and MPI are an array of rounds by sizes; what was not measured is nan. All
MPIs of a comparison ran in every round, so a resample takes whole rounds: what slowed a machine down
for a while slowed all of them down.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

DRAWS = 2000
COVERED = 95  # percent of the resamples that an interval holds
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Interval:
    """An estimate, and where it lies with 95 % confidence by the bootstrap."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """For JSON and YAML, to five significant digits."""
        return {name: float(f"{one:.5g}") for name, one in vars(self).items()}

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def medians(values: Array, seed: int = 1) -> Array:
    """The medians by size: of all rounds in the first row, of resampled rounds in the others."""
    rounds = len(values)
    picks = np.random.default_rng(seed).integers(0, rounds, (DRAWS, rounds))
    picks = np.vstack([np.arange(rounds), picks])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a size that nothing was measured of
        return np.nanmedian(values[picks], axis=1)


def interval(drawn: Array) -> Interval:
    """The estimate in the first place of ``drawn`` with the range of the others."""
    margin = (100 - COVERED) / 2
    low, high = np.nanpercentile(drawn, [margin, 100 - margin])
    # few rounds give few different medians; the estimate itself is always inside
    value = float(drawn[0])
    return Interval(value, min(float(low), value), max(float(high), value))


def ratios(ours: Array, others: list[Array], higher_is_better: bool) -> Array:
    """How many times as good ``ours`` is as the best of ``others``, by resample and size.

    All are :func:`medians` of the same rounds. Above 1 ours is ahead.
    """
    best = np.fmax.reduce(others) if higher_is_better else np.fmin.reduce(others)
    return ours / best if higher_is_better else best / ours


def geometric_mean(ratio: Array) -> Array:
    """Over the sizes, by resample; of those sizes alone that were measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.exp(np.nanmean(np.log(ratio), axis=1))


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate is kept, and why or why not, in words."""

    kept: bool
    why: str


def decide(gains: dict[str, Interval], whole: Interval, least: float = 1.01) -> Verdict:
    """Keep a candidate whose gain is beyond the spread, and which makes nothing slower beyond it.

    ``gains`` are by operation and ranks, ``whole`` is their geometric mean; above 1 is faster. A
    gain below ``least`` is not worth a setting, however sure it is.
    """
    slower = {name: one for name, one in gains.items() if one.high < 1}
    if whole.low <= 1:
        return Verdict(False, f"its gain of {whole} is within the spread")
    if whole.value < least:
        return Verdict(False, f"its gain of {whole} is too small for a setting")
    if slower:
        worst = min(slower, key=lambda name: slower[name].value)
        return Verdict(False, f"it makes {worst} slower: {slower[worst]} times as fast")
    return Verdict(True, f"{whole} times as fast")
