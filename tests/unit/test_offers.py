"""What a site provides must carry what was chosen; what a later step would refuse is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.cli.check import check
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan import easyconfigs
from mvstack.plan.make import make_plan
from mvstack.plan.offers import doubts, system_doubts
from mvstack.recipes.rows import check_rows
from mvstack.render.partition import render
from mvstack.support.errors import InvalidInput, Problem

POLICY, RELEASE = load_policy(), load_release()
TEXT = """\
name: mine
os: rocky9
partitions:
  cpu:
    cores: 64
    memory_gb: 512
    target: zen3
    fabric: {fabric}
    launcher: {launcher}
    pmi: {pmi}
    {gpus}
    compiler: {{version: "12.2.0"}}
    externals:
      {external}
"""
PLAIN = {"fabric": "infiniband", "launcher": "hydra", "pmi": "simple"}


def problems(**words: str) -> list[Problem]:
    words = {"launcher": "hydra", "pmi": "simple", "gpus": "gpu: none", **words}
    system = parse_system(TEXT.format(**words), Path("mine.yaml"))
    try:
        make_plan(system, "cpu", RELEASE, POLICY)
    except InvalidInput as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("fabric", "external", "lacking"),
    [
        ("slingshot-11", "libfabric: {prefix: /x, providers: [shm, tcp]}", "has no cxi"),
        ("slingshot-11", "libfabric: {prefix: /x, providers: [cxi, tcp]}", ""),
        ("slingshot-11", "libfabric: {prefix: /x}", ""),
        ("efa", "libfabric: {prefix: /x, providers: [tcp;ofi_rxm]}", "has no efa"),
        ("tcp", "libfabric: {prefix: /x, providers: [tcp;ofi_rxm]}", ""),
        ("infiniband", "ucx: {prefix: /x, transports: [tcp, self]}", "has no rc_mlx5"),
        ("infiniband", "ucx: {prefix: /x, transports: [tcp, ud_verbs]}", ""),
        ("infiniband", "ucx: {prefix: /x, transports: [tcp], variants: +verbs+rc+ud}", ""),
    ],
)  # fmt: skip
def test_what_carries_the_messages_must_be_there(fabric: str, external: str, lacking: str) -> None:
    found = problems(fabric=fabric, external=external)
    assert bool(found) == bool(lacking)
    for one in found:
        assert one.where == "mine.yaml:14" and lacking in one.message
        assert one.found and one.because and one.todo


@pytest.mark.parametrize(
    ("fabric", "gpu", "external", "lacking"),
    [
        ("efa", "nvidia", "libfabric: {prefix: /x, providers: [efa]}", "+cuda"),
        ("efa", "nvidia", "libfabric: {prefix: /x, providers: [efa], variants: +cuda}", ""),
        ("efa", "nvidia", "libfabric: {prefix: /x, providers: [tcp], variants: +cuda}", "efa"),
        ("slingshot-11", "amd", "libfabric: {prefix: /x, providers: [cxi]}", "+rocm"),
        ("slingshot-11", "amd", "libfabric: {prefix: /x, variants: +rocm}", ""),
        # GDRCopy is asked of the one that is built here, and a site's own may do without
        ("infiniband", "nvidia", "ucx: {prefix: /x, variants: +cuda}", ""),
        ("infiniband", "nvidia", "ucx: {prefix: /x, variants: +cma}", "+cuda"),
        (
            "infiniband",
            "nvidia",
            "ucx: {prefix: /x, transports: [tcp, cuda_copy], variants: +cuda +gdrcopy}",
            "rc_mlx5",
        ),
        (
            "infiniband",
            "intel",
            "ucx: {prefix: /x, transports: [rc_mlx5, tcp]}",
            "ze_copy",
        ),
        ("infiniband", "intel", "ucx: {prefix: /x, transports: [rc_mlx5, ze_copy]}", ""),
        ("infiniband", "intel", "rdma-core: {prefix: /usr}", "a ucx with ze_copy"),
    ],
)
def test_what_carries_gpu_buffers_must_be_there(
    fabric: str, gpu: str, external: str, lacking: str
) -> None:
    gpus = f"gpu: {gpu}\n    gpus: 4" + ("\n    gpu_arch: gfx90a" if gpu == "amd" else "")
    found = problems(fabric=fabric, gpus=gpus, external=external)
    assert [lacking in one.message for one in found] == ([True] if lacking else []), found
    for one in found:
        assert one.todo and one.where.startswith("mine.yaml:")


@pytest.mark.parametrize(
    ("gpus", "fits"),
    [
        ("gpus: 4", False),
        ("gpus: 4\n    gpu_model: W6800", False),
        ("gpus: 4\n    gpu_model: MI250X", True),
        ("gpus: 4\n    gpu_arch: gfx1030", True),
    ],
)
def test_a_source_build_for_amd_needs_the_architecture(gpus: str, fits: bool) -> None:
    # rocky9 has a MVAPICH-Plus for hydra on Slingshot 11, so that TCP is what is built from source
    external = "libfabric: {prefix: /x, variants: +rocm}"
    found = problems(fabric="tcp", gpus=f"gpu: amd\n    {gpus}", external=external)
    assert ["gpu_arch is not set" in one.message for one in found] == ([] if fits else [True])
    for one in found:
        assert one.where == "mine.yaml:11" and "`gpu_arch:` to one of gfx908" in one.todo


def test_tcp_is_said_in_the_plan_and_in_the_modules_help() -> None:
    words = {"launcher": "hydra", "pmi": "simple", "gpus": "gpu: none", "external": "{}"}
    for fabric, loud in (("tcp", True), ("infiniband", False)):
        system = parse_system(TEXT.format(fabric=fabric, **words), Path("mine.yaml"))
        plan = make_plan(system, "cpu", RELEASE, POLICY)
        files = "".join(render(plan).values())
        assert plan.fallback.startswith("Fabric tcp: all messages between nodes") == loud
        assert (files.count("all messages between nodes go over TCP") > 1) == loud


@pytest.mark.parametrize(
    ("mpi", "fits"), [("[pmi2]", True), ("[pmix_v4, none]", False), ("[]", True)]
)
def test_slurm_must_have_the_plugin_of_the_pmi(mpi: str, fits: bool) -> None:
    external = f"slurm: {{prefix: /usr, mpi: {mpi}}}"
    found = problems(fabric="infiniband", launcher="srun", pmi="pmi2", external=external)
    assert ["has no pmi2" in one.message for one in found] == ([] if fits else [True])


def test_an_external_that_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_system(
            TEXT.format(
                fabric="tcp",
                launcher="hydra",
                pmi="simple",
                gpus="gpu: none",
                external="libfabrc: {prefix: /usr}",
            ),
            Path("mine.yaml"),
        )
    (problem,) = caught.value.problems
    assert (problem.where.split(":")[1], problem.nearest) == ("14", "libfabric")
    assert "externals.yaml" in problem.todo


def test_what_a_later_step_refuses_is_warned_of() -> None:
    text = """\
