"""What can go wrong while the launcher sets up: each says what to do; nothing is left half made."""

from __future__ import annotations

import contextlib
import ensurepip
import functools
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from checkout import TOP, Checkout

TOOLS = (
    *("bash", "env", "readlink", "cat", "sha256sum", "mkdir", "rm", "mv", "find", "grep", "sed"),
    *("flock", "sleep", "tail", "id", "mktemp", "stat", "dirname", "setpriv"),
)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory for PATH with all that the launcher calls, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def open_to_others(path: Path) -> None:
    """Let everybody through to ``path``, whose folders pytest closes."""
    for folder in path.parents[:-1]:
        folder.chmod(folder.stat().st_mode | 0o055)


def real_python(folder: Path, name: str) -> None:
    put(folder, name, f'exec "{Path(sys.base_exec_prefix) / "bin/python3"}" "$@"')


def not_ready(checkout: Checkout) -> bool:
    return not (checkout.venv / ".ready").exists()


def test_no_python_and_no_apt(checkout: Checkout, tools: Path) -> None:
    result = checkout.run(PATH=str(tools))
    assert result.returncode == 7
    assert "missing on this machine: Python 3.11 to 3.14 with its venv module" in result.stderr
    assert "found     none" in result.stderr
    assert "MVSTACK_PYTHON=" in result.stderr


def test_no_python_says_the_command_of_apt(checkout: Checkout, tools: Path, tmp_path: Path) -> None:
    put(tools, "apt-get", f"touch {tmp_path}/apt-was-run")
    result = checkout.run("up", "local", PATH=str(tools))
    assert result.returncode == 7
    assert "apt-get update && " in result.stderr
    assert "apt-get install -y python3 python3-venv" in result.stderr
    assert not (tmp_path / "apt-was-run").exists(), "nobody said --yes"
    assert not_ready(checkout)


@pytest.mark.skipif(os.geteuid() != 0, reason="apt is run for root only")
@pytest.mark.parametrize("consent", [{"word": "--yes"}, {"MVSTACK_YES": "1"}])
def test_root_who_said_yes_gets_it_from_apt(
    checkout: Checkout, tools: Path, consent: dict[str, str]
) -> None:
    real_python(tools, "hidden-python3")
    put(tools, "apt-get", 'case "$*" in *" install "*) mv "${0%/*}"/{hidden-,}python3 ;; esac')
    consent = dict(consent)
    words = [word] if (word := consent.pop("word", "")) else []
    result = checkout.run(*words, PATH=str(tools), **consent)
    assert result.returncode == 0, result.stderr
    assert "needs from apt: python3 python3-venv" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="apt is run for root only")
def test_apt_that_fails_is_quoted(checkout: Checkout, tools: Path) -> None:
    put(tools, "apt-get", "echo 'E: Could not resolve host'; exit 100")
    result = checkout.run("--yes", PATH=str(tools))
    assert result.returncode == 7
    assert "| E: Could not resolve host" in result.stderr


def test_a_distribution_without_a_python_that_fits_says_how_to_get_one(
    checkout: Checkout, tools: Path, tmp_path: Path
) -> None:
    """Debian 11: its apt knows Python 3.9 alone, so that no line of apt would help."""
    put(tools, "python3", 'case "$*" in *version_info*) echo "3 9" ;; *) exit 1 ;; esac')
    put(tools, "apt-get", f"touch {tmp_path}/apt-was-run")
    put(tools, "apt-cache", '[[ "$2" == bash ]]')
    result = checkout.run("up", "local", "--yes", PATH=str(tools))
    assert result.returncode == 7 and "found     " in result.stderr and "(3.9)" in result.stderr
    assert "Debian 11" in result.stderr and "MVSTACK_PYTHON=/path/to/python3" in result.stderr
    assert not (tmp_path / "apt-was-run").exists()


def test_python_without_venv_names_the_package(checkout: Checkout, tools: Path) -> None:
    put(tools, "apt-get", "exit 1")
    put(tools, "python3", 'case "$*" in *ensurepip*) exit 1 ;; esac; echo 3 11')
    result = checkout.run(PATH=str(tools))
    assert result.returncode == 7
    assert "apt-get install -y python3.11-venv" in result.stderr


