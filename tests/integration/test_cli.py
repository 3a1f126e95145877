"""The command line, run as a person runs it: what it prints, and the exit code of each error."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from said import Mvstack, Said

from mvstack.builders.spack import clone
from mvstack.cli import main as cli
from mvstack.discover import look
from mvstack.model.load import load_system, release_names, system_names

TOP = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TOP / "src"), "COLUMNS": "200"}
COMMANDS = ["discover", "check", "explain", "render", "install", "test", "report", "up"]
COMMANDS += [
    "compare",
    "tune",
    "abi",
    "bundle",
    "diff",
    "list",
    "lock",
    "gate",
    "show",
    "adopt",
    "outdated",
    "bump",
]
SOURCES = ["list", "verify", "fetch", "add", "forget"]


def process(*words: object, **environment: str) -> Said:
    """``python -m mvstack WORD…``."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mvstack", *map(str, words)],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def changed(folder: Path, old: str, new: str, system: str = "azure-hbv4") -> Path:
    """A system file like one of the repository, with one thing changed."""
    text = (TOP / "environments" / "systems" / f"{system}.yaml").read_text()
    assert old in text
    file = folder / "mine.yaml"
    file.write_text(text.replace(old, new).replace(f"name: {system}", "name: mine"))
    return file


# --- explain -------------------------------------------------------------------------------------

# What each must say: worked out by hand from the products' documentation, not from the policy.
ANSWERS = {
    "expanse/cpu": ("mvapich", "ch4:ucx", "srun --mpi=pmi2"),
    "azure-hbv4": ("mvapich", "ch4:ucx", "srun --mpi=pmi2"),
    "aws-hpc7a": ("mvapich", "ch4:ofi", "efa"),
    "alps": ("mvapich", "ch4:ofi", "cxi"),
}


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_explain_answers_for_a_system(mvstack: Mvstack, name: str) -> None:
    said = mvstack("explain", name)
    assert said.code == 0, said.err
    for word in ANSWERS[name]:
        assert word in said.out
    assert "because" in said.out and "[" in said.out  # with the source of each reason


def test_explain_says_how_fast_the_network_is(mvstack: Mvstack) -> None:
    assert "infiniband (mlx5), 100 Gb/s, HDR100" in mvstack("explain", "expanse/cpu").out


def test_explain_of_a_system_explains_every_partition(mvstack: Mvstack) -> None:
    said = mvstack("explain", "expanse")
    assert said.code == 0
    assert "expanse/cpu" in said.out and "expanse/gpu" in said.out
    assert said.out.count("because") >= 2


@pytest.mark.parametrize("name", [name for name in system_names() if load_system(name).partitions])
def test_json_says_the_same_as_the_text(mvstack: Mvstack, name: str) -> None:
    said = mvstack("explain", name, "--json")
    plans = json.loads(said.out)["plans"]
    text = mvstack("explain", name).out
    assert [plan["partition"] for plan in plans] == list(load_system(name).partitions)
    for plan in plans:
        assert plan["mpi"][0]["module"] in text and plan["mpi"][0]["device"] in text
        assert plan["target"] in text


def test_the_same_question_gets_the_same_bytes(mvstack: Mvstack) -> None:
    assert mvstack("explain", "alps", "--json").out == mvstack("explain", "alps", "--json").out


def test_explain_local_looks_at_this_machine(mvstack: Mvstack) -> None:
    said = mvstack("explain", "local", "--json")
    assert said.code == 0, said.err
    (plan,) = json.loads(said.out)["plans"]
    assert plan["system"] == "local" and plan["os"] == look().os
    assert plan["mpi"][0]["product"] in ("mvapich", "mpich")
    assert bool(plan["fallback"]) == (plan["mpi"][0]["product"] == "mpich")


def test_explain_a_machine_that_is_not_in_the_repository(mvstack: Mvstack, tmp_path: Path) -> None:
    file = changed(
        tmp_path, "fabric: infiniband\n    nic: mlx5", "fabric: omni-path\n    nic: hfi1"
    )
    said = mvstack("explain", file)
    assert said.code == 0, said.err
    assert "mine/hpc" in said.out and "ch4:ofi" in said.out and "opx" in said.out


