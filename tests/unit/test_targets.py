"""Which target a compiler compiles for."""

from __future__ import annotations

import pytest
from install_tree import POLICY, RELEASE, SYSTEM

from mvstack.model.load import parse_system
from mvstack.plan.make import make_plan
from mvstack.plan.targets import family_of, options_for, target_for
from mvstack.plan.types import Given


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


@pytest.mark.parametrize(
    ("target", "here", "options"),
    [
        ("zen4", False, "-march=znver3 -mtune=znver3"),
        ("zen4", True, ""),  # EasyBuild's own choice, native
        # an emulated processor, or one newer than archspec; a cross compiler knows no native
        ("x86_64", True, "-march=x86-64 -mtune=generic"),
    ],
)
def test_this_machine_is_compiled_for_natively_where_its_processor_has_a_name(
    target: str, here: bool, options: str
) -> None:
    text = SYSTEM.read_text().replace("target: zen4", f"target: {target}")
    system = parse_system(text, SYSTEM).model_copy(update={"discover": here})
    plan = make_plan(system, "hpc", RELEASE, POLICY, Given())
    assert (plan.target, plan.optimization) == (target, options)


def test_a_compiler_of_an_odd_version_is_no_crash() -> None:
    """A version of digits alone is all that archspec takes; a site's may be 12.2.0-rc1."""
    assert target_for("zen3", "gcc", "12.2.0-rc1") == "zen3"
    assert options_for("zen3", "gcc", "12.2.0-rc1") == ""
