"""What a node's links and adapters make the MPI's module set, and what nothing is offered on."""

from __future__ import annotations

import pytest

from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.rules import RailRow
from mvstack.model.system import Near, Network, NotOffered, Partition, Wish
from mvstack.plan.make import make_plan, partitions_of
from mvstack.plan.types import MpiBuild
from mvstack.support.errors import InvalidInput, Refused

RELEASE, POLICY = load_release(), load_policy()
NAMED = Network(rails=2, hcas=["mlx5_0", "mlx5_1"])


def build(name: str, **changes: object) -> MpiBuild:
    system = load_system(name.split("/")[0])
    part = system.partitions[name.split("/")[1]].model_copy(update=changes)
    system = system.model_copy(update={"partitions": {"it": part}})
    return make_plan(system, "it", RELEASE, POLICY).mpi[0]


def settings(name: str, **changes: object) -> dict[str, str]:
    """The variables that the default MPI's module sets on ``name`` with these changes."""
    made = build(name, **changes)
    environment = made.environment
    assert all(row["why"] and row["source"] for row in environment.values())
    fabrics = POLICY.fabrics[made.fabric]  # what the fabric itself sets is tested elsewhere
    own = {**(fabrics.libfabric.environment if fabrics.libfabric else {})}
    return {
        name: row["value"]
        for name, row in environment.items()
        if name not in own and name not in ("UCX_TLS", "FI_PROVIDER")
    }


def test_one_link_needs_no_word_but_its_adapters_name():
    assert settings("expanse/cpu", network=Network()) == {}
    named = settings("expanse/cpu", network=Network(rails=1, hcas=["mlx5_1"]))
    assert named == {"UCX_NET_DEVICES": "mlx5_1:1"}


def test_ucx_is_told_its_adapters_where_they_are_named():
    assert settings("expanse/cpu", network=NAMED) == {"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"}
    assert settings("expanse/cpu", network=Network(rails=2)) == {}


def test_ucx_takes_two_links_by_itself_and_more_when_told():
    assert settings("expanse/cpu", network=Network(rails=4)) == {"UCX_MAX_RNDV_RAILS": "4"}


@pytest.mark.parametrize(("rails", "each"), [(2, "1"), (4, "1"), (8, "2")])
def test_a_rank_on_each_gpu_keeps_to_its_share_of_the_links(rails, each):
    found = settings("expanse/gpu", network=Network(rails=rails))
    assert found["UCX_MAX_RNDV_RAILS"] == each


def test_mrail_gets_number_and_names():
    found = settings("expanse/cpu", network=NAMED, mpi=Wish(product="mvapich2"))
    assert found["MV2_NUM_HCAS"] == "2" and found["MV2_IBA_HCA"] == "mlx5_0:mlx5_1"


def test_a_rank_on_slingshot_opens_its_nearest_adapter():
    assert settings("alps/cpu", network=Network(rails=2))["MPIR_CVAR_CH4_OFI_MAX_NICS"] == "1"
    assert "MPIR_CVAR_CH4_OFI_MAX_NICS" not in settings("alps/cpu", network=Network(rails=1))


def test_a_partition_key_is_set_without_the_bit_of_membership():
    keyed = Network(rails=1, key=0x8016)
    assert settings("azure-hbv3/hpc", network=keyed) == {"UCX_IB_PKEY": "0x0016"}
    found = settings("expanse/cpu", network=keyed, mpi=Wish(product="mvapich2"))
    assert found["MV2_DEFAULT_PKEY"] == "0x0016" and "UCX_IB_PKEY" not in found
    assert settings("roce-dual-rail/cpu", network=keyed) == {}  # Ethernet has no partitions
    with pytest.raises(ValueError, match="less than or equal to 65534"):
        Network(key=0xFFFF)  # the key of everybody


def test_mvapich2_is_built_for_the_torus_it_runs_on():
    gordon = build("gordon/cpu")
    assert "+torus3d" in gordon.spack["spec"].split()
    assert gordon.parameters["configopts"] == "--enable-3dtorus-support"
    tree = build("gordon/cpu", network=NAMED)
    assert "torus3d" not in tree.spack["spec"] and "configopts" not in tree.parameters
    ucx = build("expanse/cpu", network=Network(torus=[4, 4, 4]))
    assert "torus3d" not in ucx.spack["spec"] and "configopts" not in ucx.parameters


def test_a_check_is_told_how_each_link_is_used_alone():
    assert build("roce-dual-rail/cpu").rails == {
        "links": 2,
        "pairs": 1,
        "alone": {
            "mlx5_0": {"UCX_NET_DEVICES": "mlx5_0:1"},
            "mlx5_1": {"UCX_NET_DEVICES": "mlx5_1:1"},
        },
    }
    assert build("gordon/cpu").rails["alone"]["mlx4_1"] == {
        "MV2_NUM_HCAS": "1",
        "MV2_IBA_HCA": "mlx4_1",
    }
    four = {"links": 4, "pairs": 4, "alone": {"nearest": {}}}
    assert build("frontier/gpu").rails == four  # a rank opens its nearest adapter alone
    eight = build("azure-ndv5/gpu").rails
    assert (eight["links"], eight["pairs"]) == (8, 8)
    assert build("expanse/cpu").rails == {}
    # nothing is known by which one of them alone could be used
    assert build("expanse/cpu", network=Network(rails=2)).rails == {}


def test_the_links_of_an_image_are_those_of_the_node():
    assert load_system("azure-ndv5").partitions["gpu"].rails == 8
    assert settings("azure-ndv5/gpu")["UCX_MAX_RNDV_RAILS"] == "1"


def test_a_row_with_another_placeholder_is_refused():
    setting = {"value": "{ports}", "why": "w", "source": "s"}
    with pytest.raises(ValueError, match="may be in a value"):
        RailRow.model_validate({"id": "x", "when": {}, "environment": {"A": setting}})


def test_adapters_and_rows_of_gpus_are_counted():
    with pytest.raises(ValueError, match="rails: 2 and 1 hcas"):
        Network(rails=2, hcas=["mlx5_0"])
    part = load_system("expanse").partitions["gpu"].model_dump(exclude_unset=True)
    with pytest.raises(ValueError, match="gpus: 4 and 1 rows of near"):
        Partition(**{**part, "near": [Near(numa=0)]})


def test_what_is_not_offered_says_why():
    system = load_system("expanse").model_copy(
        update={"not_offered": {"fpga": NotOffered(title="FPGAs", because="no MPI runs there")}}
    )
    assert partitions_of(system, "") == ["cpu", "gpu"]
    with pytest.raises(Refused) as said:
        partitions_of(system, "fpga")
    assert said.value.problems[0].because == "no MPI runs there"
    with pytest.raises(InvalidInput):
        partitions_of(system, "fpgas")
    with pytest.raises(Refused, match="nothing is offered on expanse/fpga"):
        partitions_of(system.model_copy(update={"partitions": {}}), "")
