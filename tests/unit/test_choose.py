"""The choice of the MPI build: the expected answers, written by hand from the project's facts."""

import pytest

from mvstack.model.load import load_policy, load_release, load_system, release_names
from mvstack.model.rules import When
from mvstack.model.system import External, Wish
from mvstack.model.vocabulary import words
from mvstack.plan.choose import Facts, choose, holds
from mvstack.plan.make import mpi_build
from mvstack.support.errors import Refused

FABRICS, GPUS, LAUNCHERS = words("fabric"), words("gpu"), words("launcher")
POLICY, RELEASE, BASE = load_policy(), load_release(), load_system("expanse")


def machine(**changes):
    """Expanse's CPU partition with other facts."""
    changes = {"gpu": "none", "nic": None, "pmi": None, **changes}
    changes.setdefault("gpus", 0 if changes["gpu"] == "none" else 4)
    os = changes.pop("os", "rocky8")
    part = BASE.partitions["cpu"].model_copy(update=changes)
    return BASE.model_copy(update={"partitions": {"cpu": part}, "os": os})


def chosen(**changes):
    return choose(machine(**changes), "cpu", RELEASE, POLICY)


def refused(**changes):
    with pytest.raises(Refused) as caught:
        chosen(**changes)
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("system", "partition", "build", "pmi"),
    [
        ("expanse", "cpu", "mvapich 4.0 ch4:ucx", "pmi2"),
        ("expanse", "gpu", "mvapich-plus 5.0.0 ch4:ucx", "pmi2"),
        ("azure-hbv4", "hpc", "mvapich 4.0 ch4:ucx", "pmi2"),
        ("azure-hbv3", "hpc", "mvapich 4.0 ch4:ucx", "pmi2"),
        ("azure-hx", "hpc", "mvapich 4.0 ch4:ucx", "pmi2"),
        ("azure-ndv5", "gpu", "mvapich-plus 5.0.0 ch4:ucx", "pmi2"),
        ("aws-hpc7a", "hpc", "mvapich 4.0 ch4:ofi", "pmi2"),
        ("aws-hpc6a", "hpc", "mvapich 4.0 ch4:ofi", "pmi2"),
        ("aws-c6i", "hpc", "mvapich 4.0 ch4:ofi", "pmi2"),
        ("aws-p5", "gpu", "mvapich-plus 5.0.0 ch4:ofi", "pmi2"),
        ("alps", "cpu", "mvapich 4.0 ch4:ofi", "cray"),
        ("qemu-debian12", "mvapich", "mvapich 4.0 ch4:ucx", "simple"),
        ("qemu-debian12", "mpich", "mpich 4.0.2 ch4:ofi", "simple"),
    ],
)
def test_the_systems_of_the_repository(system, partition, build, pmi):
    choice = choose(load_system(system), partition, RELEASE, POLICY)
    assert f"{choice.product} {choice.version} {choice.devices[0]}" == build
    assert choice.pmi == pmi


@pytest.mark.parametrize(
    ("facts", "build"),
    [
        ({"fabric": "infiniband"}, "mvapich 4.0 ch4:ucx"),
        ({"fabric": "roce"}, "mvapich 4.0 ch4:ucx"),
        ({"fabric": "roce", "nic": "broadcom"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "iwarp"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "rockport"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "slingshot-10"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "slingshot-11"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "omni-path"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "efa"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "psm3"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "tcp"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "shm", "launcher": "hydra"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "infiniband", "launcher": "mpirun_rsh"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "infiniband", "gpu": "nvidia"}, "mvapich-plus 5.0.0 ch4:ucx"),
        ({"fabric": "infiniband", "gpu": "nvidia", "os": "debian12"}, "mvapich 4.0 ch4:ucx"),
        (
            {"fabric": "slingshot-11", "gpu": "amd", "launcher": "flux"},
            "mvapich-plus 5.0.0 ch4:ofi",
        ),
        ({"fabric": "slingshot-11", "gpu": "amd-mi300a"}, "mvapich-plus 5.0.0 ch4:ofi"),
        ({"fabric": "slingshot-11", "gpu": "amd", "os": "sles15"}, "mvapich 4.0 ch4:ofi"),
        ({"fabric": "slingshot-10", "gpu": "nvidia"}, "mvapich2 2.3.7-2 ch3:mrail"),
        ({"fabric": "infiniband", "gpu": "intel"}, "mvapich 4.0 ch4:ucx"),
        ({"fabric": "efa", "target": "neoverse_v1"}, "mvapich 4.0 ch4:ofi"),
        (
            {"fabric": "infiniband", "gpu": "nvidia", "target": "power9le", "launcher": "jsrun"},
            "mvapich2-gdr 2.3.6 ch3:mrail",
        ),
        (
            {"fabric": "infiniband", "gpu": "gaudi", "gpu_buffers": "staged"},
            "mvapich 4.0 ch4:ucx",
        ),
        (
            {"fabric": "slingshot-11", "gpu": "intel", "gpu_buffers": "staged"},
            "mvapich 4.0 ch4:ofi",
        ),
        (
            {"fabric": "infiniband", "mpi": Wish(product="mvapich2", version="2.3.7")},
            "mvapich2 2.3.7 ch3:mrail",
        ),
        ({"fabric": "infiniband", "mpi": Wish(libfabric="embedded")}, "mvapich 4.0 ch4:ofi"),
    ],
)
def test_what_fits(facts, build):
    choice = chosen(**facts)
    assert f"{choice.product} {choice.version} {choice.devices[0]}" == build