def test_a_partition_of_a_file_is_named_after_its_path(mvstack: Mvstack, tmp_path: Path) -> None:
    file = changed(tmp_path, "sdsc/spack", "sdsc/spack", system="expanse")
    (plan,) = json.loads(mvstack("explain", f"{file}/gpu", "--json").out)["plans"]
    assert (plan["system"], plan["partition"]) == ("mine", "gpu")
    said = mvstack("install", file, "--no-prerequisites")
    assert said.code == 3 and f"mvstack install {file}/cpu" in said.err


def test_what_discover_prints_can_be_explained(mvstack: Mvstack, tmp_path: Path) -> None:
    root = TOP / "tests" / "data" / "discover" / "azure-hbv4.yaml"
    said = mvstack("discover", "--root", root, "--name", "found")
    assert said.code == 0, said.err
    (tmp_path / "found.yaml").write_text(said.out)
    explained = mvstack("explain", tmp_path / "found.yaml")
    assert explained.code == 0, explained.err
    assert "found/" in explained.out and "infiniband" in explained.out


@pytest.mark.parametrize("command", ["explain", "check", "render"])
def test_a_system_file_comes_from_standard_input(
    mvstack: Mvstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    text = (TOP / "environments" / "systems" / "alps.yaml").read_text()
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    more = ["--to", tmp_path / "to"] if command == "render" else []
    said = mvstack(command, "-", *more)
    assert said.code == 0, said.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(text.replace("os:", "so:")))
    said = mvstack(command, "-", *more)
    assert said.code == 3 and "<standard input>:" in said.err


def test_discover_as_json_holds_what_the_file_says(mvstack: Mvstack) -> None:
    root = TOP / "tests" / "data" / "discover" / "azure-hbv4.yaml"
    found = json.loads(mvstack("discover", "--root", root, "--json").out)
    assert found["target"] in mvstack("discover", "--root", root).out


def test_discover_in_no_folder(mvstack: Mvstack, tmp_path: Path) -> None:
    said = mvstack("discover", "--root", tmp_path / "nowhere")
    assert said.code == 3 and str(tmp_path / "nowhere") in said.err


# --- wrong input ---------------------------------------------------------------------------------

BAD = """\
name: mycluster
os: rocky9
scheduler: slrum
partitions:
  gpu:
    cores: 64
    memory_gb: 512
    target: zen33
    fabrik: infiniband
    launcher: srun
    compiler: {name: gcc, version: 12.2, origin: system}
"""


@pytest.mark.parametrize("command", ["explain", "check", "render", "install"])
def test_every_error_of_a_file_is_told_with_its_line(
    mvstack: Mvstack, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    words = ["--no-prerequisites"] if command == "install" else []
    said = mvstack(command, file, *words)
    assert said.code == 3 and said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith(str(file))]
    numbers = [int(line.removeprefix(f"{file}:").partition(":")[0]) for line in lines]
    assert numbers == [3, 5, 8, 9, 11]  # in the order of the file
    for word in ("did you mean slurm", "did you mean zen3", "did you mean fabric", "quotes"):
        assert word in said.err
    assert "5 errors" in said.err


def test_errors_as_json_have_the_same_fields(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    said = mvstack("explain", tmp_path / "bad.yaml", "--json")
    found = json.loads(said.out)
    assert said.code == 3 == found["exit_code"] and found["error"] == "invalid input"
    assert len(found["problems"]) == 5 and found["problems"][0]["nearest"] == "slurm"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "azure-hvb4"], "did you mean azure-hbv4?"),
        (["explain", "Expanse"], "did you mean expanse?"),
        (["explain", "azure-hbv4/hcp"], "nearest   hpc"),
        (["explain", "alps", "--release", "2026.1"], "nearest   2026.11"),
        (["check", "alsp"], "did you mean alps?"),
        (["sources", "fetch", "mvapch@4.0"], "did you mean mvapich@4.0?"),
        (["explain", "./nowhere"], "nowhere: there is no such file"),
        (["explain", "/"], "/: this is not a file"),
        (["explain", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["install", "expanse", "--no-prerequisites"], "mvstack install expanse/cpu"),
        (["report", "expanse"], "mvstack report expanse/cpu"),
        (["test", "expanse"], "mvstack test expanse/cpu"),
    ],
)
def test_a_word_that_is_not_known_gets_the_nearest(
    mvstack: Mvstack, words: list[str], expected: str
) -> None:
    said = mvstack(*words)
    assert said.code == 3 and expected in said.err and "Traceback" not in said.err


