"""How EasyBuild is run: its words reach the user, and nothing of it outlives us.

A small program stands for EasyBuild: what is tried is the handling of processes, which no real
build of a package could provoke in a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mvstack.builders.easybuild import command as eb
from mvstack.support import processes
from mvstack.support.errors import BuildFailed, Missing
from mvstack.tree import modules
from mvstack.tree.folder import MARK, end_leftovers

SRC = Path(__file__).resolve().parents[2] / "src"
Run = Callable[..., dict[str, float]]


def nothing(_: str) -> None:
    """A note that nobody reads."""


@pytest.fixture
def easybuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> eb.EasyBuild:
    lmod = tmp_path / "lmod" / "libexec" / "lmod"
    lmod.parent.mkdir(parents=True)
    lmod.touch()
    monkeypatch.setenv("LMOD_CMD", str(lmod))
    tree = tmp_path / "2026.11" / "local"
    return eb.EasyBuild(tmp_path, tree, tree / "rendered", system_compiler=True)


@pytest.fixture
def says(easybuild: eb.EasyBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script in place of EasyBuild."""

    def run(script: str, note: Callable[[str], None] = nothing) -> dict[str, float]:
        monkeypatch.setattr(eb, "_program", lambda: ["bash", "-c", script, "easybuild"])
        return eb.run(easybuild, "A-1.eb", tmp_path / "a.log", note)

    return run


def gone(file: Path) -> bool:
    """Whether the process whose number stands in ``file`` has ended, within some seconds."""
    pid = int(file.read_text())
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":  # ended; whoever became its parent has not asked yet
            return True
        time.sleep(0.01)
    return False


# --- what it says --------------------------------------------------------------------------------


def test_steps_are_noted_timed_and_logged(says: Run, tmp_path: Path) -> None:
    notes: list[str] = []
    steps = says(
        "echo '== fetching files...'; echo '== building...'; sleep 0.3; echo compiled; "
        r"printf '== installing...\n  no newline at the end'",
        notes.append,
    )
    assert [n for n in notes if "objects" not in n] == ["fetching files", "building", "installing"]
    assert list(steps) == ["starting", "fetching files", "building", "installing"]
    assert steps["building"] >= 0.3
    text = (tmp_path / "a.log").read_text()
    assert "A-1.eb" in text.splitlines()[0]  # the command line, to run it by hand
    assert "compiled\n" in text and text.endswith("no newline at the end\n")


def test_objects_are_counted_while_it_compiles(
    says: Run, easybuild: eb.EasyBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "TICK", 0.05)
    notes: list[str] = []
    folder = easybuild.build / "deep"
    says(f"mkdir -p {folder}; touch {folder}/{{a,b,c}}.o; echo '== building...'; sleep 0.5",
         notes.append)  # fmt: skip
    assert "building, 3 objects" in notes
    assert not easybuild.build.exists()  # emptied after each


def test_the_failure_carries_easybuilds_own_words(says: Run, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed) as caught:
        says(
            "echo '== building...'; echo 'ERROR: Installation of A-1.eb failed: no rule for x'; "
            "echo 'some more lines'; exit 3"
        )
    problem = caught.value.problems[0]
    assert "A-1.eb" in problem.message and "status 3" in problem.message
    assert "no rule for x" in problem.found and "some more" not in problem.found
    assert problem.where == str(tmp_path / "a.log") and problem.todo
    assert caught.value.exit_code == 6


def test_without_such_words_the_last_lines_are_shown(says: Run) -> None:
    with pytest.raises(BuildFailed) as caught:
        says("seq 100; echo; exit 1")
    assert caught.value.problems[0].found == "98 | 99 | 100"


def test_a_program_that_was_killed_has_failed(says: Run) -> None:
    with pytest.raises(BuildFailed, match="status -9"):
        says("kill -9 $$")


def test_any_bytes_of_a_compiler_are_no_error(says: Run, tmp_path: Path) -> None:
    says(r"printf '\xff\xfe\x00 caf\xc3\xa9\n'; head -c 300000 /dev/zero | tr '\0' x")
    assert "café" in (tmp_path / "a.log").read_text()


def test_a_failed_build_keeps_its_files_to_look_at(says: Run, easybuild: eb.EasyBuild) -> None:
    with pytest.raises(BuildFailed):
        says(f"mkdir -p {easybuild.build}/a; exit 1")
    assert (easybuild.build / "a").is_dir()


# --- its environment and options -----------------------------------------------------------------