@pytest.mark.parametrize(
    ("facts", "because", "nearest"),
    [
        (
            {"fabric": "infiniband", "launcher": "mpirun_rsh", "mpi": Wish(product="mvapich")},
            "mpirun_rsh does not exist in MVAPICH 3.x and 4.x",
            "hydra",
        ),
        (
            {"fabric": "slingshot-11", "mpi": Wish(libfabric="embedded")},
            "no cxi provider",
            "external",
        ),
        ({"fabric": "efa", "mpi": Wish(libfabric="embedded")}, "EFA", "external"),
        ({"fabric": "infiniband", "mpi": Wish(device="ch4:ofi")}, "TCP, silently", "ch4:ucx"),
        ({"fabric": "slingshot-11", "mpi": Wish(device="ch4:ucx")}, "UCX does not", "ch4:ofi"),
        ({"fabric": "slingshot-11", "gpu": "intel"}, "Level Zero", "staged"),
        ({"fabric": "infiniband", "gpu": "gaudi"}, "private build", "staged"),
        ({"fabric": "slingshot-10", "gpu": "amd"}, "no ROCm", "staged"),
        ({"fabric": "efa", "gpu": "amd"}, "no product supports AMD", "staged"),
        ({"fabric": "omni-path", "gpu": "nvidia"}, "CUDA buffers", "staged"),
        ({"fabric": "aries"}, "history", "tcp"),
        ({"fabric": "infiniband", "launcher": "pals"}, "PALS", "srun"),
        ({"fabric": "infiniband", "pmi": "simple"}, "worlds of one rank", "pmi2"),
        ({"fabric": "slingshot-11", "launcher": "mpirun_rsh"}, "mpirun_rsh", "hydra"),
        (
            {
                "fabric": "infiniband",
                "gpu": "nvidia",
                "mpi": Wish(product="mvapich-plus"),
                "os": "debian12",
            },
            "EL 8 and EL 9 only",
            "from source",
        ),
        (
            {"fabric": "infiniband", "mpi": Wish(product="mvapich", version="5.7")},
            "",
            "",
        ),
    ],
)
def test_what_is_refused_with_reason_and_what_works(facts, because, nearest):
    problem = refused(**facts)
    assert because in problem.because
    assert nearest in problem.nearest
    assert problem.todo


def test_steps_that_are_all_needed_are_joined_by_and():
    """Aurora: neither the launcher alone nor the staging alone gives an MPI."""
    problem = refused(fabric="slingshot-11", gpu="intel", launcher="pals")
    assert problem.todo.startswith("set `launcher: hydra`, and set `gpu_buffers: staged`")
    assert "; or" not in problem.todo
    first = "mvapich 4.0 ch4:ofi with gpu_buffers: staged and with launcher: "
    assert [one.removeprefix(first) for one in problem.nearest.split("; or ")] == ["srun", "hydra"]


def test_ways_that_each_suffice_are_joined_by_or():
    problem = refused(fabric="infiniband", launcher="mpirun_rsh", mpi=Wish(product="mvapich"))
    assert ", and " not in problem.todo
    assert "without `mpi:`; or mvapich 4.0 ch4:ucx with launcher: " in problem.nearest


@pytest.mark.parametrize(("scheduler", "offered"), [("slurm", True), ("pbs", False)])
def test_a_launcher_of_another_scheduler_is_not_offered(scheduler, offered):
    system = machine(fabric="infiniband", launcher="pals").model_copy(
        update={"scheduler": scheduler}
    )
    with pytest.raises(Refused) as caught:
        choose(system, "cpu", RELEASE, POLICY)
    assert ("with launcher: srun" in caught.value.problems[0].nearest) == offered


