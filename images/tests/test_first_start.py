"""The generalised image started as a machine of its own: new keys, nobody's keys, no past."""

from __future__ import annotations

import json


def test_host_keys_are_new(host):
    found = host.run("cat /etc/ssh/ssh_host_*_key.pub").stdout.splitlines()
    assert found
    with host.sudo():
        made = host.run("stat -c %Y /etc/ssh/ssh_host_ed25519_key").stdout
        booted = host.run("stat -c %Y /proc/1").stdout
    assert int(made) >= int(booted) - 5


def test_machine_has_an_id_of_its_own(host):
    said = host.file("/etc/machine-id").content_string.strip()
    assert len(said) == 32 and int(said, 16)


def test_cloud_init_ended_well(host):
    with host.sudo():
        done = host.run("cloud-init status --wait --format=json || true").stdout
    said = json.loads(done)
    assert said["status"] == "done", said
    assert not said.get("errors"), said


def test_nobody_may_come_in_but_who_started_it(host):
    with host.sudo():
        found = host.run("cat /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys").stdout
        locked = host.run("passwd --status root").stdout.split()[1]
    keys = [line for line in found.splitlines() if line and "no-port-forwarding" not in line]
    assert len(keys) == 1, "one key, the one that this machine was started with"
    assert locked in ("L", "LK")


def test_no_log_tells_of_the_build(host):
    with host.sudo():
        boots = host.run("journalctl --list-boots --quiet | wc -l").stdout.strip()
        old = host.run("find /var/log -type f ! -newer /proc/1 -size +0 2>/dev/null").stdout
    assert boots == "1"
    assert old.strip() == ""


def test_root_disk_is_as_large_as_it_was_asked_for(host, facts):
    size = int(host.run("df --output=size -B1 / | tail -1").stdout)
    assert size > 0.9 * facts["disk_gb"] * 2**30


def test_no_password_lets_anybody_in(host):
    with host.sudo():
        said = host.run("sshd -T").stdout
        shadow = host.run("cut -d: -f2 /etc/shadow").stdout.split()
    assert "permitrootlogin without-password" in said or "permitrootlogin no" in said
    assert all(word.startswith(("!", "*")) for word in shadow)


def test_names_are_found(host):
    assert host.run("getent hosts localhost").rc == 0
    assert host.run("getent hosts $(hostname)").rc == 0