@pytest.mark.parametrize(
    "content", [b"", b"- a\n- list\n", b"name: [\n", b"\xff\xfe\x00", b"a: 1\na: 2\n", b"x\tx: {"]
)
def test_a_file_that_is_no_system_file(mvstack: Mvstack, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    said = mvstack("explain", file)
    assert said.code == 3 and str(file) in said.err, said


def test_explain_names_what_a_site_leaves_out(mvstack: Mvstack, tmp_path: Path) -> None:
    file = changed(tmp_path, "launcher: srun", "launcher: srun\n    without: {HPCC: not wanted}")
    said = mvstack("explain", file)
    assert said.code == 0 and "left out\n  not HPCC 1.5.0: the site: not wanted" in said.out


def test_check_takes_several_and_tells_the_errors_of_all(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    said = mvstack("check", "alps", tmp_path / "bad.yaml", "nowhere")
    assert said.code == 3 and "there is no system nowhere" in said.err and ":9" in said.err


@pytest.mark.parametrize("command", ["check", "render"])
def test_wrong_input_counts_more_than_a_refusal_in_any_order(
    mvstack: Mvstack, tmp_path: Path, command: str
) -> None:
    refused = changed(tmp_path, "launcher: srun", "launcher: pals")
    (tmp_path / "bad.yaml").write_text(BAD)
    more = ["--to", tmp_path / "to"] if command == "render" else []
    for names in ([refused, tmp_path / "bad.yaml"], [tmp_path / "bad.yaml", refused]):
        said = mvstack(command, *names, *more)
        assert said.code == 3 and "6 errors" in said.err and "PALS" in said.err


def test_check_of_the_repository(mvstack: Mvstack) -> None:
    said = mvstack("check", *sorted(set(system_names()) - {"local"}), "--json")
    found = json.loads(said.out)
    assert said.code == 0
    assert [one for one in found["checked"] if " of " not in one] == [
        f"{name}/{partition}"
        for name in system_names()
        for partition in load_system(name).partitions
    ]
    some = {"alps/gh200", "lassen/gpu", "qemu-debian12/mpich", "alps/cpu-openmpi of 2023.05"}
    assert some <= set(found["checked"])


def test_wrong_usage(mvstack: Mvstack) -> None:
    assert mvstack("explian").code == 2
    assert mvstack("explain", "--jsno").code == 2
    assert mvstack("install", "local", "-j", "0").code == 2


@pytest.mark.parametrize("words", [("--root", ""), ("--root=",), ("--to", "", "--json")])
def test_an_unset_variable_is_not_the_current_folder(
    mvstack: Mvstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = mvstack("render", "expanse", *words)
    assert said.code == 2 and "empty value" in said.out + said.err
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_is_json_for_a_script(mvstack: Mvstack) -> None:
    said = mvstack("explain", "--bogus", "--json")
    told = json.loads(said.out)
    assert said.code == told["exit_code"] == 2
    assert "--bogus" in told["problems"][0]["message"] and "--bogus" in said.err
    assert json.loads(mvstack("bundle", "--json").out)["error"] == "wrong usage"


def test_a_capture_tells_a_script_where_it_is(mvstack: Mvstack, tmp_path: Path) -> None:
    said = mvstack("discover", "--capture", tmp_path / "here", "--json")
    assert said.code == 0 and json.loads(said.out) == {"capture": str(tmp_path / "here")}
    said = mvstack("discover", "--root", tmp_path / "here", "--capture", tmp_path / "there")
    assert said.code == 3 and "leave one of them out" in said.err
    assert not (tmp_path / "there").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is not here")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_below_standard_output_is_no_traceback(more: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "mvstack", "explain", "expanse/cpu", *more],
            env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert "No space left" in done.stderr and "Traceback" not in done.stderr


def test_interrupted_before_it_has_begun_it_just_ends(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    said = process("explain", PYTHONPATH=f"{tmp_path}:{TOP / 'src'}")
    assert said == (130, "", "")


@pytest.mark.parametrize("name", ["", "a b", "Expanse", "a/b", "x" * 41])
def test_a_name_that_no_system_can_have_is_refused_at_once(mvstack: Mvstack, name: str) -> None:
    said = mvstack("discover", "--name", name)
    assert (said.code, said.out) == (3, "") and "beginning with a letter" in said.err


def test_help_in_a_locale_without_arrows() -> None:
    said = process("--help", PYTHONIOENCODING="ascii")
    assert said.code == 0 and "discover" in said.out


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["explain", "check", "render"])
def test_a_combination_that_cannot_work_is_refused(
    mvstack: Mvstack, tmp_path: Path, command: str
) -> None:
    file = changed(
        tmp_path, "launcher: srun\n", "launcher: mpirun_rsh\n    mpi: {product: mvapich}\n"
    )
    more = ["--to", tmp_path / "to"] if command == "render" else []
    said = mvstack(command, file, *more)
    assert said.code == 4 and said.out == ""
    assert "mine/hpc" in said.err and "mpirun_rsh does not exist" in said.err
    nearest = next(line for line in said.err.splitlines() if line.startswith("    nearest"))
    assert "hydra" in nearest or "mvapich2" in nearest
    assert "launcher: hydra" in next(
        line for line in said.err.splitlines() if line.startswith("    to go on")
    )


def test_another_machine_is_refused_with_cpu_and_os(mvstack: Mvstack, tmp_path: Path) -> None:
    here = look()
    if here.os == "almalinux8" or here.target == "zen4":
        pytest.skip("this machine could be the one that the test takes for another")
    for command in ("install", "up"):
        said = mvstack(command, "azure-hbv4", "--no-prerequisites")
        assert said.code == 4, said
        assert "almalinux8" in said.err and str(here.os) in said.err
        assert "zen4" in said.err and "processor" in said.err
        assert "--anyway" in said.err and "Nothing was installed" in said.err
    assert not (tmp_path / "stacks").exists()


def test_anyway_goes_on_and_a_dry_run_changes_nothing(mvstack: Mvstack, tmp_path: Path) -> None:
    said = mvstack("install", "azure-hbv4", "--anyway", "--dry-run", "--json")
    rows = json.loads(said.out)
    assert said.code == 0 and not (tmp_path / "stacks").exists()
    assert [row["package"] for row in rows][:3] == ["GCC", "MVAPICH", "gmvapich"]
    assert {row["result"] for row in rows} == {"would build (missing)"}


def test_packages_are_installed_by_name_with_what_they_need(mvstack: Mvstack) -> None:
    words = ("install", "azure-hbv4", "--anyway", "--dry-run", "--json")
    rows = json.loads(mvstack(*words[:2], "lammps", "parmetis", *words[2:]).out)
    names = {row["package"] for row in rows}
    assert {"MVAPICH", "HPCC", "LAMMPS", "FFTW", "ParMETIS", "METIS"} <= names
    assert not {"GROMACS", "PETSc", "Hypre"} & names
    said = mvstack(*words[:2], "lamps", *words[2:4])
    assert said.code == 3 and "nearest   LAMMPS" in said.err
    said = mvstack(*words[:2], "amber", *words[2:4])
    assert said.code == 4 and "needs registration" in said.err and "Amber" in said.err


def test_a_system_that_spack_builds_needs_the_pinned_spack(
    mvstack: Mvstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in clone.URLS.values():
        monkeypatch.setenv(variable, str(tmp_path / "no-such-repository"))
    said = mvstack("install", "alps/cpu", "--anyway", "--no-prerequisites")
    assert said.code == 5 and "spack v1.1.0" in said.err.lower()
    assert "Nothing half-cloned was kept" in said.err
    assert not list((tmp_path / "stacks").rglob(".incoming-*"))


@pytest.mark.parametrize("command", ["report", "test"])
def test_nothing_is_installed_yet(mvstack: Mvstack, tmp_path: Path, command: str) -> None:
    for name in ("local", "azure-hbv4"):
        said = mvstack(command, name)
        assert said.code == 4 and "nothing is installed" in said.err
        assert str(tmp_path / "stacks") in said.err and f"mvstack install {name}" in said.err
        assert "Errno" not in said.err


PREREQUISITES = """\
families:
  all:
    like: [""]
    update: touch {0}/updated
    install: touch {0}/installed
    present: cat {0}/{{package}}
    packages:
      - {{package: mvstack-no-such-package, why: to be missing}}
"""


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution, in a folder, that lacks a package and can install it."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "prerequisites.yaml").write_text(PREREQUISITES.format(tmp_path))
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["install", "up"])
def test_a_package_of_the_distribution_is_missing(
    mvstack: Mvstack, lacking: Path, command: str
) -> None:
    said = mvstack(command, "local")
    assert said.code == 7 and "mvstack-no-such-package (to be missing)" in said.err
    line = f"touch {lacking}/updated && touch {lacking}/installed mvstack-no-such-package"
    assert line in said.err and "--yes" in said.err
    assert not (lacking / "installed").exists() and not (lacking / "stacks").exists()


@pytest.mark.parametrize("command", ["install", "up"])
def test_nothing_is_installed_for_what_is_refused_anyhow(
    mvstack: Mvstack, lacking: Path, command: str
) -> None:
    here = look()
    if here.os == "almalinux8" or here.target == "zen4":
        pytest.skip("this machine could be the one that the test takes for another")
    (lacking / "bad.yaml").write_text(BAD)
    assert mvstack(command, "azure-hbv4", "--yes").code == 4
    assert mvstack(command, lacking / "bad.yaml", "--yes").code == 3
    assert mvstack(command, "azure-hvb4", "--yes").code == 3
    assert mvstack(command, "local", "--yes", "--root", lacking / "a b").code == 3
    assert not (lacking / "updated").exists()


@pytest.mark.parametrize("command", ["report", "test"])
@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", "\x00"])
def test_a_damaged_plan_of_a_tree_is_no_traceback(
    mvstack: Mvstack, tmp_path: Path, command: str, text: str
) -> None:
    records = tmp_path / "stacks" / release_names()[0] / "local" / "records"
    records.mkdir(parents=True)
    (records / "plan.json").write_text(text)
    said = mvstack(command, "local")
    assert said.code == 4 and "because" in said.err and "mvstack install local" in said.err


# --- the install root ----------------------------------------------------------------------------


def test_a_root_that_cannot_be_made(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = ("install", "azure-hbv4", "--anyway", "--no-prerequisites", "--root")
    said = mvstack(*words, tmp_path / "file" / "below")
    assert said.code == 7 and "cannot be written to" in said.err
    assert str(tmp_path / "file" / "below") in said.err and "--root" in said.err


@pytest.mark.parametrize("odd", ["a b", "a:b", 'a"b', "a'b", "a$b", "a,b", "a\nb"])
def test_a_root_that_tools_would_not_take_whole(mvstack: Mvstack, tmp_path: Path, odd: str) -> None:
    words = ("install", "azure-hbv4", "--anyway", "--no-prerequisites", "--root")
    said = mvstack(*words, tmp_path / odd)
    assert said.code == 3 and "must be a plain path" in said.err
    assert repr(odd[1]) in said.err and not (tmp_path / odd).exists()


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user, which nobody else may enter."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    return folder


def powerless(*words: object, **environment: str) -> Said:
    """``mvstack WORD…`` as a user to whom file permissions apply: root less that privilege.

    Not as another user, who could not read a checkout that lies below /root.
    """
    less = "--bounding-set=-dac_override,-dac_read_search"
    command = ["setpriv", less, "--inh-caps=-all", sys.executable, "-P", "-m", "mvstack"]
    done = subprocess.run(
        [*command, *map(str, words)],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def test_a_root_of_another_user(theirs: Path, tmp_path: Path) -> None:
    theirs.chmod(0o755)
    words = ("install", "azure-hbv4", "--anyway", "--no-prerequisites", "--root", theirs)
    said = powerless(*words, XDG_STATE_HOME=str(tmp_path / "state"))
    assert said.code == 7 and "cannot be written to: Permission denied" in said.err
    assert list(theirs.iterdir()) == []


def test_a_state_folder_of_another_user(theirs: Path) -> None:
    # as after `sudo -u` with the environment kept
    said = powerless("explain", "alps", XDG_STATE_HOME=str(theirs))
    assert said.code == 7 and "Permission denied" in said.err and "accepted.yaml" in said.err


def test_what_cannot_be_written_is_an_error_and_no_traceback(
    mvstack: Mvstack, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    said = mvstack("render", "alps", "--to", tmp_path / "file")
    assert said.code == 3 and "this is a file, not a folder" in said.err


HOLDER = """
import sys, time
from pathlib import Path
from mvstack.tree.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""


def test_a_root_that_another_process_installs_into(mvstack: Mvstack, tmp_path: Path) -> None:
    root = tmp_path / "stacks"
    words = ("install", "azure-hbv4", "--anyway", "--no-prerequisites")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, root], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            said = mvstack(*words)
            as_json = json.loads(mvstack(*words, "--json").out)
        finally:
            holder.kill()
    assert said.code == 8 and f"pid {holder.pid} on " in said.err and str(root) in said.err
    assert as_json["exit_code"] == 8 and "wait until" in as_json["problems"][0]["todo"]
    assert not (root / "2026.11").exists()


# --- render --------------------------------------------------------------------------------------


def test_rendered_files_are_fresh_until_somebody_edits_them(
    mvstack: Mvstack, tmp_path: Path
) -> None:
    folder = tmp_path / "rendered"
    assert mvstack("render", "--to", folder).code == 0
    count = len(list(folder.glob("*/*/plan.json")))
    fresh = mvstack("render", "--check", "--to", folder)
    assert fresh.code == 0 and fresh.out == f"{count} partitions are up to date\n" and count > 12
    edited = next((folder / "azure-hbv4").rglob("MVAPICH-*.eb"))
    edited.write_text(edited.read_text() + "# mine\n")
    (folder / "alps" / "cpu" / "stray.txt").touch()
    (folder / "expanse" / "gpu" / "plan.json").unlink()
    before = edited.read_text()
    stale = mvstack("render", "--check", "--to", folder)
    assert stale.code == 1 and edited.read_text() == before
    assert f"easyconfigs/{edited.name}: not what its inputs give now" in stale.err
    assert "stray.txt: nothing renders it any more" in stale.err
    assert "plan.json: missing" in stale.err and "3 errors" in stale.err
    assert mvstack("render", "--to", folder).code == 0
    assert mvstack("render", "--check", "--to", folder).code == 0


def test_a_partition_that_is_no_more_is_named(mvstack: Mvstack, tmp_path: Path) -> None:
    folder = tmp_path / "rendered"
    mvstack("render", "--to", folder)
    (folder / "alps").rename(folder / "gone")
    said = mvstack("render", "--check", "--to", folder)
    assert said.code == 1
    assert "gone/cpu: no system of this repository renders this any more" in said.err
    assert "alps/cpu: stale: plan.json: missing" in said.err


def test_a_file_is_rendered_only_to_a_folder_that_is_named(
    mvstack: Mvstack, tmp_path: Path
) -> None:
    file = changed(tmp_path, "cores: ", "cores:  ")
    said = mvstack("render", file)
    assert said.code == 3 and f"mvstack render {file} --to DIR" in said.err
    assert not (TOP / "environments" / "rendered" / "mine").exists()
    assert mvstack("render", file, "--to", tmp_path / "to").code == 0


def test_a_full_disk_is_told_with_the_file_and_leaves_none_empty(
    mvstack: Mvstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = mvstack("render", "alps", "--to", tmp_path / "to")
    assert said.code == 7 and "No space left" in said.err and f"{tmp_path}/to/alps/cpu/" in said.err
    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()] == []


def test_one_bad_system_and_nothing_is_rendered(mvstack: Mvstack, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    said = mvstack("render", "alps", tmp_path / "bad.yaml", "--to", tmp_path / "rendered")
    assert said.code == 3 and "Nothing was rendered" in said.err
    assert not (tmp_path / "rendered").exists()


def test_two_renders_are_the_same_bytes(mvstack: Mvstack, tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        mvstack("render", "--to", tmp_path / name)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        texts.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert texts[0] == texts[1] and len(texts[0]) > 15


# --- help, version, completion, as processes of their own ----------------------------------------


def test_help_is_whole_and_has_examples() -> None:
    said = process("--help")
    assert said.code == 0 and "Exit codes" in said.out
    for command in [*COMMANDS, "sources"]:
        assert command in said.out


@pytest.mark.parametrize("words", [*([c] for c in COMMANDS), *(["sources", c] for c in SOURCES)])
def test_every_command_has_an_example(mvstack: Mvstack, words: list[str]) -> None:
    said = mvstack(*words, "--help")
    text = " ".join(said.out.split())
    assert said.code == 0 and "Example" in text and f"mvstack {' '.join(words)}" in text


def test_every_command_of_the_program_is_tested_for_its_example() -> None:
    groups = {"sources", "cache", "ci", "image", "cluster", "fabric", "new"}
    assert set(cli.COMMANDS) - groups == set(COMMANDS)


def test_help_says_of_each_command_what_the_command_says_of_itself(mvstack: Mvstack) -> None:
    listed = " ".join(mvstack("--help").out.split())
    for name in cli.COMMANDS:
        said = mvstack(name, "--help").out.splitlines()
        first = [line.strip() for line in said if line.strip()][1]
        assert first.split(".")[0][:30] in listed, name


WITHOUT = """
import importlib, importlib.metadata, re, sys
names = [
    {name.lower() for name in re.findall(r"^([\\w.-]+)==", open(file).read(), re.M)}
    for file in ("requirements/core.txt", "requirements/runtime.txt")
]
for name, of in importlib.metadata.packages_distributions().items():
    if not {one.lower() for one in of} - names[1] and {one.lower() for one in of} - names[0]:
        sys.modules[name] = None  # an import of it fails
assert sys.modules["numpy"] is None and sys.modules["reframe"] is None
from mvstack.cli import main
for name in set(main.MODULES.values()):
    importlib.import_module(f"mvstack.cli.{name}")
"""


def test_help_needs_nothing_that_a_later_command_installs() -> None:
    """`compare --help` on a fresh checkout ended in a traceback: no module named numpy."""
    top = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(top / "src")}
    words = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(words, cwd=top, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version() -> None:
    from mvstack import __version__

    assert process("--version") == (0, f"{__version__}\n", "")


def test_without_a_command_the_help_is_shown() -> None:
    said = process()
    assert "Usage" in said.out + said.err


def test_a_word_that_is_none_of_the_choices_is_told_in_plain_words() -> None:
    said = process("list", "systms", "--json")
    message = json.loads(said.out)["problems"][0]["message"]
    assert message.startswith("Invalid value for 'WHAT': 'systms' is not one of 'systems'")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str) -> None:
    # the variable makes the shell an argument, which otherwise is read from the process tree
    said = process("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert said.code == 0 and "_MVSTACK_COMPLETE" in said.out and "mvstack" in said.out


def test_completion_in_bash_knows_the_systems(tmp_path: Path) -> None:
    said = process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    program = tmp_path / "mvstack"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m mvstack "$@"\n')
    program.chmod(0o755)
    script = (
        f"{said.out}\nCOMP_WORDS=(mvstack explain exp); COMP_CWORD=2\n"
        f"_mvstack_completion {program}\necho ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(
        ["bash", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "expanse\n", done


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "expanse/"], ["expanse/cpu", "expanse/gpu"]),
        (["check", "azure-hbv3"], ["azure-hbv3"]),
        (["install", "local", "lam"], ["lammps"]),
        (["explain", "--release", "2026"], release_names()[:1]),
        (["up", "--profile", "s"], ["small"]),
    ],
)
def test_completion_knows_partitions_packages_releases_and_profiles(
    mvstack: Mvstack, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: list[str]
) -> None:
    monkeypatch.setenv("_MVSTACK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["mvstack", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert mvstack().out.split() == expected


def test_errors_of_a_process_go_to_standard_error_alone() -> None:
    said = process("explain", "azure-hvb4")
    assert said.code == 3 and said.out == "" and "did you mean azure-hbv4?" in said.err


def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes a connection and says nothing
        mirror = f"http://127.0.0.1:{silent.getsockname()[1]}"
        words = ["sources", "fetch", "hpcc", "--mirror", mirror, "--root", str(tmp_path / "root")]
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "mvstack", *words],
            env=ENVIRONMENT | {"XDG_STATE_HOME": str(tmp_path), "no_proxy": "*"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as running:
            silent.settimeout(60)
            connection, _ = silent.accept()
            os.killpg(running.pid, signal.SIGINT)
            _, said = running.communicate(timeout=60)
            connection.close()
    assert running.returncode == 130, said
    assert "interrupted; run the same command again to resume" in said and "Traceback" not in said
    assert list((tmp_path / "root").rglob("*.tar.gz")) == []


def test_a_reader_that_ends_early_is_no_error() -> None:
    command = f"{sys.executable} -P -m mvstack explain expanse | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr and done.stdout.strip() in ("0", "1", "141")
