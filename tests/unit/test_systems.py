"""The systems of the repository: what each must get, and why, from public documents.

The table is written from the documents that it names and from the talks, never from what the policy
answers. It has a row for each fabric, GPU and launcher that a system of ours has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan.choose import choose
from mvstack.plan.make import make_plan
from mvstack.plan.types import MpiBuild
from mvstack.render.partition import render
from mvstack.support.errors import Refused

RELEASE, POLICY = load_release(), load_policy()
SYSTEMS = {name: load_system(name) for name in system_names() if name != "local"}
OFFERED = [f"{name}/{part}" for name, system in SYSTEMS.items() for part in system.partitions]

UCX = "https://openucx.readthedocs.io/en/master/faq.html"
CXI = "https://ofiwg.github.io/libfabric/main/man/fi_cxi.7.html"
EFA = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"
OPX = "https://ofiwg.github.io/libfabric/main/man/fi_opx.7.html"
TCP = "https://ofiwg.github.io/libfabric/main/man/fi_tcp.7.html"
SLURM = "https://slurm.schedmd.com/mpi_guide.html"
USERGUIDE = "https://mvapich.cse.ohio-state.edu/userguide/"
SC22 = "http://mvapich.cse.ohio-state.edu/conference/904/talks/"


@dataclass(frozen=True)
class Wanted:
    """What a partition must get: a check ``sees``, and the module ``sets``."""

    product: str
    device: str
    sees: str
    pmi: str
    launch: str
    why: str
    page: str
    sets: str = ""


TABLE = {
    "expanse/cpu": Wanted(
        *("mvapich", "ch4:ucx", "rc_mlx5", "pmi2", "srun --mpi=pmi2"),
        "UCX takes RC at small scale and DC at large on RDMA devices; Slurm starts it by its PMI2",
        UCX,
    ),
    "expanse/gpu": Wanted(
        *("mvapich-plus", "ch4:ucx", "cuda_copy", "pmi2", "srun --mpi=pmi2"),
        "MVAPICH-Plus is GDR's successor for NVIDIA GPUs, by UCX on InfiniBand",
        SC22,
    ),
    "azure-ndv4/gpu": Wanted(
        *("mvapich-plus", "ch4:ucx", "rc_mlx5", "simple", "mpiexec"),
        "each GPU has an HDR link of its own, so that a rank keeps to the one that is nearest",
        "https://learn.microsoft.com/en-us/azure/virtual-machines/sizes/gpu-accelerated/ndasra100v4-series",
        sets="UCX_MAX_RNDV_RAILS=1",
    ),
    "alps/cpu": Wanted(
        *("mvapich", "ch4:ofi", "cxi", "cray", "srun"),
        "Slingshot 11 is libfabric's cxi provider, chosen by FI_PROVIDER=cxi; HPE's is on the host",
        "https://anaconda.org/conda-forge/mvapich",
        sets="FI_PROVIDER=cxi",
    ),
    "alps/gh200": Wanted(
        *("mvapich", "ch4:ofi", "cxi", "cray", "srun"),
        "Grace is aarch64, for which MVAPICH-Plus has no package: CUDA from source, over cxi",
        "https://docs.cscs.ch/alps/hardware/",
        sets="FI_PROVIDER=cxi",
    ),
    "alps/mi300": Wanted(
        *("mvapich", "ch4:ofi", "cxi", "cray", "srun"),
        "four adapters, one for each MI300A, on HPE's SLES, for which MVAPICH-Plus has no package",
        "https://docs.cscs.ch/alps/hardware/",
        sets="FI_PROVIDER=cxi MPIR_CVAR_CH4_OFI_MAX_NICS=1",
    ),
    "frontier/gpu": Wanted(
        *("mvapich", "ch4:ofi", "cxi", "cray", "srun"),
        "four Slingshot adapters behind the GPUs; MVAPICH links Cray's PMI, srun starts it",
        "https://docs.olcf.ornl.gov/systems/frontier_user_guide.html",
        sets="FI_PROVIDER=cxi",
    ),
    "aurora/gpu": Wanted(
        *("mvapich", "ch4:ofi", "cxi", "simple", "mpiexec"),
        "PBS and PALS, not Slurm; Slingshot 11; no MVAPICH takes Intel GPUs' buffers",
        "https://docs.alcf.anl.gov/aurora/hardware-overview/machine-overview/",
        sets="FI_PROVIDER=cxi",
    ),
    "aws-hpc7g/hpc": Wanted(
        *("mvapich", "ch4:ofi", "efa", "pmi2", "srun --mpi=pmi2"),
        "EFA is reached by libfabric alone; Graviton takes the source build",
        EFA,
        sets="FI_PROVIDER=efa",
    ),
    "aws-p4d/gpu": Wanted(
        *("mvapich-plus", "ch4:ofi", "efa", "pmi2", "srun --mpi=pmi2"),
        "EFA is reached by libfabric alone, and MVAPICH-Plus comes for OFI on EL 9",
        EFA,
        sets="FI_PROVIDER=efa",
    ),
    "stampede3/skx": Wanted(
        *("mvapich", "ch4:ofi", "opx", "simple", "mpiexec"),
        "Omni-Path by Cornelis' OPX provider, as seed talk 2 shows MVAPICH over it",
        OPX,
        sets="FI_PROVIDER=opx",
    ),
    "stampede3/pvc": Wanted(
        *("mvapich", "ch4:ofi", "opx", "simple", "mpiexec"),
        "Intel's GPUs on Omni-Path: buffers are staged, and the MPI is that of the other nodes",
        "https://docs.tacc.utexas.edu/hpc/stampede3/",
        sets="FI_PROVIDER=opx",
    ),
    "gordon/cpu": Wanted(
        *("mvapich2", "ch3:mrail", "", "simple", "mpirun_rsh -export"),
        "two rails of QDR: mrail takes the number of adapters and their names, apart by colons",
        USERGUIDE,
        sets="MV2_NUM_HCAS=2 MV2_IBA_HCA=mlx4_0:mlx4_1",
    ),
    "lassen/gpu": Wanted(
        *("mvapich2-gdr", "ch3:mrail", "", "pmix", "jsrun"),
        "POWER9 with V100 and IBM's jsrun: GDR's ground; its GPU buffers are off by default",
        USERGUIDE,
        sets="MV2_USE_CUDA=1",
    ),
    "tioga/gpu": Wanted(
        *("mvapich-plus", "ch4:ofi", "cxi", "simple", "flux run"),
        "the talk ran MVAPICH-Plus on its MI250X; TOSS 4 is EL 8, and Flux speaks PMI itself",
        SC22,
        sets="FI_PROVIDER=cxi",
    ),
    "voyager/gaudi": Wanted(
        *("mvapich", "ch4:ofi", "tcp", "simple", "mpirun"),
        "Kubeflow's MPIJob starts it; the RDMA links are the Gaudis' own, so the host has TCP",
        "https://sdsc.edu/systems/voyager/user_guide.html",
        sets="FI_PROVIDER=tcp",
    ),
    "pnrp/a100": Wanted(
        *("mvapich", "ch4:ucx", "cuda_copy", "simple", "mpiexec"),
        "one HGX server: shared memory and CUDA, no fabric",
        "https://sdsc.edu/services/hpc/nrp/nrp_architecture.html",
    ),
    "roce-dual-rail/cpu": Wanted(
        *("mvapich", "ch4:ucx", "rc_mlx5", "pmi2", "srun --mpi=pmi2"),
        "RoCE is RDMA too; UCX_NET_DEVICES keeps UCX to the two adapters that are meant",
        UCX,
        sets="UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1",
    ),
    "ethernet-lab/cpu": Wanted(
        *("mvapich", "ch4:ofi", "tcp", "simple", "mpiexec"),
        "no RDMA: libfabric's tcp provider, said by name",
        TCP,
        sets="FI_PROVIDER=tcp",
    ),
    "vista/gh": Wanted(
        *("mvapich", "ch4:ucx", "cuda_copy", "simple", "mpiexec"),
        "TACC offers MVAPICH there; aarch64, so from source with CUDA, by UCX on NDR InfiniBand",
        "https://docs.tacc.utexas.edu/hpc/vista/",
    ),
    "nurion/knl": Wanted(
        *("mvapich", "ch4:ofi", "opx", "simple", "mpiexec"),
        "Knights Landing on Omni-Path, under PBS",
        "https://www.ksc.re.kr/eng/resource/nurion",
        sets="FI_PROVIDER=opx",
    ),
}


def build(name: str) -> MpiBuild:
    """The default MPI of a partition."""
    system, _, partition = name.partition("/")
    return make_plan(SYSTEMS[system], partition, RELEASE, POLICY).mpi[0]


@pytest.mark.parametrize("name", TABLE)
def test_the_build_is_what_public_documents_ask_for(name: str) -> None:
    wanted, found = TABLE[name], build(name)
    assert (found.product, found.device, found.pmi) == (wanted.product, wanted.device, wanted.pmi)
    assert found.launch.startswith(f"{wanted.launch} -n")
    believed = [*found.believe["provider"], *found.believe["transports"], *found.believe["memory"]]
    assert not wanted.sees or wanted.sees in believed
    sets = {f"{name}={row['value']}" for name, row in found.environment.items()}
    assert set(wanted.sets.split()) <= sets
    assert wanted.why and wanted.page.startswith("http")


def test_the_table_has_each_fabric_gpu_and_launcher_that_a_system_has() -> None:
    def words(names: list[str], field: str) -> set[str]:
        parts = [SYSTEMS[name.split("/")[0]].partitions[name.split("/")[1]] for name in names]
        return {getattr(part, field) for part in parts}

    assert len(TABLE) >= 15
    for field in ("fabric", "gpu", "launcher"):
        assert words(list(TABLE), field) == words(OFFERED, field)


@pytest.mark.parametrize(
    ("name", "changes", "rule"),
    [
        ("voyager/gaudi", {"gpu_buffers": "direct"}, "private build of MVAPICH2-GDR"),
        ("aurora/gpu", {"gpu_buffers": "direct"}, "Level Zero over Slingshot"),
        ("aurora/gpu", {"launcher": "pals"}, "PALS is no launcher"),
        ("stampede3/pvc", {"gpu_buffers": "direct"}, "Level Zero buffers"),
        ("stampede/cpu", {"fabric": "aries"}, "Aries (Cray XC) is history"),
    ],
)
def test_what_the_files_say_is_not_offered_is_refused(name: str, changes: dict, rule: str) -> None:
    system, _, partition = name.partition("/")
    part = SYSTEMS[system].partitions[partition].model_copy(update=changes)
    other = SYSTEMS[system].model_copy(update={"partitions": {partition: part}})
    with pytest.raises(Refused) as said:
        choose(other, partition, RELEASE, POLICY)
    assert rule in said.value.problems[0].because


def test_every_partition_is_rendered_by_its_builder() -> None:
    for name in OFFERED:
        system, _, partition = name.partition("/")
        plan = make_plan(SYSTEMS[system], partition, RELEASE, POLICY)
        assert "plan.json" in render(plan), name


def test_these_systems_alone_are_rendered_in_the_repository() -> None:
    rendered = Path(__file__).parents[2] / "environments" / "rendered"
    assert {path.name for path in rendered.iterdir()} == {
        *("alps", "expanse", "qemu-debian12"),
        *("aws-c6i", "aws-hpc6a", "aws-hpc7a", "aws-p5"),
        *("azure-hbv3", "azure-hbv4", "azure-hx", "azure-ndv5"),
    }


def test_every_described_machine_names_its_sources() -> None:
    for name, system in SYSTEMS.items():
        examples = name in ("ethernet-lab", "qemu-debian12", "roce-dual-rail")
        assert system.known == ("site" if examples else "public"), name
        assert examples or (system.sources and system.source), name
        known_from_a_talk = any("seed talk" in one.title for one in system.sources)
        assert known_from_a_talk or any(one.page for one in system.sources) or examples, name


def test_what_the_talks_name_is_there() -> None:
    talks = """expanse comet gordon voyager pnrp trestles azure-h16r azure-hb60rs azure-hc44rs
        azure-hbv2 azure-nc24r azure-nc24rs-v2 azure-nc24rs-v3 azure-nd24rs azure-ndv2 alps daint
        tioga lassen frontera stampede taihulight nurion osu-omni-path sc22-a100 slingshot-test"""
    since = """azure-hbv3 azure-hbv4 azure-hx azure-ndv4 azure-ndv5 aws-c5n aws-c6i aws-hpc6a
        aws-hpc7a aws-hpc7g aws-p4d aws-p5 stampede3 vista frontier perlmutter aurora"""
    assert {*talks.split(), *since.split()} <= set(SYSTEMS)
