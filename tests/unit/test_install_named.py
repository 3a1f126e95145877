"""Packages that are added to a tree by name, and what the tree keeps of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from install_tree import POLICY, RELEASE, SYSTEM

from mvstack.install import stages
from mvstack.install.flow import added, all_chosen, meant, profile_of
from mvstack.model.load import load_system
from mvstack.plan.make import make_plan
from mvstack.plan.types import Extent, Given, Plan
from mvstack.support.errors import InvalidInput, Refused
from mvstack.tree.records import Records

AZURE = load_system(str(SYSTEM))
WHOLE = make_plan(AZURE, "hpc", RELEASE, POLICY, Given(profile="full"))


def plan_with(kept: Extent, *names: str, root: Path = Path("/r")) -> Plan:
    extent = added(RELEASE, WHOLE, meant(RELEASE, names), kept)
    return stages.plan_for(AZURE, "hpc", root=root, extent=extent)


def packages(plan: Plan) -> set[str]:
    return {one.name for one in plan.packages}


def test_a_name_brings_what_it_stands_on_and_what_proves_the_mpi() -> None:
    plan = plan_with(Extent(), "lammps")
    assert packages(plan) == {
        *("HPCC", "LAMMPS", "FFTW", "FFTW.MPI", "OpenBLAS", "FlexiBLAS", "ScaLAPACK")
    }
    assert plan.profile == "full"  # what the distribution must bring for it


def test_a_tree_keeps_what_it_had_and_what_was_named(tmp_path: Path) -> None:
    plan = plan_with(Extent("small"), "METIS", root=tmp_path)
    assert {"METIS", "Hypre", "mpi4py"} <= packages(plan) and "LAMMPS" not in packages(plan)
    Records(Path(plan.tree)).plan(plan.as_dict())
    kept = stages.kept_extent(plan.system, plan.partition, plan.root, plan.release)
    assert kept == Extent(plan.profile, frozenset(plan.named))
    assert packages(stages.plan_for(AZURE, "hpc", root=tmp_path)) == packages(plan)
    more = plan_with(kept, "parmetis", root=tmp_path)
    assert packages(more) == packages(plan) | {"ParMETIS"}
    whole = stages.plan_for(AZURE, "hpc", root=tmp_path, extent=Extent("default"))
    assert packages(whole) == {"HPCC"} and not whole.named


def test_a_plan_without_names_says_nothing_of_them() -> None:
    assert "named" not in WHOLE.as_dict()
    assert plan_with(Extent(), "IOR").as_dict()["named"]


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="GROMACS"):
        meant(RELEASE, ["gromcas"])


def test_the_smallest_profile_that_holds_them() -> None:
    assert profile_of(RELEASE, frozenset()) == "default"
    assert profile_of(RELEASE, meant(RELEASE, ["mpi4py"])) == "small"
    assert profile_of(RELEASE, meant(RELEASE, ["mpi4py", "wrf"])) == "full"


def test_what_the_partition_does_not_get_is_refused_with_the_reason() -> None:
    names = meant(RELEASE, ["amber"])
    with pytest.raises(Refused, match="registration"):
        all_chosen(plan_with(Extent(), "amber"), names)