@pytest.fixture
def an_index_with_pip(checkout: Checkout, tmp_path: Path) -> Iterator[str]:
    """An index with the pip that this Python brings, which the checkout then pins."""
    wheel = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    version, digest = wheel.name.split("-")[1], hashlib.sha256(wheel.read_bytes()).hexdigest()
    pin = f"pip=={version} \\\n    --hash=sha256:{digest}\n"
    (checkout.top / "requirements" / "pip.txt").write_text(pin)
    pages = tmp_path / "index" / "pip"
    pages.mkdir(parents=True)
    shutil.copy(wheel, pages)
    (pages / "index.html").write_text(f'<a href="../pip/{wheel.name}#sha256=0">{wheel.name}</a>')
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(pages.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="there is no /usr/bin/python3")
@pytest.mark.parametrize("trouble", ["", "other bytes", "no answer"])
def test_who_is_not_root_needs_no_python3_venv(
    checkout: Checkout, tools: Path, an_index_with_pip: str, trouble: str
) -> None:
    put(tools, "python3", 'case "$*" in *ensurepip*) exit 1 ;; esac; exec /usr/bin/python3 "$@"')
    (tools / "cp").symlink_to("/usr/bin/cp")
    index = "http://127.0.0.1:9/" if trouble == "no answer" else an_index_with_pip
    if trouble == "other bytes":
        pin = checkout.top / "requirements" / "pip.txt"
        pin.write_text(pin.read_text().replace("sha256:", "sha256:0"))
    open_to_others(checkout.top)
    for path in (checkout.top, *checkout.top.rglob("*")):
        os.chown(path, 65534, 65534)
    result = checkout.run(
        prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"],
        PATH=str(tools),
        PIP_INDEX_URL=index,
    )
    said = {"": "set up in", "other bytes": "is not what its hash says", "no answer": "refused"}
    assert said[trouble] in result.stderr
    assert (result.returncode == 0) == (not trouble) != not_ready(checkout)


def test_a_python_that_lacks_a_part_is_passed_over_and_said(
    checkout: Checkout, tools: Path
) -> None:
    lacks = f'case "$*" in *lzma*) exit 1 ;; esac; exec {sys.base_exec_prefix}/bin/python3 "$@"'
    put(tools, "python3", lacks)
    result = checkout.run(PATH=str(tools))
    assert result.returncode == 7 and "without one of bz2, ctypes, lzma" in result.stderr
    named = checkout.run(PATH=str(tools), MVSTACK_PYTHON="python3")
    assert "because   it was built without one of bz2, ctypes, lzma" in named.stderr
    real_python(tools, "python3.12")
    assert checkout.run(PATH=str(tools)).returncode == 0


def test_an_old_python3_is_passed_over(checkout: Checkout, tools: Path) -> None:
    put(tools, "python3", "echo 3 9")
    put(tools, "python3.11", "echo a shim with nothing behind it; exit 127")
    real_python(tools, "python3.12")
    result = checkout.run(PATH=str(tools))
    assert result.returncode == 0, result.stderr
    assert f"with {tools}/python3.12" in result.stderr


@pytest.mark.parametrize("version", ["3 9", "3 99", "2 7"])
def test_only_a_python_that_does_not_fit(checkout: Checkout, tools: Path, version: str) -> None:
    put(tools, "python3", f"echo {version}")
    result = checkout.run(PATH=str(tools))
    assert result.returncode == 7
    assert f"found     {tools}/python3 ({version.replace(' ', '.')})" in result.stderr