def test_nothing_of_the_callers_settings_reaches_it(
    says: Run, easybuild: eb.EasyBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASYBUILD_INSTALLPATH", "/elsewhere")
    monkeypatch.setenv("MODULEPATH", "/elsewhere")
    monkeypatch.setenv("LOADEDMODULES", "gcc/1")
    monkeypatch.setenv("_ModuleTable001_", "x")
    monkeypatch.setenv("KEPT", "yes")
    says("env")
    lines = (tmp_path / "a.log").read_text().splitlines()[1:]
    found = dict(line.partition("=")[::2] for line in lines)
    assert not [
        key for key in found if key.startswith(("EASYBUILD", "MODULE", "_Module", "LOADED"))
    ]
    assert found["KEPT"] == "yes" and found[MARK] == str(easybuild.tree)
    assert not Path(found["XDG_CONFIG_HOME"]).exists()  # no easybuild/config.cfg of the user's


def test_the_command_keeps_to_the_tree(easybuild: eb.EasyBuild) -> None:
    command = easybuild.command("A-1.eb", "--rebuild")
    options = dict(word.partition("=")[::2] for word in command if word.startswith("--"))
    assert command[-2:] == ["--rebuild", "A-1.eb"]
    for name in ("installpath", "buildpath", "tmpdir", "repositorypath"):
        assert options[f"--{name}"].startswith(str(easybuild.tree)), name
    robot = options["--robot"].split(":")
    assert robot[0] == str(easybuild.rendered / "easyconfigs") and robot[1].endswith("/system")
    assert "--parallel" not in options
    more = eb.EasyBuild(easybuild.root, easybuild.tree, easybuild.rendered, False, "027", 7)
    words = more.command("A-1.eb")
    assert "--parallel=7" in words and "--umask=027" in words
    assert not any("/system" in word for word in words if word.startswith("--robot"))


def test_without_lmod_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMOD_CMD", "/nowhere/lmod")
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    with pytest.raises(Missing, match="apt-get install lmod"):
        modules.lmod_command("/opt/mvapich-stack")


# --- its end -------------------------------------------------------------------------------------

# A make with a compiler below it, neither of which ends by itself or listens to SIGTERM.
BUSY = (
    "trap '' TERM INT; (trap '' TERM INT; echo $BASHPID > {0}/below; while :; do sleep 1; done) & "
    "echo $$ > {0}/itself; echo '== building...'; wait"
)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_whatever_ends_us_ends_it_and_all_below(
    says: Run, tmp_path: Path, error: type[BaseException]
) -> None:
    def interrupt(_: str) -> None:
        while not (tmp_path / "below").is_file() or not (tmp_path / "below").read_text():
            time.sleep(0.01)
        raise error

    with pytest.raises(error):
        says(BUSY.format(tmp_path), interrupt)
    assert gone(tmp_path / "itself") and gone(tmp_path / "below")


def test_ctrl_c_reaches_us_alone_and_then_ends_it(tmp_path: Path, easybuild: eb.EasyBuild) -> None:
    """As a terminal does it: the signal goes to our process group, and EasyBuild has its own."""
    with our_run(tmp_path, easybuild) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) != 0
    assert gone(tmp_path / "itself") and gone(tmp_path / "below")


def test_when_we_are_killed_it_ends_and_the_rest_is_ended_by_the_next_run(
    tmp_path: Path, easybuild: eb.EasyBuild
) -> None:
    with our_run(tmp_path, easybuild) as process:
        process.kill()
        process.wait(timeout=30)
    assert gone(tmp_path / "itself")  # by the kernel
    end_leftovers(easybuild.tree)
    assert gone(tmp_path / "below")


def test_a_process_that_left_its_group_is_ended_by_the_next_run(
    says: Run, tmp_path: Path, easybuild: eb.EasyBuild
) -> None:
    says(f"setsid bash -c 'echo $$ > {tmp_path}/away; exec sleep 100 > /dev/null 2>&1' & "
         f"while [ ! -s {tmp_path}/away ]; do sleep 0.01; done")  # fmt: skip
    assert end_leftovers(easybuild.tree) == 1
    assert gone(tmp_path / "away")


def test_a_process_that_stays_behind_with_our_pipe_keeps_nobody_waiting(
    says: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "TICK", 0.1)
    began = time.monotonic()
    says(f"(echo $BASHPID > {tmp_path}/behind; exec sleep 30) & "
         f"while [ ! -s {tmp_path}/behind ]; do sleep 0.01; done")  # fmt: skip
    assert time.monotonic() - began < 25
    assert gone(tmp_path / "behind")


OURS = """
import os, sys
from pathlib import Path
from mvstack.builders.easybuild import command as eb
from mvstack.tree import modules
root, tree, script = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
eb._program = lambda: ["bash", "-c", script, "easybuild"]
eb.run(eb.EasyBuild(root, tree, tree, True), "A-1.eb", root / "a.log", lambda text: None)
"""


def our_run(tmp_path: Path, easybuild: eb.EasyBuild) -> subprocess.Popen[bytes]:
    """A process of ours that builds and does not end, once what is below it has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", OURS, tmp_path, easybuild.tree, BUSY.format(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(2000):
        if all((tmp_path / name).is_file() and (tmp_path / name).read_text()
               for name in ("itself", "below")):  # fmt: skip
            return process
        assert process.poll() is None, "it ended before it began to build"
        time.sleep(0.01)
    raise AssertionError("it did not begin to build")


def test_an_error_quotes_the_end_of_what_the_failed_command_printed(tmp_path: Path) -> None:
    from mvstack.builders.easybuild.command import _failure

    out = tmp_path / "out.txt"
    out.write_text("checking for gcc... gcc\n\nconfigure: error: no libfabric here\n")
    log = tmp_path / "X.log"
    log.write_text(
        "== building...\nERROR: Shell command failed!\n"
        "    full command              ->  ./configure\n"
        f"    output (stdout + stderr)  ->  {out}\n"
        "== FAILED: Installation ended unsuccessfully: shell command './configure' failed\n"
    )
    said = str(_failure("X-1.0.eb", 1, log))
    assert "checking for gcc... gcc | configure: error: no libfabric here" in said
    out.unlink()
    assert "last words" not in str(_failure("X-1.0.eb", 1, log))
