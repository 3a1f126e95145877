"""Medians and ratios of rounds, each with the interval that a bootstrap gives it. Pure.

Values of one operation and MPI are an array of rounds by sizes; nan stands for what is missing. All
MPIs ran in every round and a resample takes whole rounds: what slows a machine down slows all.
"""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

DRAWS = 2000
MARGINS = (2.5, 97.5)  # percent of the resamples, for an interval of 95 %
LEAST = 1.01  # a gain below this is not worth a setting, however sure it is
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Interval:
    """An estimate, and where it lies with 95 % confidence by the bootstrap."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def as_dict(self) -> dict[str, float]:
        """For JSON and YAML, to five significant digits."""
        return {name: float(f"{one:.5g}") for name, one in asdict(self).items()}


def medians(values: Array, seed: int = 1) -> Array:
    """The medians by size: of all rounds in the first row, of resampled rounds in the others."""
    rounds = len(values)
    picks = np.random.default_rng(seed).integers(0, rounds, (DRAWS, rounds))
    with warnings.catch_warnings(action="ignore"):  # of a size that nothing was measured of
        drawn: Array = np.nanmedian(values[np.vstack([np.arange(rounds), picks])], axis=1)
    return drawn


def interval(drawn: Array) -> Interval:
    """The estimate, which is first in ``drawn``, with the range of the others."""
    value, (low, high) = float(drawn[0]), np.nanpercentile(drawn, MARGINS)
    return Interval(value, min(float(low), value), max(float(high), value))


def ratios(ours: Array, others: list[Array], higher: bool | list[bool]) -> Array:
    """How many times as good ``ours`` is as the best of ``others``, by resample and size.

    All are :func:`medians` of the same rounds; ``higher`` says of each size whether more is better.
    Above 1 ours is ahead.
    """
    most, least = np.fmax.reduce(others), np.fmin.reduce(others)
    ratio: Array = np.where(higher, ours / most, least / ours)
    return ratio


def geometric_mean(ratio: Array) -> Array:
    """Over the sizes, by resample; of those that were measured."""
    with warnings.catch_warnings(action="ignore"):
        mean: Array = np.exp(np.nanmean(np.log(ratio), axis=1))
    return mean


def decide(gains: dict[str, Interval], whole: Interval) -> tuple[bool, str]:
    """Whether a candidate is kept, and why: its gain is beyond the spread, and nothing is slower.

    ``gains`` are by operation and ranks, ``whole`` is their geometric mean; above 1 is faster.
    """
    slower = {name: one for name, one in gains.items() if one.high < 1}
    if not whole.low > 1:  # nor nan, where nothing was measured
        return False, f"{whole} times as fast: within the spread"
    if whole.value < LEAST:
        return False, f"{whole} times as fast: too little for a setting"
    if slower:
        worst = min(slower, key=lambda name: slower[name].value)
        return False, f"it makes {worst} slower: {slower[worst]} times as fast"
    return True, f"{whole} times as fast"