def test_tcp_is_offered_only_where_nothing_keeps_the_fabric():
    assert "tcp" not in refused(fabric="slingshot-11", gpu="intel", launcher="pals").nearest
    assert "with fabric: tcp" in refused(fabric="aries").nearest


def test_every_combination_is_a_build_or_a_refusal_that_teaches():
    for fabric in FABRICS:
        for gpu in GPUS:
            for launcher in LAUNCHERS:
                try:
                    choice = chosen(fabric=fabric, gpu=gpu, launcher=launcher)
                except Refused as error:
                    problem = error.problems[0]
                    assert "no row of" not in problem.because, (fabric, gpu, launcher)
                    assert "nothing that the policy" not in problem.nearest
                    assert problem.todo
                else:
                    assert choice.row.why and choice.row.source
                    assert choice.launcher.why and choice.launcher.source


def sweep():
    """Machines that differ in one or two things from a plain one."""
    for fabric in FABRICS:
        for gpu in GPUS:
            for launcher in LAUNCHERS:
                yield {"fabric": fabric, "gpu": gpu, "launcher": launcher}
            facts = {"fabric": fabric, "gpu": gpu}
            own_nics = (("cray", None), ("simple", None), ("pmi1", None), ("pmi2", "broadcom"))
            for pmi, nic in own_nics:
                yield {**facts, "pmi": pmi, "nic": nic}
            own = {"mvapich-plus": External(version="4.1", prefix="/sw/plus")}
            yield {**facts, "pmi": "cray", "externals": own}
            for target in ("power9le", "neoverse_v1"):
                yield {**facts, "target": target, "launcher": "jsrun"}
                for product in ("mvapich-plus", "mvapich2-x"):
                    yield {**facts, "target": target, "mpi": Wish(product=product)}
            for wish in (
                Wish(libfabric="embedded"),
                Wish(product="mvapich", version="3.0"),
                Wish(product="mvapich2"),
                Wish(product="mvapich2-gdr"),
                Wish(product="mvapich2-x"),
                Wish(product="mvapich-plus"),
                Wish(product="mpich"),
                Wish(device="ch4:ofi"),
                Wish(device="ch4:ucx"),
            ):
                for launcher in ("srun", "flux"):
                    for os in ("rocky8", "debian12"):
                        yield {**facts, "launcher": launcher, "mpi": wish, "os": os}


def test_every_row_of_the_policy_is_reached(monkeypatch):
    """A row that no machine gets is a mistake in the table, or in the rows before it."""
    # most of the time goes into what would work instead, which other tests ask for
    monkeypatch.setattr("mvstack.plan.choose.nearest_working", lambda *_: [])
    builds, launchers, refusals = set(), set(), set()
    for facts in sweep():
        try:
            choice = chosen(**facts)
        except Refused as error:
            text = error.problems[0].because
            refusals |= {row.id for row in POLICY.refusals if row.refuse in text}
        else:
            builds.add(choice.row.id)
            launchers.add(choice.launcher.id)
            refusals |= {item.rule for item in choice.passed_over}
    for release in map(load_release, release_names()):
        for system, partitions in release.systems.items():
            was = release.then(load_system(system))
            for choice in (choose(was, one, release, POLICY) for one in partitions):
                builds.add(choice.row.id)
                launchers.add(choice.launcher.id)
    assert {row.id for row in POLICY.builds} - builds == {"fallback-mpich"}
    assert {row.id for row in POLICY.launchers} - launchers == set()
    assert {row.id for row in POLICY.refusals} - refusals == set()


def built(**facts):
    """The build of a partition that gets one, as the plan has it."""
    choice = chosen(**facts)
    return mpi_build(machine(**facts).partitions["cpu"], choice, choice.devices[0])


