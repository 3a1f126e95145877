"""What the first start saw of the hardware is said at login, and unknown is not called well."""

from __future__ import annotations

import re


def verdict(host) -> list[str]:
    with host.sudo():
        host.run("systemctl start mvapich-stack-health.service")
    return host.file("/run/mvapich-stack/health").content_string.splitlines()


def test_first_start_looked(host):
    lines = verdict(host)
    assert lines[0].split()[0].rstrip(":") in ("healthy", "unhealthy", "unknown"), lines
    subjects = [line for line in lines[1:] if re.match(r"(ok|bad|unknown) ", line)]
    assert subjects, lines
    # the first word is what the worst of the lines says
    words = {line.split()[0] for line in subjects}
    wanted = "unhealthy" if "bad" in words else "unknown" if "unknown" in words else "healthy"
    assert lines[0].split()[0].rstrip(":") == wanted, lines


def test_processors_were_counted(host, facts):
    lines = verdict(host)
    found = next(line for line in lines if " cores: " in line)
    assert found.startswith("ok"), found
    assert f"{facts['hardware']['cores']} " in found or found.endswith(facts["hardware"]["cores"])


LOGIN = "env -i HOME=$HOME USER=$USER PATH=/usr/bin:/bin bash -lic true 2>&1"


def test_login_says_it(host):
    assert verdict(host)[0] in host.run(LOGIN).stdout


def test_until_it_has_looked_login_says_unknown(host):
    with host.sudo():
        host.run("systemctl stop mvapich-stack-health.service")
        host.run("rm -f /run/mvapich-stack/health")
    assert "unknown: nobody has looked" in host.run(LOGIN).stdout
    assert verdict(host)  # and is looked at again
