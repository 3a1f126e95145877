"""Generalising: what only the building instance may have is gone from a throw-away Debian."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from images.base import base
from images.chroot import Chroot
from images.kits import PACKAGES
from images.needs import needs
from images.provisioning import kit_folder
from images.world import World

from mvstack.image.audit import audit

LEFT_BEHIND = {  # what the audit must find before and not after
    "/etc/machine-id": f"{'5a' * 16}\n",
    "/var/lib/dbus/machine-id": f"{'5a' * 16}\n",
    "/etc/resolv.conf": "search build.example\nnameserver 192.0.2.53\n",
    "/etc/munge/munge.key": "secret",
    "/var/lib/dkms/mok.key": "secret",
    "/var/lib/amazon/ssm/i-0/session": "x",
    "/etc/sysconfig/network-scripts/ifcfg-eth0": "DEVICE=eth0\nHWADDR=52:54:00:12:34:56\n",
    "/etc/lvm/devices/system.devices": "IDTYPE=sys_wwid IDNAME=naa.6002 DEVNAME=/dev/sda4\n",
    "/root/anaconda-ks.cfg": "rootpw --iscrypted $6$x\n",
    "/etc/nvme/hostid": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n",
    "/etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:f81d4fae\n",
    "/etc/netplan/50-cloud-init.yaml": "network: {}\n",
    "/etc/network/interfaces.d/50-cloud-init": "auto eth0\n",
    "/etc/NetworkManager/system-connections/cloud-init-eth0.nmconnection": "[connection]\n",
    "/etc/systemd/network/10-cloud-init-eth0.network": "[Match]\n",
    "/etc/udev/rules.d/70-persistent-net.rules": 'ATTR{address}=="52:54:00:12:34:56"\n',
    "/etc/sudoers.d/90-cloud-init-users": "debian ALL=(ALL) NOPASSWD:ALL\n",
    "/root/.ssh/authorized_keys": "ssh-ed25519 AAAA builder\n",
    "/root/.bash_history": "export TOKEN=secret\n",
    "/root/.viminfo": "# viminfo\n",
    "/root/.lesshst": ".less-history-file:\n",
    "/home/debian/.ssh/authorized_keys": "ssh-ed25519 AAAA builder\n",
    "/home/debian/.ssh/known_hosts": "build.example ssh-ed25519 AAAA\n",
    "/home/debian/.ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    "/home/debian/.python_history": "import secrets\n",
    "/home/debian/.wget-hsts": "example\n",
    "/var/lib/systemd/random-seed": "4",
    "/var/lib/systemd/credential.secret": "secret",
    "/var/lib/systemd/coredump/core.a.zst": "dump",
    "/var/lib/cloud/instances/i-0/user-data.txt": "#cloud-config\n",
    "/var/lib/cloud/seed/nocloud/user-data": "#cloud-config\n",
    "/var/lib/cloud/data/instance-id": "i-0\n",
    "/var/lib/dhcp/dhclient.eth0.leases": "lease {}\n",
    "/var/lib/dhclient/dhclient.leases": "lease {}\n",
    "/var/lib/NetworkManager/internal-1-eth0.lease": "ADDRESS=192.0.2.7\n",
    "/var/lib/NetworkManager/secret_key": "nm-v2:secret",
    "/var/lib/NetworkManager/timestamps": "[timestamps]\n",
    "/var/crash/vmcore": "dump",
    "/var/log/syslog": "started\n",
    "/var/log/apt/history.log": "Start-Date\n",
    f"/var/log/journal/{'5a' * 16}/system.journal": "LPKSHHRH",
    "/var/mail/root": "From cron\n",
    "/tmp/script_1234.sh": "#!/bin/sh\n",
    "/tmp/packer-shell99": "#!/bin/sh\n",
    "/var/tmp/work/file": "x\n",
    "/var/lib/apt/lists/deb.example_dists_bookworm_InRelease": "Origin: Debian\n",
}
KEPT = {"/home/debian/notes.txt": "mine\n", "/etc/mvapich-stack/image.json": "{}\n"}


@pytest.fixture
def world() -> Iterator[World]:
    needs()
    with World() as made:
        yield made


@pytest.mark.parametrize("cloud", ["qemu", "azure"])  # without cloud-init, without waagent
def test_after_generalising_the_audit_finds_nothing(
    world: World, tmp_path: Path, cloud: str
) -> None:
    chroot = Chroot(world, base(PACKAGES), tmp_path / "chroot")
    for path, text in {**LEFT_BEHIND, **KEPT}.items():
        chroot.put(path, text)
    code, said = chroot.run("sh", "-c", "echo root:secret | chpasswd && ssh-keygen -q -A")
    assert code == 0, said
    for program in ("cloud-init", "waagent"):
        assert not (chroot.root / "usr/bin" / program).exists()
    found = {one.path for one in audit(chroot.root)}
    expected = {path for path in LEFT_BEHIND if not path.startswith(("/var/lib/apt", "/var/tmp"))}
    keys = {"/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key.pub", "/etc/shadow"}
    assert expected | keys | {"/var/tmp/work", "/var/lib/apt/lists"} <= found

    kit = Path("/var/tmp/mvapich-stack-image")  # where a build has it
    shutil.copytree(kit_folder(tmp_path / "kit", [], cloud=cloud), chroot.root / str(kit)[1:])
    code, said = chroot.run("bash", "-c", f"cd {kit} && provision/generalise")
    assert (code, said.splitlines()[-1]) == (0, "generalised"), said
    left = audit(chroot.root)
    assert [one for one in left if one.fails] == []
    assert not {one.path for one in left} & {"/var/lib/apt/lists", "/var/cache/apt"}
    assert not (chroot.root / str(kit)[1:]).exists()
    assert (chroot.root / "etc/machine-id").read_bytes() == b""  # a file, and empty
    for path, text in KEPT.items():
        assert (chroot.root / path[1:]).read_text() == text
    (chroot.root / "run/sshd").mkdir(exist_ok=True)
    code, said = chroot.run("/usr/sbin/sshd", "-t")
    assert code == 1 and "no hostkeys available" in said
    assert chroot.run("ssh-keygen", "-q", "-A")[0] == 0
    assert chroot.run("/usr/sbin/sshd", "-t") == (0, "")  # it makes its own