@pytest.mark.parametrize(
    ("facts", "provider"),
    [
        ({"fabric": "slingshot-11", "gpu": "nvidia", "os": "sles15"}, "cxi"),
        ({"fabric": "slingshot-11", "gpu": "amd", "gpu_arch": "gfx90a", "os": "sles15"}, "cxi"),
        ({"fabric": "slingshot-11", "gpu": "amd-mi300a", "os": "rocky9"}, "cxi"),
        ({"fabric": "efa", "gpu": "nvidia", "os": "ubuntu22.04"}, "efa"),
        ({"fabric": "tcp", "gpu": "nvidia"}, "tcp"),
        ({"fabric": "tcp", "gpu": "amd", "gpu_arch": "gfx90a"}, "tcp"),
    ],
)
def test_gpus_over_libfabric_have_the_provider_of_their_fabric(facts, provider):
    made = built(**facts)
    assert made.environment["FI_PROVIDER"]["value"] == provider
    assert made.believe["provider"] == [provider]
    assert f"fabrics={provider}," in made.spack["transport"]["spec"]
    others = {"cxi", "efa", "opx", "verbs"} - {provider}
    asked = made.spack["transport"]["spec"].split()[1].removeprefix("fabrics=").split(",")
    assert not others & set(asked)  # on Perlmutter `fabrics=efa,cxi,…` was asked for


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"gpu": "amd", "gpu_model": "MI250X-OAM"}, {"+rocm", "amdgpu_target=gfx90a"}),
        ({"gpu": "amd", "gpu_arch": "gfx942"}, {"+rocm", "amdgpu_target=gfx942"}),
        ({"gpu": "nvidia", "gpu_arch": "sm_80"}, {"+cuda", "cuda_arch=80"}),
        ({"gpu": "nvidia"}, {"+cuda"}),
    ],
)
def test_a_source_build_is_for_the_architecture_of_the_gpus(facts, words):
    spec = built(fabric="slingshot-11", os="sles15", **facts).spack["spec"].split()
    gpus = ("+", "amdgpu", "cuda_arch")
    assert {word for word in spec if word.startswith(gpus)} - {"+omb"} == words


def test_libfabric_is_for_the_architecture_where_spack_builds_it():
    facts = {"fabric": "slingshot-11", "gpu": "amd", "gpu_arch": "gfx942", "os": "rocky9"}
    own = built(**facts).spack["transport"]["spec"]
    assert own == "libfabric fabrics=cxi,shm,tcp +rocm amdgpu_target=gfx942"
    external = External(prefix="/opt/cray", providers=["cxi"], variants="+rocm")
    theirs = built(**facts, externals={"libfabric": external}).spack["transport"]["spec"]
    assert theirs == "libfabric fabrics=cxi +rocm"


def test_omni_path_by_psm2_for_who_asks():
    asked = built(fabric="omni-path", mpi=Wish(provider="psm2"))
    assert asked.environment["FI_PROVIDER"]["value"] == "psm2"
    assert asked.believe["provider"] == ["psm2"]
    assert built(fabric="omni-path").believe["provider"] == ["opx"]
    own = built(fabric="omni-path", mpi=Wish(product="mvapich2"))
    assert (own.device, own.spack["transport"]["spec"]) == ("ch3:psm", "opa-psm2")
    assert "fabrics:=psm2" in own.spack["spec"].split()
    assert built(fabric="omni-path", launcher="mpirun_rsh").device == "ch3:psm"
    because = refused(fabric="slingshot-11", mpi=Wish(provider="psm2")).because
    assert "provider psm2: libfabric has cxi for fabric slingshot-11" in because


@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ({"fabric": "slingshot-11"}, "0"),
        ({"fabric": "slingshot-11", "cma": True}, None),
        ({"fabric": "efa", "gpu": "nvidia", "os": "rocky9"}, "0"),  # MVAPICH-Plus
        ({"fabric": "infiniband"}, None),  # UCX asks by itself
        ({"fabric": "omni-path", "mpi": Wish(product="mvapich2")}, None),
    ],
)
def test_where_memory_of_others_is_closed_mvapich_over_libfabric_leaves_cma(facts, value):
    set_ = built(**{"cma": False, **facts}).environment.get("MPIR_CVAR_CH4_CMA_ENABLE")
    assert (set_ and set_["value"]) == value


def test_mpich_is_there_for_who_asks_for_it_and_nobody_else():
    assert chosen(fabric="tcp", mpi=Wish(product="mpich")).product == "mpich"
    because = refused(fabric="infiniband", mpi=Wish(product="mpich")).because
    assert "no row" in because


def test_local_alone_falls_back_and_only_when_nothing_can_be_had():
    system = machine(fabric="shm", launcher="hydra")
    gone = frozenset(("mvapich", entry.version) for entry in RELEASE.mpi["mvapich"])
    assert choose(system, "cpu", RELEASE, POLICY, gone, fallback=True).product == "mpich"
    with pytest.raises(Refused):
        choose(system, "cpu", RELEASE, POLICY, gone)
    some = frozenset({("mvapich", "4.0")})
    assert choose(system, "cpu", RELEASE, POLICY, some, fallback=True).version == "4.1"


def test_a_condition_is_asked_in_the_order_of_its_fields():
    """In that of a set, a version that is none was an error in every other run."""
    machine = dict.fromkeys(("nic", "gpu", "gpu_buffers", "launcher", "os", "arch"), "none")
    facts = Facts(fabric="tcp", **machine, version="of the site")
    assert not holds(When(version=">=4.0", fabric=["roce"]), facts)