name: local
os: rocky9
install: {root: /apps/with space}
partitions:
  cpu:
    cores: 64
    memory_gb: 512
    target: zen3
    fabric: tcp
    launcher: srun
    file_systems: [lustre, lustr]
    compiler: {version: "9.9.9"}
    externals:
      libfabric: {prefix: /opt/libfabric}
"""
    system = parse_system(text, Path("mine.yaml"))
    found = (*doubts(system, "cpu", POLICY), *system_doubts(system))
    said = {one.where: one.message for one in found}
    assert "local is the machine" in said["mine.yaml:1"]
    assert "this path is not plain" in said["mine.yaml:3"]
    assert "did you mean lustre?" in said["mine.yaml:11"]
    assert "over TCP" in said["mine.yaml:9"]
    assert "does not say its providers" in said["mine.yaml:14"]
    assert "mine.yaml:10" in said  # launcher srun: neither a pmi nor a Slurm


@pytest.mark.parametrize(
    ("compiler", "says"),
    [
        ('{version: "8.5.0"}', "there is no easyconfig MVAPICH-4.0-GCC-8.5.0-ucx.eb"),
        ('{version: "17.1.0"}', "there is no easyconfig MVAPICH-4.0-GCC-17.1.0-ucx.eb"),
        ('{version: "14.2.0"}', ""),
        (
            '{version: "13.2.0", origin: easybuild}',
            "no generation of EasyBuild's toolchains has gcc 13.2.0",
        ),
        ('{version: "12.2.0"}', ""),
    ],
)
def test_what_render_would_refuse_is_warned_of_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], compiler: str, says: str
) -> None:
    text = TEXT.format(gpus="gpu: none", external="cmake: {prefix: /usr}", **PLAIN)
    (tmp_path / "mine.yaml").write_text(text.replace('{version: "12.2.0"}', compiler))
    check([str(tmp_path / "mine.yaml")])
    said = capsys.readouterr().err
    assert (f"mine.yaml:12: {says}" in said) if says else "easyconfig" not in said


@pytest.mark.parametrize(
    ("os", "warned"), [("centos6", True), ("centos7", False), ("rocky9", False)]
)
def test_a_gcc_that_is_too_old_to_build_another_is_warned_of(os: str, warned: bool) -> None:
    """Spack takes no gcc before 4.8 for a compiler of C; its solver says so in riddles."""
    text = TEXT.format(gpus="gpu: none", external="cmake: {prefix: /usr}", **PLAIN)
    text = text.replace("os: rocky9", f"os: {os}")
    for origin in ("spack", "external"):
        own = text.replace('{version: "12.2.0"}', f'{{version: "12.2.0", origin: {origin}}}')
        said = [one.message for one in doubts(parse_system(own, Path("mine.yaml")), "cpu", POLICY)]
        about = [one for one in said if "takes none before 4.8" in one]
        assert len(about) == (warned and origin == "spack"), said


def test_another_compiler_than_gcc_is_refused() -> None:
    text = TEXT.format(gpus="gpu: none", external="cmake: {prefix: /usr}", **PLAIN)
    text = text.replace('{version: "12.2.0"}', '{name: clang, version: "17.0.6"}')
    with pytest.raises(InvalidInput) as caught:
        parse_system(text, Path("mine.yaml"))
    (problem,) = caught.value.problems
    assert problem.where.startswith("mine.yaml:12") and problem.found == "clang"
    assert problem.message.startswith("name: gcc, of the site or")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": "9.9"}, "there is no easyconfig HPCC-9.9-"),
        ({"spack": "osu-micro-benchmarks@=0.1"}, "osu-micro-benchmarks has no version 0.1"),
    ],
)
def test_a_row_that_names_what_is_not_there(changes: dict[str, str], says: str) -> None:
    rows = [row for row in RELEASE.packages if row.name == "HPCC"]
    rows = [rows[0].model_copy(update=changes)]
    release = RELEASE.model_copy(update={"packages": rows})
    with pytest.raises(InvalidInput) as caught:
        check_rows([release], POLICY)
    assert any(says in one.message for one in caught.value.problems)
    check_rows([RELEASE], POLICY)


def test_a_patch_that_is_not_the_easyconfigs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = easyconfigs.index()["MVAPICH-4.0-GCC-12.2.0-ofi.eb"]
    patch = path.with_name("MVAPICH-4.0_dist-graph-to-itself.patch")
    for one in (path, patch):
        (tmp_path / one.name).write_bytes(one.read_bytes())
    index = {**easyconfigs.index(), path.name: tmp_path / path.name}
    monkeypatch.setattr(easyconfigs, "index", lambda: index)
    check_rows([RELEASE], POLICY)
    (tmp_path / patch.name).write_bytes(patch.read_bytes() + b"\n")
    with pytest.raises(InvalidInput, match="is not the patch whose SHA-256"):
        check_rows([RELEASE], POLICY)


def test_an_image_from_elsewhere_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("environments/systems/azure-hx.yaml").read_text()
    (tmp_path / "azure-hx.yaml").write_text(text.replace("azure-hbv4/hpc", "azure-hbv4/gpu"))
    with pytest.raises(InvalidInput) as caught:
        check([str(tmp_path / "azure-hx.yaml")])
    (problem,) = caught.value.problems
    assert "no partition of this name that has an image" in problem.message
    assert problem.found == "azure-hbv4/gpu" and "azure-hx.yaml:" in problem.where
