"""The recipe of MVAPICH inside the pinned Spack, without its solver: one `spack python`.

Each defect of builtin's recipe that is known (facts: no -O, options that configure does not know,
TCP unnoticed, the host's Slurm and GPUs, mpiname, no variants of externals, no stand-alone test,
one Fortran flag of two, the licence) has a test here that fails when ours has it as well.
"""

import json
import re
import sys
from pathlib import Path

import pytest
from spack_here import run, spack_here

TOP = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).with_name("spack_mvapich_inside.py")
sys.path.insert(0, str(TOP / "easyconfigs" / "easyblocks"))

import mvapich_options  # noqa: E402

WITHDRAWN = "a36c459befd5b0d1b66e4a217250d89d9f77b903fcc4a050efddb1c475b8dcab"
MVAPICH = """\
MVAPICH Version:        4.0
MVAPICH Device:         ch4:ofi
MVAPICH configure:      --with-device=ch4:ofi --with-pm=hydra --enable-threads=single
"""
MPICH = "MPICH Version:    \t4.1\nMPICH Device:    \tch4:ofi\n"
WORDS = [
    "",
    "netmod=ofi fabrics=tcp pmi=pmi2 process_managers=slurm +debug",
    "netmod=ucx fabrics=tcp,shm pmi=pmix process_managers=none +omb ~wrapperrpath",
    "netmod=ofi fabrics=slingshot-11 pmi=cray process_managers=none ~fortran",
    "netmod=ofi fabrics=infiniband embedded=libfabric,hwloc file_systems=none",
    "pmi=pmi1 process_managers=slurm threads=single error_checking=no +xpmem",
    "+cuda cuda_arch=70,80 datatype_engine=yaksa file_systems=lustre,ufs",
    "+level_zero",
]
NEWER = ["+rocm amdgpu_target=gfx90a", "pmi=pmi1 process_managers=hydra,gforker"]
SPECS = [
    f"mvapich@={version} {words}".strip()
    for version in ("3.0", "4.0", "4.1")
    for words in WORDS + (NEWER if version != "3.0" else [])
]
UCX_INSIDE = "mvapich@=4.0 embedded=ucx"
QUESTIONS = {
    "arguments": [*SPECS, UCX_INSIDE],
    "required": [
        "mvapich@=4.0 pmi=pmix process_managers=slurm",
        "mvapich@=4.0",
        "mvapich@=4.0 netmod=ofi fabrics=infiniband",
        "mvapich@=4.0 netmod=ofi fabrics=efa",
        "mvapich@=4.0 netmod=ofi fabrics=efa embedded=libfabric",
        UCX_INSIDE,
    ],
    "refusals": [
        "mvapich@=4.0",
        "mvapich@=4.0 fabrics=efa",
        "mvapich@=4.0 pmi=pmix process_managers=hydra",
        "mvapich@=4.0 pmi=cray",
        "mvapich@=3.0 +rocm",
        "mvapich@=4.0 ~cma",
        "mvapich@=4.0 ~regcache",
        "mvapich@=4.0 +alloca",
        "mvapich@=4.0 +cuda datatype_engine=dataloop",
        "mvapich@=4.0 netmod=ofi fabrics=slingshot-11 embedded=libfabric",
    ],
    "run": [
        "mvapich@=4.0",
        "mvapich@=4.0 netmod=ofi fabrics=tcp pmi=pmi2 process_managers=slurm ~fortran +omb",
        "mvapich@=4.0 netmod=ofi fabrics=infiniband embedded=libfabric",
        "mvapich@=4.0 pmi=pmix process_managers=slurm",
    ],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mvapich")
    programs = []
    for name, text in (
        ("mvapich", MVAPICH),
        ("mpich", MPICH),
        ("mvapich2", "MVAPICH2 Version: 2"),
        ("mvapich-plus", MVAPICH),  # says the same of itself
    ):
        program = folder / name / "bin" / "mpichversion"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
        program.chmod(0o755)
        programs.append(str(program))
    isolated = spack_here(folder / "state")
    done = run(isolated, "python", str(INSIDE), json.dumps(QUESTIONS), *programs)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def option(arguments, name):
    """The value of one option on a command line; None when it is not there."""
    found = [word.partition("=")[2] for word in arguments if word.split("=")[0] == name]
    assert len(found) < 2, arguments
    return found[0] if found else None


def test_spack_takes_our_recipe(answers):
    assert answers["namespace"] == "mvapich_stack"
    assert sorted(answers["versions"]) == ["3.0", "4.0", "4.1"]


@pytest.mark.parametrize("text", SPECS)
def test_configure_knows_every_option_that_it_is_given(answers, text):
    version = text.split()[0].partition("@=")[2]
    flags = mvapich_options.options_for("MVAPICH", version).flags
    given = [word for word in answers["arguments"][text] if word.startswith("--")]
    assert [word for word in given if word.split("=")[0] not in flags] == []
    misread = mvapich_options.misread_in("MVAPICH", version)
    assert [word for word in given if word in misread] == []


@pytest.mark.parametrize("text", SPECS)
def test_every_build_is_told_a_level_that_exists(answers, text):
    level = option(answers["arguments"][text], "--enable-fast").split(",")[0]
    assert level == ("O0" if "+debug" in text else "O2")


@pytest.mark.parametrize("text", SPECS)
def test_within_a_node_4_takes_the_queue_that_grows_by_rank_and_not_by_pair(answers, text):
    queue = option(answers["arguments"][text], "--with-ch4-posix-eager-modules")
    ofi = "netmod=ofi" in text and not text.startswith("mvapich@=3.")
    assert queue == ("iqueue" if ofi or collectives_in_memory(text) else None)


def collectives_in_memory(text):
    """Whether the patch shared-memory-collectives is to be used."""
    gpu = any(word in text for word in ("+cuda", "+rocm", "+level_zero"))
    return text.startswith("mvapich@=4.0") and "netmod=ofi" not in text and not gpu


@pytest.mark.parametrize("text", SPECS)
def test_ch4_ucx_of_4_0_has_shared_memory_for_its_collectives(answers, text):
    modules = option(answers["arguments"][text], "--with-ch4-shmmods")
    assert modules == ("posix" if collectives_in_memory(text) else None)


@pytest.mark.parametrize("text", SPECS)
def test_slurm_is_linked_only_when_its_library_is_asked_for(answers, text):
    asked = "process_managers=slurm" in text
    words = answers["arguments"][text]
    assert ("--without-slurm" in words) is not asked
    assert option(words, "--with-slurm") == ("/of/slurm" if asked else None)


@pytest.mark.parametrize("text", SPECS)
def test_nothing_of_the_host_is_taken_by_chance(answers, text):
    assert {"--without-pbs", "--without-hcoll"} <= set(answers["arguments"][text])
    assert answers["old"]["ac_cv_header_tm_h"] == "no"


@pytest.mark.parametrize("text", SPECS)
def test_every_gpu_that_is_not_asked_for_is_switched_off(answers, text):
    words = answers["arguments"][text]
    for variant, flag in (("+cuda", "cuda"), ("+rocm", "hip"), ("+level_zero", "ze")):
        if flag == "hip" and "@=3.0" in text:
            continue
        assert (f"--without-{flag}" in words) is (variant not in text)
        assert bool(option(words, f"--with-{flag}")) is (variant in text)


def test_each_version_is_told_of_pmi_in_its_own_words(answers):
    def pmi(version, words):
        given = answers["arguments"][f"mvapich@={version} {words}".strip()]
        return {
            name: option(given, f"--with-{name}")
            for name in ("pm", "pmi", "pmi2", "pmilib", "pmix")
            if option(given, f"--with-{name}") is not None
        }

    assert pmi("4.0", WORDS[0]) == {"pm": "hydra"}
    assert pmi("3.0", WORDS[0]) == {"pm": "hydra:mpirun", "pmi": "simple"}
    assert pmi("4.0", WORDS[1]) == {"pm": "no", "pmi": "pmi2", "pmilib": "slurm"}
    assert pmi("3.0", WORDS[1]) == {"pm": "slurm", "pmi": "pmi2"}
    assert pmi("4.0", WORDS[2]) == {"pm": "no", "pmi": "pmix", "pmix": "/of/pmix"}
    assert pmi("3.0", WORDS[2]) == {"pm": "no", "pmix": "/of/pmix"}
    assert pmi("4.0", WORDS[3]) == {"pm": "no", "pmi": "pmi2", "pmi2": "/of/cray-pmi"}
    assert pmi("3.0", WORDS[3]) == {"pm": "no", "pmi": "cray"}
    assert pmi("4.0", WORDS[5]) == {"pm": "no", "pmi": "pmi1", "pmilib": "slurm"}
    assert pmi("4.1", WORDS[5]) == pmi("4.0", WORDS[5])


def test_the_default_drives_infiniband(answers):
    assert option(answers["arguments"]["mvapich@=4.0"], "--with-device") == "ch4:ucx"
    assert any(one.startswith("ucx@1.9") for one in answers["required"]["mvapich@=4.0"])
    refused = [one.replace(" ", "") for one in answers["forbidden"]["mvapich@=4.0"]]
    for word in ("verbs", "rc", "dc", "ud", "mlx5_dv", "rdmacm", "thread_multiple", "cma"):
        assert f"^ucx~{word}" in refused


def test_libfabric_must_have_the_provider_of_the_fabric(answers):
    def fabrics(text):
        return [one for one in answers["required"][text] if one.startswith("libfabric")]

    assert any("verbs" in one for one in fabrics("mvapich@=4.0 netmod=ofi fabrics=infiniband"))
    assert any("efa" in one for one in fabrics("mvapich@=4.0 netmod=ofi fabrics=efa"))
    assert fabrics("mvapich@=4.0 netmod=ofi fabrics=efa embedded=libfabric") == []
    assert [one for one in answers["required"][UCX_INSIDE] if one.startswith("ucx")] == []


def test_a_slurm_that_serves_pmix_is_asked_for(answers):
    refused = answers["forbidden"]["mvapich@=4.0 pmi=pmix process_managers=slurm"]
    assert {"^slurm~pmix", "^slurm@:21"} <= {one.replace(" ", "") for one in refused}


def test_cudas_stub_is_on_the_link_path(answers):
    # mpl needs a libcuda.so that links; without the driver's it goes on without CUDA, unsaid
    assert answers["cuda"]["LIBRARY_PATH"].split(":")[-1] == "/of/cuda/lib64/stubs"


def test_an_embedded_ucx_is_a_release_build(answers):
    # 4.0 gives UCX these only when --enable-fast is yes or all.
    words = answers["arguments"][UCX_INSIDE]
    assert option(words, "--with-ucx") == "embedded"
    assert {"--disable-logging", "--disable-assertions", "--enable-optimizations"} <= set(words)


def test_refusals_say_what_to_use_instead(answers):
    refusals = answers["refusals"]
    assert refusals.pop("mvapich@=4.0") == []
    for text, all_messages in refusals.items():
        # Builtin's mixin for CUDA refuses compilers without a message.
        messages = [message for message in all_messages if message]
        assert messages, text
        assert all(re.search(r"\b(use|set|leave)\b", message) for message in messages), text


def test_both_fortrans_take_mismatched_arguments_and_wait(answers):
    flag = "-fallow-argument-mismatch"
    old, new = answers["build"]["9.5.0"], answers["build"]["12.2.0"]
    assert (new["FFLAGS"], new["FCFLAGS"]) == (flag, flag)
    newer = answers["build"]["14.1.0"]
    assert newer["FFLAGS"] == newer["FCFLAGS"] == f"{flag} -fno-tree-sra"
    assert "FFLAGS" not in old
    assert "FCFLAGS" not in old
    flags = {new[f"MPICHLIB_{name}"] for name in ("CFLAGS", "CXXFLAGS", "FCFLAGS")}
    assert flags == {"-O2 -ftree-vectorize"}  # else reductions are loops of single numbers


def test_new_compilers_are_told_which_c_this_is(answers):
    for flags in answers["flags"].values():
        assert "-std=gnu17" in flags["15.1.0"]
    assert answers["flags"]["4.0"]["12.2.0"] == ["-g"]
    assert answers["flags"]["3.0"]["12.2.0"] == ["-O2", "-g"]  # its mpl hears of no level
    assert "-Wno-error=incompatible-pointer-types" in answers["flags"]["3.0"]["14.1.0"]
    # mpl's configure asks HIP's headers, which are an error without this word
    assert list(answers["hip"].values()) == [[], ["-D__HIP_PLATFORM_AMD__"]]


def test_the_licence_is_that_of_its_copyright(answers):
    assert answers["licences"] == ["mpich2"]


def test_a_build_of_the_site_is_found_and_those_of_others_are_not(answers):
    assert answers["executables"] == ["^mpichversion$"]
    (version, (variants,)), *others = answers["found"]
    assert version == "4.0"
    assert {"netmod=ofi", "process_managers=hydra", "threads=single"} <= set(variants.split())
    assert [version for version, _ in others] == [None] * 3  # MPICH, MVAPICH2, MVAPICH-Plus


def test_there_are_stand_alone_tests(answers):
    assert {"test_world", "test_world_fortran", "test_any_source", "test_what_it_says"} <= set(
        answers["tests"]
    )


def test_a_plain_srun_speaks_the_pmi_of_the_build(answers):
    slurm = answers["run"][QUESTIONS["run"][1]]
    assert slurm["SLURM_MPI_TYPE"] == "pmi2"
    assert answers["run"][QUESTIONS["run"][3]]["SLURM_MPI_TYPE"] == "pmix"
    assert "SLURM_MPI_TYPE" not in answers["run"]["mvapich@=4.0"]


def test_the_run_environment_names_the_provider_and_the_compilers(answers):
    plain, tcp, inside = (answers["run"][text] for text in QUESTIONS["run"][:3])
    assert plain["MPI_HOME"] == "/of/mvapich"
    assert plain["MPICC"] == "/of/mvapich/bin/mpicc"
    assert plain["MPIFC"] == "/of/mvapich/bin/mpifort"
    assert "FI_PROVIDER" not in plain
    assert plain["UCX_TLS"] == "^tcp"
    assert tcp["FI_PROVIDER"] == "tcp"
    assert "MPIFC" not in tcp
    assert "/of/mvapich/libexec/osu-micro-benchmarks/mpi/pt2pt" in tcp["PATH"].split(":")
    assert inside["FI_PROVIDER"] == "mverbs;ofi_ucr"


def test_the_withdrawn_tarball_of_4_1_is_taken_for_none(answers):
    assert WITHDRAWN not in answers["versions"].values()


def test_each_version_provides_the_standard_of_the_mpich_beneath(answers):
    assert answers["provides"] == {
        "mvapich@4.0:": ["mpi@:4.1"],
        "mvapich@:3": ["mpi@:3.1"],
    }


def test_only_the_version_with_the_soname_of_mpich_may_take_its_place(answers):
    # 4.0's is libmpi.so.0: a program linked to MPICH's libmpi.so.12 would not start.
    assert len(answers["splices"]) == 1
    assert all("@3.0" in when for when in answers["splices"])
