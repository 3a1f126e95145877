"""`mvstack cache` as a person types it, over a small tree; and over the real one where it is."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from cache_tree import Site
from checks_tree import installed_plan
from install_tree import states
from one_writer import one_writer
from said import Mvstack, Said, runner

from mvstack.cache import gpg

TOP = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path, monkeypatch, tmp_path / "keys")
    made.fill()
    return made


@pytest.fixture
def mvstack(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mvstack:
    return runner(monkeypatch, capsys)


def pushed(site: Site, mvstack: Mvstack) -> Said:
    return mvstack("cache", "push", "azure-hbv4", "--root", site.builder.root, "--to", site.cache)


def test_a_key_is_made_exported_and_trusted_elsewhere(
    site: Site, mvstack: Mvstack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    none = pushed(site, mvstack)
    assert none.code == 4 and "mvstack cache keys create" in none.err
    made = json.loads(mvstack("cache", "keys", "create", "A site of tests", "--json").out)
    assert "can sign" in mvstack("cache", "keys", "list").out
    file = tmp_path / "site.asc"
    assert made["fingerprint"] in mvstack("cache", "keys", "export", "--to", file).out
    told = json.loads(mvstack("cache", "keys", "export", "--json").out)
    assert (told["fingerprint"], told["key"]) == (made["fingerprint"], file.read_text())
    done = pushed(site, mvstack)
    assert done.code == 0 and "4 packages pushed" in done.out and made["fingerprint"] in done.out
    assert "0 packages pushed" in pushed(site, mvstack).out

    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "elsewhere"))
    assert "every package would be refused" in mvstack("cache", "keys", "list").out
    listed = mvstack("cache", "list", site.cache)
    assert listed.code == 0 and "4 refused" in listed.out and "not trusted here" in listed.out
    assert mvstack("cache", "verify", site.cache).code == 1
    wrong = mvstack("cache", "keys", "trust", file, "--fingerprint", "0" * 40)
    assert wrong.code == 3 and made["fingerprint"] in wrong.err
    assert gpg.trusted() == []
    assert mvstack("cache", "keys", "trust", file, "--fingerprint", made["fingerprint"]).code == 0
    assert "4 of 4 entries are whole" in mvstack("cache", "verify", site.cache).out
    rows = json.loads(mvstack("cache", "list", site.cache, "--json").out)
    assert {row["package"] for row in rows} == {"GCC", "MVAPICH", "gmvapich", "HPCC"}
    assert {row["signed_by"] for row in rows} == {made["fingerprint"]}
    told = json.loads(mvstack("cache", "keys", "forget", made["fingerprint"], "--json").out)
    assert told == {"forgotten": made["fingerprint"]}
    assert mvstack("cache", "verify", site.cache).code == 1


def test_a_sites_own_key_is_not_deleted_by_a_slip(mvstack: Mvstack) -> None:
    key = gpg.create("A site of tests", "a@example.org").fingerprint
    said = mvstack("cache", "keys", "forget", key)
    assert said.code == 4 and "--delete-secret" in said.err
    assert gpg.own_key("").fingerprint == key
    assert mvstack("cache", "keys", "forget", key, "--delete-secret").code == 0
    assert gpg.trusted() == []


def test_what_is_damaged_is_named(site: Site, mvstack: Mvstack) -> None:
    gpg.create("A site of tests", "a@example.org")
    pushed(site, mvstack)
    archive = site.files_of("HPCC")[1]
    archive.write_bytes(archive.read_bytes()[:-9])
    said = mvstack("cache", "verify", site.cache)
    assert said.code == 1 and "3 of 4" in said.out and "bytes instead of" in said.err
    install = mvstack(
        *("install", "azure-hbv4", "--root", site.other.root, "--cache", site.cache),
        *("--anyway", "--no-prerequisites"),
    )
    assert install.code == 4 and "HPCC-1.5.0" in install.err and "--build-refused" in install.err


def test_wrong_words_are_answered(site: Site, mvstack: Mvstack, tmp_path: Path) -> None:
    assert mvstack("cache", "list").code == 3
    assert mvstack("cache", "list", tmp_path / "nowhere").code == 7
    (tmp_path / "empty").mkdir()
    assert "0 entries" in mvstack("cache", "list", tmp_path / "empty").out
    assert mvstack("cache", "keys", "trust", tmp_path / "nowhere").code == 3
    for file in ("http://host", "~nobody-of-that-name/site.asc", ""):
        assert mvstack("cache", "keys", "trust", file).code == 3
    assert mvstack("install", "azure-hbv4", "--cache-only", "--root", tmp_path / "r").code == 4
    gpg.create("A site of tests", "a@example.org")
    to_url = mvstack(
        *("cache", "push", "azure-hbv4", "--root", site.builder.root, "--to", "http://localhost/x")
    )
    assert to_url.code == 3 and "only a folder can be pushed to" in to_url.err


@pytest.fixture
def served(site: Site) -> Iterator[str]:
    """The cache behind a web server of this machine."""
    site.cache.mkdir()
    handler = functools.partial(Quiet, directory=str(site.cache))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


def test_a_cache_behind_a_web_server(
    site: Site, mvstack: Mvstack, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    gpg.create("A site of tests", "a@example.org")
    pushed(site, mvstack)
    assert "4 of 4" in mvstack("cache", "verify", served).out
    monkeypatch.setenv("MVSTACK_CACHES", served)
    said = mvstack(
        *("install", "azure-hbv4", "--root", site.other.root, "--anyway", "--cache-only")
    )
    assert said.code == 0, said.err
    assert said.out.count("cached: ") == 4 and site.built() == []
    assert set(states(site.other).values()) == {"present"}


# --- the real tree -------------------------------------------------------------------------------


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: an install root may not be longer than the builder's."""
    folder = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


