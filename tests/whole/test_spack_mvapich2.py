"""The recipe of MVAPICH2 inside the pinned Spack, without its solver: one `spack python`."""

import json
from pathlib import Path

import pytest
from spack_here import run, spack_here

INSIDE = Path(__file__).with_name("spack_mvapich2_inside.py")
ATTRUTIL = """\
\tmpi_errno = MPIR_Call_attr_delete( handle, p );
\tMPIR_Keyval_release_ref( p->keyval, &in_use);
"""
# As a build of 2.3.7 for verbs and Slurm answers, and one of MPICH.
MVAPICH2 = """\
MVAPICH2 Version:     \t2.3.7
MVAPICH2 Release date:\tWed March 02 22:00:00 EST 2022
MVAPICH2 Device:      \tch3:mrail
MVAPICH2 configure:   \t'--prefix=/opt/mv2' '--with-device=ch3:mrail' '--with-pm=slurm' \
'--with-pmi=pmix' '--with-file-system=lustre+ufs' '--enable-cuda=basic' '--disable-xrc'
"""
MPICH = "MPICH Version:    \t4.1\nMPICH Device:    \tch4:ofi\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mvapich2")
    programs = []
    for name, text in (("mvapich2", MVAPICH2), ("mpich", MPICH)):
        program = folder / name / "bin" / "mpichversion"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}EOF\n")
        program.chmod(0o755)
        programs.append(str(program))
    (folder / "attrutil.c").write_text(ATTRUTIL)
    isolated = spack_here(folder / "state")
    done = run(isolated, "python", str(INSIDE), str(folder), *programs)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_spack_takes_our_recipe_for_mvapich2(answers):
    assert answers["namespace"] == "mvapich_stack"
    assert {"2.3.7", "2.3.7-1", "2.3.7-2"} <= set(answers["versions"])
    assert answers["provides"] == ["mpi@:3.1"]


def test_what_does_not_go_together_is_refused_with_what_to_use_instead(answers):
    refusals = answers["refusals"]
    assert refusals.pop("mvapich2 fabrics=mrail +cuda +multi_subnet +rdma_cm") == []
    assert ["use" in " ".join(messages) for messages in refusals.values()] == [True] * 3
    assert refusals["mvapich2 fabrics=sock +cuda"] == [
        "mvapich2: sock moves no GPU buffers: use fabrics=mrail, or mvapich +cuda"
    ]


def test_new_compilers_are_told_to_take_old_c(answers):
    # the level: configure forgets src/mpl; and the loops of reductions
    assert answers["cflags"]["10"] == ["-g", "-O2", "-ftree-vectorize"]
    assert "-Wno-error=incompatible-pointer-types" in answers["cflags"]["14"]
    assert "-std=gnu17" not in answers["cflags"]["14"]
    assert "-std=gnu17" in answers["cflags"]["15"]


def test_both_fortrans_take_mismatched_arguments_and_wait(answers):
    # Upstream's recipe says it for FFLAGS alone.
    flag = "-fallow-argument-mismatch"
    # What would be taken of the host where it is found, and is not.
    chance = {"ac_cv_lib_hcoll_hcoll_init": "no", "ac_cv_header_tm_h": "no"}
    assert answers["environment"]["12"] == {"FFLAGS": flag, "FCFLAGS": flag, **chance}
    assert answers["environment"]["9"] == chance
    assert answers["environment"]["14"]["FCFLAGS"] == f"{flag} -fno-tree-sra"


def test_an_attribute_without_its_key_is_skipped(answers):
    before, after = answers["patched"].split("mpi_errno = MPIR_Call_attr_delete")
    assert [line.strip() for line in before.splitlines()] == [
        "if (!p->keyval) {",
        "MPIU_Handle_obj_free( &MPID_Attr_mem, p );",
        "p = new_p;",
        "continue;",
        "}",
        "",
    ]
    assert after == "( handle, p );\n" + ATTRUTIL.splitlines()[1] + "\n"


def test_a_build_of_the_site_is_found_and_mpich_is_not(answers):
    (version, (variants,)), (none, _) = answers["found"]
    assert version == "2.3.7"
    assert none is None
    said = variants.split()
    for word in (
        "fabrics=mrail",
        "process_managers=slurm",
        "pmi_version=pmix",
        "file_systems=lustre,ufs",
        "+cuda",
        "~cuda_kernels",
        "~xrc",
        "~omb",
    ):
        assert word in said


def test_stand_alone_tests_are_there(answers):
    worlds = ("test_world", "test_world_fortran", "test_world_mpirun_rsh")
    named = (*worlds, "test_any_source", "test_what_it_says")
    assert not set(named) - set(answers["tests"])