@pytest.mark.parametrize(
    ("script", "because"),
    [
        ("echo 3.9", "it is Python 3.9; 3.11 to 3.14 are supported"),
        ("exit 1", "it does not run as Python"),
        (None, "there is no such program"),
    ],
)
def test_a_wrong_python_that_was_named_is_named(
    checkout: Checkout, tmp_path: Path, script: str | None, because: str
) -> None:
    if script:
        # answers the version, and fails the comparison of versions
        put(tmp_path, "mine", f'case "$*" in *exit*) exit 1 ;; esac; {script}')
    result = checkout.run(MVSTACK_PYTHON=str(tmp_path / "mine"))
    assert result.returncode == 7
    assert f"MVSTACK_PYTHON={tmp_path}/mine: this Python cannot be used" in result.stderr
    assert because in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_python_that_only_its_owner_can_run_is_told(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.run().returncode == 0
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    open_to_others(checkout.top)
    real_python(hidden, "python3")
    python = checkout.venv / "bin" / "python"
    python.unlink()
    python.symlink_to(hidden / "python3")
    other = checkout.run(prefix=["setpriv", "--reuid", "65534", "--clear-groups"])
    assert other.returncode == 7
    assert "was made with a Python that nobody cannot run" in other.stderr
    assert "MVSTACK_PYTHON=" in other.stderr


def test_who_can_run_a_program(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    put(closed, "python3", "exit 0")
    asks = 'top=/none; source "$1"; open_to_all "$2"'
    setup = TOP / "requirements" / "setup.sh"
    for program, wanted in (("/bin/bash", 0), (closed / "python3", 1)):
        done = subprocess.run(["bash", "-c", asks, "-", str(setup), str(program)], check=False)
        assert done.returncode == wanted, program


@pytest.mark.parametrize(
    ("printed", "code", "words"),
    [
        # what pip 23.0 printed on ppc64le without gcc
        ("  ERROR: Failed building wheel for psutil", 7, "python3-dev"),
        ("ERROR: No matching distribution found for psutil", 5, "PIP_INDEX_URL"),
    ],
)
def test_a_package_without_a_wheel(tmp_path: Path, printed: str, code: int, words: str) -> None:
    fails = 'watched() { echo "$PRINTED" >"$2"; return 1; }'
    asks = f'top="$2"; source "$1"; {fails}; pip_install x core.txt'
    setup = TOP / "requirements" / "setup.sh"
    environ = {**os.environ, "PRINTED": printed}
    (tmp_path / ".venv").mkdir()
    done = subprocess.run(
        ["bash", "-c", asks, "-", setup, tmp_path], env=environ, capture_output=True, text=True
    )
    assert done.returncode == code
    assert printed in done.stderr and words in done.stderr


def test_other_bytes_than_the_hash_says(checkout: Checkout) -> None:
    wheel = next(checkout.wheels.iterdir())
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    result = checkout.run()
    assert result.returncode == 5
    assert "requirements/core.txt: could not be installed" in result.stderr
    assert "HASHES" in result.stderr.upper()
    assert not_ready(checkout)


def test_an_index_that_does_not_answer(checkout: Checkout) -> None:
    shutil.rmtree(checkout.wheels)
    settings = {"PIP_NO_INDEX": "", "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    result = checkout.run(**settings, PIP_FIND_LINKS="")
    assert result.returncode == 5
    assert "PIP_INDEX_URL" in result.stderr
    assert not_ready(checkout)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_checkout_that_we_may_not_write(checkout: Checkout) -> None:
    open_to_others(checkout.top)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    result = checkout.run(prefix=nobody)
    assert result.returncode == 7
    assert f"{checkout.venv}: cannot be written" in result.stderr
    assert len(result.stderr.splitlines()) == 3, result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
@pytest.mark.parametrize("closed", ["", ".ready-runtime"])  # made at once, or added, under 077
def test_a_venv_that_keeps_others_out_is_told(checkout: Checkout, closed: str) -> None:
    checkout.venv.mkdir()
    (checkout.venv / ".ready-runtime").touch()
    (checkout.venv / closed).chmod(0o600)
    open_to_others(checkout.top)
    other = checkout.run(prefix=["setpriv", "--reuid", "65534", "--clear-groups"])
    assert other.returncode == 7
    assert f"{checkout.venv}: cannot be read by nobody" in other.stderr
    assert f"chmod -R go+rX {checkout.venv}" in other.stderr


class HangingIndex:
    """A package index that takes every call and answers none."""

    def __enter__(self) -> HangingIndex:
        self.socket = socket.create_server(("127.0.0.1", 0))
        port = self.socket.getsockname()[1]
        self.settings = {
            "PIP_NO_INDEX": "",
            "PIP_FIND_LINKS": "",
            "PIP_INDEX_URL": f"http://127.0.0.1:{port}/",
            "PIP_RETRIES": "0",
        }
        return self

    def wait_for_a_call(self) -> None:
        self.socket.settimeout(60)
        self.call = self.socket.accept()[0]

    def __exit__(self, *_: object) -> None:
        self.call.close()
        self.socket.close()


def alive_below(folder: Path) -> list[str]:
    """Command lines of processes that run something of this folder."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            said = (process / "cmdline").read_bytes()
            lines.append(said.replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if str(folder) in line]


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_ends_all_and_goes_on_next_time(
    checkout: Checkout, signal_sent: signal.Signals
) -> None:
    with HangingIndex() as index:
        process = checkout.start("up", **index.settings)
        index.wait_for_a_call()
        process.send_signal(signal_sent)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 130
        assert "the same command goes on" in err
        assert alive_below(checkout.top) == []
    assert not_ready(checkout)
    assert checkout.run().returncode == 0


def test_killed_it_leaves_no_pip_behind_and_the_next_begins_again(checkout: Checkout) -> None:
    with HangingIndex() as index:
        process = checkout.start(**index.settings)
        index.wait_for_a_call()
        process.kill()
        process.wait()
        for _ in range(100):
            if not alive_below(checkout.top):
                break
            time.sleep(0.1)
        assert alive_below(checkout.top) == []
    second = checkout.run()
    assert second.returncode == 0, second.stderr
    assert "making" in second.stderr


def test_power_lost_between_two_steps(checkout: Checkout) -> None:
    assert checkout.run().returncode == 0
    (checkout.venv / ".ready").rename(checkout.venv / ".ready.new")
    result = checkout.run()
    assert result.returncode == 0, result.stderr
    assert "making" in result.stderr
