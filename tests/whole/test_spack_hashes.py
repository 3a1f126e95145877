"""Spack's hash of a recipe changes with everything that decides its build: tried edit by edit.

Spack hashes package.py alone, and directives through the spec. What a recipe keeps elsewhere could
be mended without anything being rebuilt, and caches would serve the old binary.
"""

import ast
import json
import shutil
from pathlib import Path

import pytest
from spack_here import run, spack_here

INSIDE = Path(__file__).with_name("spack_hashes_inside.py")
OURS = Path(__file__).resolve().parents[2] / "spack-repo" / "spack_repo" / "mvapich_stack"
BUILT = {"mvapich": "mvapich@=4.0", "mvapich2": "mvapich2@=2.3.7"}
# Installed from files of the user, through helpers of this repository.
INHERITING = {
    name: ["spack_repo.mvapich_stack.build_systems.rpm_by_hand"]
    for name in ("mvapich-plus@=4.1", "osu-inam@=1.1")
}
NOTHING_BUILT = {"mvapich2_gdr", "mvapich2_x"}
# What an MPI does for others, as builtin's mpich does for its kin: none of it builds the MPI.
SHARED = "spack_repo.mvapich_stack.build_systems"
FOR_OTHERS, CHECKS, *FOUND = (
    f"{SHARED}.{name}"
    for name in ("mpich_based", "mpich_checked", "mvapich_found", "mvapich2_found")
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hashes")
    copy = shutil.copytree(OURS, folder / "spack_repo" / "mvapich_stack")
    isolated = spack_here(folder / "state")
    repos = isolated.config / "repos.yaml"
    said = json.loads(repos.read_text())
    said["repos:"]["mvapich_stack"] = str(copy)
    repos.write_text(json.dumps(said))
    asked = json.dumps([list(BUILT.values()), INHERITING])
    done = run(isolated, "python", str(INSIDE), asked)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", BUILT)
def test_every_method_and_flag_counts(answers, name):
    found = answers["recipes"][BUILT[name]]
    assert found["tried"] > 120
    assert found["unseen"] == []


@pytest.mark.parametrize("name", INHERITING)
def test_what_a_recipe_inherits_counts(answers, name):
    before, *after = answers["inheriting"][name].values()
    assert after
    assert before not in after


def test_nothing_that_is_built_imports_what_is_not_hashed():
    for path in sorted(OURS.glob("packages/*/package.py")):
        ours = [
            node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
            and (node.level or (node.module or "").startswith("spack_repo.mvapich_stack"))
        ]
        folder = path.parent.name
        assert not list(path.parent.glob("[!p]*.py")), folder
        if folder in (*BUILT, "mpich_testsuite", "osu_micro_benchmarks"):
            assert set(ours) <= {FOR_OTHERS, CHECKS, *FOUND}, folder
        elif folder not in NOTHING_BUILT and f"{folder.replace('_', '-')}@" in str(INHERITING):
            assert all(".build_systems." in one for one in ours), folder


def test_what_is_not_hashed_reads_refuses_tests_or_is_for_dependents_alone():
    for file, methods in (
        (
            "mpich_based",
            "libs setup_mpi_wrapper_variables setup_run_environment "
            "setup_dependent_build_environment setup_dependent_package",
        ),
        (
            "mpich_checked",
            "refuse_unknown_options refuse_unoptimised launch by_mpirun_rsh srun ranks expected "
            "test_world test_world_mpirun_rsh test_world_fortran test_any_source test_what_it_says",
        ),
        (
            "mpich_found",
            "determine_variants needed_by_libmpi options_said is_on common_said",
        ),
        ("mvapich_found", "determine_version variants_said linked launcher_said"),
        ("mvapich2_found", "determine_version fabric_said variants_said mrail_said"),
    ):
        tree = ast.parse((OURS / "build_systems" / f"{file}.py").read_text())
        names = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
        assert names == set(methods.split()), file
        writes = [
            node.lineno
            for function in ast.walk(tree)
            # which names hosts for a test
            if isinstance(function, ast.FunctionDef) and function.name != "by_mpirun_rsh"
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            and (getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
            in ("filter_file", "write", "copy", "install", "mkdirp", "symlink")
        ]
        assert not writes, file
