"""The gates, held against lock files that Spack 1.1.0 made: good ones pass, bad ones do not.

bad-*.lock are concretizations of environments that ask for something wrong; a test takes the one
that it is about. What no environment makes Spack answer is made of a good one by hand.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import lock_files as locks
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.builders.spack import gates
from mvstack.builders.spack.gates.mpi import paired
from mvstack.builders.spack.gates.planned import Broken, Case, gates_failed, request
from mvstack.model.gates import GATES, load_gates
from mvstack.model.spack_lock import parse_lock
from mvstack.plan.types import plan_of

RULES = load_gates()


def broken(data: dict[str, Any], plan: dict[str, Any] | None = None) -> list[Broken]:
    return gates.check(locks.lock(data), plan_of(plan or locks.plan()), RULES)


def of_gcc_12_3(spec: str = locks.MPI) -> dict[str, Any]:
    """A plan of one MPI by the compiler that the bad environments took."""
    compiler = {"name": "gcc", "version": "12.3.0", "origin": "system"}
    return {**locks.plan_of_mpi_alone(spec), "compiler": compiler}


def rules_of(found: list[Broken]) -> set[str]:
    return {one.rule for one in found}


def one(found: list[Broken], rule: str) -> Broken:
    (only,) = [each for each in found if each.rule == rule]
    return only


# --- what is as planned passes ------------------------------------------------------------------


def test_a_lock_file_that_is_as_planned_passes_every_gate() -> None:
    assert broken(locks.raw("good")) == []


def test_two_devices_of_one_mpi_each_with_its_packages_pass() -> None:
    assert broken(locks.raw("two-devices"), two_devices()) == []


def two_devices() -> dict[str, Any]:
    words = "fabrics=shm pmi=simple process_managers=hydra file_systems=nfs,ufs +omb"
    return locks.plan(
        mpi=[
            {
                "module": f"mvapich/4.1-{netmod}",
                "spack": {
                    "package": "mvapich",
                    "spec": f"mvapich@=4.1 netmod={netmod} {words}",
                    "transport": {"package": transport.partition(" ")[0], "spec": transport},
                },
            }
            for netmod, transport in (
                ("ucx", "ucx +cma +thread_multiple"),
                ("ofi", "libfabric fabrics=tcp,shm"),
            )
        ],
        packages=[
            {"name": "HPCC", "version": "1.5.0", "spack": "hpcc@=1.5.0", "mpi": f"mvapich/4.1-{n}"}
            for n in ("ucx", "ofi")
        ],
    )


def test_each_part_of_a_plan_is_the_root_over_its_own_mpi() -> None:
    lock, plan = locks.lock(locks.raw("two-devices")), plan_of(two_devices())
    builds, packages = paired(Case(lock, plan, RULES))
    assert [wanted.key for wanted, _ in builds] == [build.module for build in plan.mpi]
    for wanted, node in builds:
        assert node.variants["netmod"] == (wanted.key.rpartition("-")[2],)
    own = {wanted.key: node for wanted, node in builds}
    assert len(packages) == 2
    for wanted, node in packages:
        assert wanted.key.startswith(f"{wanted.mpi} ")
        assert [one for one in lock.closure([node]) if one in own.values()] == [own[wanted.mpi]]


def test_two_devices_that_the_solver_made_one_mpi_of() -> None:
    """Spack takes `netmod=ofi` and `netmod=ucx` for one MVAPICH with both, when it may unify."""
    found = broken(locks.raw("merged-devices"), two_devices())
    assert "netmod=ofi,ucx, planned netmod=ucx" in one(found, "device").found
    assert {each.package for each in found if each.rule == "roots"} == {
        "mvapich/4.1-ofi",
        "HPCC 1.5.0 over mvapich/4.1-ofi",
    }


# --- the MPI ------------------------------------------------------------------------------------


def test_another_device_is_told_with_the_transport_that_it_lacks() -> None:
    data = locks.raw("bad-device")
    found = broken(data, of_gcc_12_3())
    device = one(found, "device")
    assert "netmod=ofi, planned netmod=ucx" in device.found
    assert device.passes == locks.MPI
    assert "over TCP" in device.why
    assert "no ucx below it" in one(found, "transport").found
    assert rules_of(found) == {"device", "transport"}


def test_a_second_device_beside_the_planned_one_is_another_device() -> None:
    data = locks.raw("good")
    netmod = locks.node(data, "mvapich")["parameters"]["netmod"]
    assert netmod == ["ucx"]
    netmod.append("ofi")
    assert rules_of(broken(data)) == {"device"}


def test_another_pmi_process_manager_and_a_ucx_without_infiniband() -> None:
    data = locks.raw("bad-pmi")
    found = broken(data, of_gcc_12_3())
    assert rules_of(found) == {"device", "pmi", "process-manager", "transport"}
    assert "pmi=pmix, planned pmi=pmi2" in one(found, "pmi").found
    assert "process_managers=none, planned" in one(found, "process-manager").found
    transport = one(found, "transport")
    assert "ucx@1.13.0" in transport.found
    assert "the site's below /opt/ucx-1.13.0" in transport.found
    for word in ("rc", "dc", "ud", "mlx5_dv", "verbs", "rdmacm"):
        assert f"~{word}, planned +{word}" in transport.found
    assert transport.passes == f"{locks.MPI} ^{locks.UCX}"


def test_an_mpi_that_nobody_planned_below_a_package() -> None:
    data = locks.raw("bad-mpich")
    found = broken(data)
    planned = one(found, "planned-mpi")
    assert planned.package.startswith("hpcc@1.5.0/")
    assert "over mpich@" in planned.found
    assert planned.passes == f"hpcc@=1.5.0 ^{locks.MPI}"
    # the planned MPI is not there at all
    assert one(found, "roots").package == "mvapich/4.1-ucx"


def test_a_package_over_the_other_of_two_planned_mpis() -> None:
    data = locks.raw("two-devices")
    data["roots"] = [r for r in data["roots"] if "^" not in r["spec"] or "ofi" in r["spec"]]
    plan = two_devices()
    plan["packages"] = plan["packages"][:1]
    found = broken(data, plan)
    assert {each.rule for each in found if "no root needs it" not in each.found} == {"planned-mpi"}


def test_two_mpis_below_one_package() -> None:
    """Spack does not answer so; a recipe that names an MPI beside `mpi` would."""
    data = locks.raw("good")
    other = copy.deepcopy(locks.node(data, "mvapich"))
    other.update(name="mpich", hash="m" * 32, namespace="builtin")
    data["concrete_specs"]["m" * 32] = other
    edge = {"deptypes": ["build", "link"], "virtuals": []}
    locks.node(data, "hpcc")["dependencies"].append(
        {"name": "mpich", "hash": "m" * 32, "parameters": edge}
    )
    found = broken(data)
    assert " and mvapich@4.1/" in one(found, "one-mpi").found
    assert rules_of(found) == {"one-mpi", "planned-mpi"}


def test_a_package_without_any_mpi() -> None:
    data = locks.raw("good")
    hpcc = locks.node(data, "hpcc")
    hpcc["dependencies"] = [d for d in hpcc["dependencies"] if d["name"] != "mvapich"]
    assert "no MPI below it" in one(broken(data), "one-mpi").found


@pytest.mark.parametrize(
    ("spec", "rule", "says"),
    [
        (locks.MPI.replace("4.1", "4.0"), "planned-mpi", "@4.1, planned @=4.0"),
        (locks.MPI.replace("pmi2", "pmix"), "pmi", "planned pmi=pmix"),
        (
            locks.MPI.replace("=slurm", "=hydra"),
            "process-manager",
            "planned process_managers=hydra",
        ),
        (locks.MPI.replace("infiniband", "roce"), "device", "planned fabrics=roce"),
        (locks.MPI + " +cuda", "variant", "~cuda, planned +cuda"),
        (locks.MPI.replace("nfs,ufs", "lustre"), "variant", "planned file_systems=lustre"),
        (f"builtin.{locks.MPI}", "planned-mpi", "from mvapich_stack, planned from builtin"),
        (locks.MPI + " sharp=yes", "variant", "no variant sharp, planned sharp=yes"),
    ],
)
def test_every_word_of_the_planned_spec_counts(spec: str, rule: str, says: str) -> None:
    found = broken(locks.raw("good"), {**locks.plan_of_mpi_alone(spec), **_packages()})
    assert says in one(found, rule).found
    assert one(found, rule).passes == spec


def _packages() -> dict[str, Any]:
    return {"packages": locks.plan()["packages"]}


# --- roots --------------------------------------------------------------------------------------


def test_a_planned_package_that_is_no_root() -> None:
    data = locks.raw("good")
    data["roots"] = [root for root in data["roots"] if not root["spec"].startswith("hpcc")]
    found = broken(data)
    assert one(found, "roots").package == "HPCC 1.5.0 over mvapich/4.1-ucx"
    assert one(found, "roots").passes == f"hpcc@=1.5.0 ^{locks.MPI}"


def test_a_root_that_nobody_planned() -> None:
    found = broken(locks.raw("good"), locks.plan(packages=[]))
    assert one(found, "roots").package.startswith("hpcc@1.5.0/")
    assert "no plan asks for" in one(found, "roots").found


def test_a_planned_mpi_that_is_only_below_others() -> None:
    data = locks.raw("good")
    data["roots"] = [root for root in data["roots"] if root["spec"].startswith("hpcc")]
    found = broken(data)
    assert "not a root; below others: mvapich@4.1/" in one(found, "roots").found


def test_another_version_of_a_package_than_planned() -> None:
    plan = locks.plan()
    plan["packages"][0]["spack"] = "hpcc@=1.6.0"
    found = broken(locks.raw("good"), plan)
    assert one(found, "roots").found == "@1.5.0, planned @=1.6.0"


def test_a_package_that_spack_has_no_recipe_for_is_not_asked_for() -> None:
    plan = locks.plan()
    plan["packages"].append({"name": "IMB", "version": "1", "spack": "", "mpi": "mvapich/4.1-ucx"})
    assert broken(locks.raw("good"), plan) == []


# --- every package ------------------------------------------------------------------------------

ASKED = {"os", "target", "compiler", "asked", "default", "external", "flags", "dependencies"}
ASKED |= {"recipe", "deprecated"}
"""The gates that Spack is asked for; tests/whole/test_gate_mutations_whole.py asks it."""


def difference(gate: str, name: str = "ucx", **more: str) -> dict[str, str]:
    """What spack-repo/verify.py says of one package of good.lock."""
    row = {"field": "variant", "found": "~rc", "planned": "+rc", **more}
    return {"hash": locks.node(locks.raw("good"), name)["hash"], "gate": gate, **row}


@pytest.mark.parametrize("gate", sorted(ASKED))
def test_what_spack_says_is_told_with_package_field_and_reason(gate: str) -> None:
    rows = [difference(gate, field="os", found="debian12", planned="rocky8")]
    (found,) = gates.check(locks.lock(locks.raw("good")), plan_of(locks.plan()), RULES, rows)
    assert found.package.startswith("ucx@1.17.0/") or found.package.startswith("ucx@")
    assert (found.rule, found.found) == (gate, "os debian12, planned rocky8")
    assert found.why == RULES.gates[gate].why and "os rocky8" in found.passes


def test_spack_is_asked_for_all_that_the_plan_says() -> None:
    asked = request(plan_of(locks.plan()), compiler=False)
    assert asked == {
        "specs": [f"{locks.MPI} ^{locks.UCX}", "hpcc@=1.5.0"],
        "all": "os=debian12 target=zen2",
        "compiler": "gcc@=12.2.0",
    }
    assert request(plan_of(locks.plan()), compiler=True)["specs"] == []
    # a toss node is rhel to Spack
    assert "os=rhel8 " in request(plan_of(locks.plan(os="toss4")), compiler=False)["all"]


def test_a_lock_of_another_spack() -> None:
    data = locks.raw("good")
    for version, commit, passes in (
        ("1.1.0", "2e907202bcc8209a6a62243aab50c179b524cc3b", True),
        ("1.1.0", None, True),
        ("1.1.1", None, False),
        ("1.1.0", "0" * 40, False),
    ):
        data["spack"] = {"version": version, "type": "git", "commit": commit}
        assert rules_of(broken(data)) == (set() if passes else {"solver"})


def test_two_slurms_in_one_environment() -> None:
    data = locks.together(locks.raw("bad-device"), locks.raw("bad-fortran"))
    found = broken(data, locks.plan_of_mpi_alone())
    unique = one(found, "unique")
    assert unique.package == "slurm within the environment"
    assert "slurm@22.05.8/" in unique.found
    assert "slurm@21.08.8/" in unique.found
    assert unique.passes == "slurm@=22.05.8 for all"


def test_two_builds_of_a_transport_below_one_root() -> None:
    data = locks.raw("good")
    ucx = copy.deepcopy(locks.node(data, "ucx"))
    ucx.update(version="1.17.0", hash="u" * 32)
    data["concrete_specs"]["u" * 32] = ucx
    edge = {"deptypes": ["link"], "virtuals": []}
    locks.node(data, "hpcc")["dependencies"].append(
        {"name": "ucx", "hash": "u" * 32, "parameters": edge}
    )
    found = [each for each in broken(data) if each.rule == "unique"]
    assert [each.package.partition("/")[0] for each in found] == ["ucx within hpcc@1.5.0"]
    assert found[0].passes == "ucx@=1.17.0 for all"


# --- what is known to be bad --------------------------------------------------------------------


def test_builtins_recipe_of_mvapich_with_the_bytes_that_are_gone() -> None:
    found = broken(locks.raw("bad-builtin"))
    rows = {each.row: each for each in found if each.rule == "known-bad"}
    assert rows.keys() == {"mvapich-4.1-first-hash", "mvapich-builtin"}
    assert "a36c459b" in rows["mvapich-4.1-first-hash"].why
    assert rows["mvapich-4.1-first-hash"].passes == "mvapich_stack.mvapich@=4.1"


def test_an_mvapich_without_fortran() -> None:
    data = locks.raw("bad-fortran")
    found = broken(data, of_gcc_12_3())
    assert {each.row for each in found} == {"mvapich-without-fortran"}
    assert found[0].passes == "mvapich+fortran"


def test_recipes_for_bytes_that_a_person_accepted_are_ours() -> None:
    data = locks.raw("good")
    locks.node(data, "mvapich")["namespace"] = "mvapich_stack_accepted"
    assert broken(data) == []


# --- how it is told -----------------------------------------------------------------------------


def test_a_broken_gate_names_package_rule_reason_and_what_passes() -> None:
    data = locks.raw("good")
    locks.node(data, "mvapich")["parameters"]["pmi"] = "pmix"
    text = str(gates_failed(broken(data), "cluster/cpu"))
    assert "cluster/cpu: mvapich@4.1/" in text
    assert "gate pmi" in text
    assert "found     pmi=pmix, planned pmi=pmi2" in text
    assert RULES.gates["pmi"].why in text
    assert RULES.gates["pmi"].source in text
    assert f"this would pass: {locks.MPI}" in text
    assert text.endswith("Nothing was installed.")


def test_a_gate_that_many_packages_break_is_told_with_their_names() -> None:
    many = [
        Broken(f"p{i}@1/h", "compiler", "c by gcc@11", "why", "source", f"p{i}") for i in range(9)
    ]
    error = gates_failed(many, "cluster/cpu")
    assert len(error.problems) == 4
    assert error.problems[-1].message == "gate compiler: 6 more of the same"
    assert all(one.package in str(error) for one in many)


# --- whatever the lock file ---------------------------------------------------------------------


@given(
    key=st.sampled_from(["netmod", "pmi", "process_managers", "fabrics"]),
    value=st.text("abcdef", min_size=1, max_size=6),
)
def test_no_other_value_of_what_decides_the_mpi_passes(key: str, value: str) -> None:
    data = locks.raw("good")
    parameters = locks.node(data, "mvapich")["parameters"]
    parameters[key] = [value] if isinstance(parameters[key], list) else value
    gate = RULES.mpi_variants[key].gate
    assert gate in rules_of(broken(data))


@given(data=st.data())
def test_no_switched_off_transport_passes(data: st.DataObject) -> None:
    lock = locks.raw("good")
    parameters = locks.node(lock, "ucx")["parameters"]
    wanted = [word[1:] for word in locks.UCX.split()[1:]]
    off = data.draw(st.sets(st.sampled_from(wanted), min_size=1))
    parameters.update(dict.fromkeys(off, False))
    found = one(broken(lock), "transport").found
    assert all(f"~{word}, planned +{word}" in found for word in off)


@given(st.randoms())
def test_the_order_of_roots_and_packages_does_not_matter(random: Any) -> None:
    for name, plan in (("good", locks.plan(packages=[])), ("merged-devices", two_devices())):
        data = locks.raw(name)
        before = broken(data, plan)
        random.shuffle(data["roots"])
        items = list(data["concrete_specs"].items())
        random.shuffle(items)
        data["concrete_specs"] = dict(items)
        assert broken(data, plan) == before


def test_every_gate_is_broken_by_some_lock_file_here() -> None:
    """No gate that cannot fail: the lock files of these tests break each of them."""
    names = [path.stem for path in sorted(locks.DATA.glob("bad-*.lock"))]
    data = locks.raw("bad-builtin")
    locks.node(data, "mvapich")["version"] = "3.0"
    seen = rules_of(broken(data))
    for data in [*map(locks.raw, names), locks.together(*map(locks.raw, names))]:
        seen |= rules_of(broken(data))
    seen |= rules_of(broken(locks.raw("good"), locks.plan_of_mpi_alone(locks.MPI + " +cuda")))
    data = locks.raw("good")
    hpcc = locks.node(data, "hpcc")
    hpcc["dependencies"] = [d for d in hpcc["dependencies"] if d["name"] != "mvapich"]
    data["spack"]["version"] = "1.2"
    seen |= rules_of(broken(data))
    seen |= rules_of(gates.check(parse_lock(json.dumps(data)), plan_of(locks.plan()), RULES))
    # that a lock breaks these is in the whole test, and in test_gate_mutations.py
    assert seen == set(GATES) - ASKED
