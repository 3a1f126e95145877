"""Which target a compiler compiles for."""

from __future__ import annotations

import pytest

from mvstack.plan.targets import family_of, target_for


@pytest.mark.parametrize(
    ("target", "version", "compiled_for"),
    [
        ("zen2", "10.2.0", "zen2"),
        ("zen4", "12.3.0", "zen4"),
        ("zen4", "12.2.0", "zen3"),  # -march=znver4 came with 12.3
        ("zen4", "10.2.0", "zen2"),
        ("neoverse_v2", "12.3.0", "neoverse_v2"),
        ("no-such-processor", "12.3.0", "no-such-processor"),
    ],
)
def test_it_is_the_nearest_that_the_compiler_knows(
    target: str, version: str, compiled_for: str
) -> None:
    assert target_for(target, "gcc", version) == compiled_for


def test_the_family_is_what_every_compiler_knows() -> None:
    assert family_of("zen4") == "x86_64" and family_of("neoverse_v2") == "aarch64"
    assert family_of("no-such-processor") == "no-such-processor"
