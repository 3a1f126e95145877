"""environments/policy/build-times.yaml: how long packages take to build, with sources and reasons.

Seconds are wall-clock seconds; core seconds are seconds of one core kept busy. A build on ``n``
cores takes ``serial_seconds + parallel_core_seconds / n``.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from mvstack.model.base import Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Cores = Annotated[int, Field(ge=1)]
Said = Annotated[str, StringConstraints(min_length=1)]


class Named(Strict):
    """What a row is about: a package by any of its names, and perhaps only over another one."""

    package: Said
    also: list[Said] = Field(default_factory=list)
    over: Said | None = None

    @property
    def names(self) -> list[str]:
        """All its names, in lower case."""
        return [name.lower() for name in (self.package, *self.also)]


class Recorded(Named):
    """A build that took ``seconds`` on ``cores`` cores.

    ``serial_seconds`` are those of them in which nothing compiled; None where steps were not kept.
    """

    version: Said
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    serial_seconds: Seconds | None = None
    cores: Cores
    builder: Literal["easybuild", "spack"]
    source: Said

    @model_validator(mode="after")
    def _within(self) -> Recorded:
        if self.serial_seconds is not None and self.serial_seconds > self.seconds:
            raise ValueError("serial_seconds: is a part of seconds, and cannot be more")
        return self


class Estimate(Named):
    """What a build that was never measured is taken to cost, and why."""

    version: Said | None = None
    serial_seconds: Seconds
    parallel_core_seconds: Seconds
    why: Said


class Default(Strict):
    """What a package costs that no row names."""

    serial_seconds: Seconds
    parallel_core_seconds: Seconds
    why: Said


class Assumed(Strict):
    """The share of a recorded build that is serial, where its steps were not recorded."""

    serial_share: Annotated[float, Field(ge=0, le=1)]
    why: Said


class BuildTimes(Strict):
    """All of the file."""

    default: Default
    assumed: Assumed
    recorded: list[Recorded]
    estimates: list[Estimate]

    @model_validator(mode="after")
    def _once(self) -> BuildTimes:
        """One estimate a package and version: of two, one would be believed by chance."""
        seen: set[tuple[str, str | None, str | None]] = set()
        for row in self.estimates:
            for name in row.names:
                key = (name, row.over, row.version)
                if key in seen:
                    raise ValueError(f"estimates: {name} stands there twice")
                seen.add(key)
        return self


@cache
def build_times() -> BuildTimes:
    """The table. Raises InvalidInput with every error and its line."""
    return validated(BuildTimes, read_yaml(home().file("policy", "build-times.yaml")))
