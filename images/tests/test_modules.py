"""The release loads, in every kind of shell."""

from __future__ import annotations

import json

SHOWS = "module load mvapich-stack >/dev/null 2>&1 && module -t list 2>&1 && command -v mpicc"


def loaded(text: str, facts: dict) -> None:
    assert f"mvapich-stack/{facts['release']}" in text
    assert f"{facts['tree']}/software/" in text  # mpicc is the release's


def test_release_is_the_one_that_was_packed(host, facts):
    said = json.loads(host.file("/etc/mvapich-stack/image.json").content_string)
    assert (said["image"], said["release"]) == (
        f"{facts['system']}-{facts['partition']}",
        facts["release"],
    )
    assert (
        said["release_sha256"]
        == host.file("/etc/mvapich-stack/release.sha256").content_string.strip()
    )
    assert said["tree"] == facts["tree"]


def test_login_shell(login, facts):
    done = login(SHOWS)
    assert done.rc == 0, done.stderr
    loaded(done.stdout, facts)


def test_command_of_ssh(host, facts):
    """What a launcher starts on another node: no login shell, no terminal."""
    done = host.run(SHOWS)
    assert done.rc == 0, done.stderr
    loaded(done.stdout, facts)


def test_batch_script(host, facts):
    """A script with `#!/bin/bash` and nothing in it about modules, started from a login."""
    host.run("printf '#!/bin/bash\\n%s\\n' " + repr(SHOWS) + " > /tmp/batch && chmod +x /tmp/batch")
    done = host.run("env -i HOME=$HOME USER=$USER PATH=/usr/bin:/bin bash -lc /tmp/batch")
    assert done.rc == 0, done.stderr
    loaded(done.stdout, facts)


def test_batch_script_of_a_daemon(host, facts):
    """Cron and slurmd start scripts through PAM or with its variables; BASH_ENV does the rest."""
    setting = host.run("grep ^BASH_ENV= /etc/environment").stdout.strip()
    host.run("printf '#!/bin/bash\\n%s\\n' " + repr(SHOWS) + " > /tmp/batch && chmod +x /tmp/batch")
    done = host.run(f"env -i {setting} HOME=$HOME PATH=/usr/bin:/bin /tmp/batch")
    assert done.rc == 0, done.stderr
    loaded(done.stdout, facts)


def test_only_what_opens_the_tree_is_shown_at_first(login):
    done = login("module -t --redirect avail | grep -v : | sort")
    names = {
        line.strip().rstrip("/").partition("/")[0] for line in done.stdout.splitlines() if line
    }
    names.discard("")
    assert "mvapich-stack" in names
    assert not names & {"mvapich", "mpich", "hpcc", "imb"}, names


def test_help_says_how_to_start_a_program(login, facts):
    done = login("module --redirect help mvapich-stack")
    (first, *_) = facts["launch"]
    assert first["launch"].split("{")[0].strip() in done.stdout