COMPILERS = ("cc", "gcc", "c++", "g++", "gfortran", "as", "ld", "make")


def test_the_real_stack_runs_in_another_root_without_a_compiler(
    tmp_path: Path, short: Path
) -> None:
    plan = installed_plan()
    if plan is None or plan["system"] != "local" or plan["builder"] != "easybuild":
        pytest.skip("nothing is installed here: `mvstack up local` leaves what this test pushes")
    if len(str(short)) > len(plan["root"]):
        pytest.skip(f"the stack was built below {plan['root']}, which is shorter than {short}")
    calls = tmp_path / "calls"
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for name in COMPILERS:  # discovery asks a compiler for its version; nobody may compile
        real = shutil.which(name)
        script = f'#!/bin/sh\ncase "$*" in *version*) exec {real} "$@";; esac\n'
        (stand_ins / name).write_text(f'{script}echo "{name} $*" >> {calls}\nexit 1\n')
        (stand_ins / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{stand_ins}:{os.environ['PATH']}",
        "PYTHONPATH": str(TOP / "src"),
        "MVSTACK_GNUPGHOME": str(tmp_path / "keys"),
    }

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "mvstack", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert run("cache", "keys", "create", "A site of tests").returncode == 0
    cache = tmp_path / "cache"
    with one_writer():  # another test may install below that root meanwhile
        done = run("cache", "push", "local", "--root", plan["root"], "--to", cache)
    assert done.returncode == 0, done.stderr
    done = run("install", "local", "--root", short, "--cache", cache, "--cache-only")
    if "is in no cache" in done.stderr:
        pytest.skip("what is installed here is not of this version's plan; `mvstack up local`")
    assert done.returncode == 0, done.stderr
    # the module launch-guard is compiled where it can be; here it cannot, and all else goes on
    called = calls.read_text().splitlines() if calls.exists() else []
    assert [line for line in called if "launch_guard.c" not in line] == []

    tree = short / Path(plan["tree"]).relative_to(plan["root"])
    for path in (tree / "modules").rglob("*.lua"):
        assert plan["tree"] not in path.read_text()
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sed", "hostname", "uname", "readlink", "basename", "dirname", "env"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    script = f"""
source {tree}/init/bash
module load mvapich-stack
! command -v gcc
module load imb 2>/dev/null
if command -v IMB-MPI1
then {plan["mpi"][0]["launch"].split()[0]} -n 2 IMB-MPI1 -npmin 2 -iter 2 -msglog 2:3 PingPong
else {plan["mpi"][0]["launch"].split()[0]} -n 2 osu_latency -m 4:8 -i 2
fi
"""
    command = ["env", "-i", f"PATH={tools}", "HOME=/nonexistent", f"{tools}/bash", "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stderr
    assert str(tree) in ran.stdout and "8 " in ran.stdout, ran.stdout
