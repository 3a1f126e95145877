"""Units are on and off as the policy says; nothing failed; nobody listens who should not."""

from __future__ import annotations

from conftest import FACTS, rows


@rows("units", "name")
def test_unit(host, row):
    state = host.run(f"systemctl is-enabled {row['name']}").stdout.strip()
    if state in ("", "not-found") and not row["required"]:
        return
    assert state == row["state"], row["why"]
    if state != "enabled":
        assert not host.service(row["name"]).is_running


def test_no_unit_failed(host):
    found = host.run("systemctl --failed --no-legend --plain")
    assert found.stdout.strip() == ""


def test_kernel_is_the_one_that_modules_were_built_for(host):
    """The newest of the image, not the one that the instance ran while it was made."""
    assert host.run("uname -r").stdout == host.file("/etc/mvapich-stack/kernel").content_string


def test_nothing_else_listens(host):
    allowed = {(row["protocol"], row["port"]): row for row in FACTS["listening"]}
    with host.sudo():
        lines = host.run("ss -H -l -n -t -u -p").stdout.splitlines()
    unexpected = []
    for line in lines:
        protocol, _, _, _, local, *_ = line.split()
        address, _, port = local.rpartition(":")
        row = allowed.get((protocol, int(port)))
        alone = address.strip("[]").partition("%")[0] in ("127.0.0.1", "::1")
        if row is None or not (row["anywhere"] or alone):
            unexpected.append(line)
    assert not unexpected
    assert any(":22" in line for line in lines)  # ssh is seen: the look is a look
