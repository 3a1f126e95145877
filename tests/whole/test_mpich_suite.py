"""tests/lab/mpich-suite over a real MPI: a wrong function, a stale row, a spoilt program."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from images.release import ROOT, installed

from mvstack.support.home import DATA

COMMAND = DATA / "tests" / "lab" / "mpich-suite"
# MPI_PROC_NULL comes out as a rank, as a fault in the library would have it.
WRONG = """
#include <mpi.h>
int MPI_Group_translate_ranks(MPI_Group a, int n, const int from[], MPI_Group b, int to[])
{
    int said = PMPI_Group_translate_ranks(a, n, from, b, to);
    if (n == 4 && from[3] == MPI_PROC_NULL)
        to[3] = 0;
    return said;
}
"""
TEST = "group/gtranks 8"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def mpi() -> Path:
    return next(installed().glob("software/MPICH/*"))


@pytest.fixture(scope="module")
def source(mpi: Path) -> Path:
    """The tarball that the MPI was built from."""
    version = mpi.name.partition("-")[0]
    found = sorted((ROOT / "sources").glob(f"**/mpich-{version}.tar.*"))
    return found[0] if found else pytest.skip(f"no source of MPICH {version} in {ROOT}/sources")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suite")


@pytest.fixture
def suite(mpi: Path, source: Path, work: Path):
    """Runs the folder `group` afresh, in one configured build."""

    def run(*words: str, known: str = "[]") -> subprocess.CompletedProcess[str]:
        (work / "results.jsonl").unlink(missing_ok=True)
        (work / "known.yaml").write_text(known)
        command = [COMMAND, "--mpi", mpi, "--source", source, "--work", work, "--only", "group"]
        return subprocess.run(
            [*command, "--known", work / "known.yaml", "--record", work / "record.jsonl", *words],
            capture_output=True, text=True,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def wrong(mpi: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wrong")
    (place / "wrong.c").write_text(WRONG)
    made = place / "wrong.so"
    mpicc = [mpi / "bin" / "mpicc", "-shared", "-fPIC", "-o", made, place / "wrong.c"]
    subprocess.run(mpicc, check=True)
    return made


def row(test: str = TEST) -> str:
    return f"- {{test: {test}, mpi: mpich *, whose: mpich, reason: planted}}\n"


def test_a_clean_mpi_passes_and_is_recorded(suite, work):
    done = suite()
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((work / "record.jsonl").read_text())
    assert record["mpi"] == "mpich 4.0.2 ch4:ofi" and len(record["source"]) == 64
    assert record["passed"] == record["tests"] >= 4 and record["known"] == record["new"] == {}
    assert record["not_run"]["rma"] == "not asked for (--only)"
    assert "gtranks" in done.stdout or "group" in done.stdout


def test_a_wrong_function_is_named_by_its_test(suite, wrong, work):
    done = suite("--env", f"LD_PRELOAD={wrong}")
    assert done.returncode == 1, done.stdout + done.stderr
    new = json.loads((work / "record.jsonl").read_text())["new"]
    assert new == {TEST: "failed"} and f"new: {TEST}: failed" in done.stdout


def test_what_is_known_and_fails_is_no_failure(suite, wrong):
    done = suite("--env", f"LD_PRELOAD={wrong}", known=row())
    assert done.returncode == 0 and "1 known, 0 new, 0 stale" in done.stdout, done.stdout


def test_what_is_known_and_passes_is_one(suite):
    done = suite(known=row())
    assert done.returncode == 1 and f"stale: known.yaml:1: {TEST} passes" in done.stdout
    done = suite(known=row("group/nothing 2"))
    assert done.returncode == 1 and "no test is called group/nothing 2" in done.stdout


def test_what_ran_does_not_run_again_and_a_failure_does(suite, wrong, mpi, source, work):
    suite("--env", f"LD_PRELOAD={wrong}")
    command = [COMMAND, "--mpi", mpi, "--source", source, "--work", work, "--only", "group"]
    before = (work / "results.jsonl").read_text()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and (work / "results.jsonl").read_text() == before
    done = subprocess.run([*command, "--again"], capture_output=True, text=True)
    assert done.returncode == 0 and f"again      {TEST}: failed, then passed" in done.stdout


def test_a_program_that_does_not_build_is_not_passed_over(suite, work):
    program = next(work.glob("source/*/test/mpi/group/gtranks.c"))
    kept = program.read_text()
    try:
        program.write_text("#error spoilt\n")
        shutil.rmtree(work / "build" / "group" / ".libs", ignore_errors=True)
        for made in work.glob("build/group/gtranks*"):
            made.unlink()
        done = suite()
    finally:
        program.write_text(kept)
    assert done.returncode == 1 and f"new: {TEST}: not built" in done.stdout
    assert "spoilt" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mpi", "/nowhere"], "no bin/mpicc there"),
        (["--source", "/nowhere.tar.gz"], "no such file or folder"),
        (["--only", "groups"], "allowed attr"),
        (["--mpi", "OTHER"], "name another"),
    ],
)
def test_a_wrong_call_is_refused(suite, tmp_path, mpi, words, said):
    if words[-1] == "OTHER":  # the same MPI by another name: what was built for one is not for it
        (tmp_path / "mpi").mkdir()
        for one in mpi.iterdir():
            (tmp_path / "mpi" / one.name).symlink_to(one)
        words = ["--mpi", str(tmp_path / "mpi")]
    done = suite(*words)
    assert done.returncode == 2 and said in done.stderr, done.stdout + done.stderr
