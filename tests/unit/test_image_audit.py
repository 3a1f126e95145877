"""The audit of a generalised image: everything that must not be left in one is found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from image_tree import debian, put

from mvstack.image import packages
from mvstack.image.audit import audit
from mvstack.image.walk import inside
from mvstack.support.errors import Missing

PEM = "-----BEGIN {}PRIVATE KEY-----\nAAAA\n-----END {}PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
LEFT: dict[str, str] = {
    "/etc/ssh/ssh_host_ed25519_key": PEM.format("OPENSSH ", "OPENSSH "),
    "/etc/ssh/ssh_host_ed25519_key.pub": "ssh-ed25519 AAAA",
    "/root/.ssh/authorized_keys": "ssh-ed25519 AAAA build",
    "/home/debian/.ssh/authorized_keys2": "ssh-ed25519 AAAA build",
    "/var/lib/svc/.ssh/authorized_keys": "ssh-ed25519 AAAA build",
    "/root/.ssh/known_hosts": "github.com ssh-ed25519 AAAA",
    "/etc/ssh/ssh_known_hosts": "github.com ssh-ed25519 AAAA",
    "/root/.ssh/config": "",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/var/lib/systemd/random-seed": "x",
    "/boot/efi/loader/random-seed": "x",
    "/var/lib/systemd/credential.secret": "x",
    "/var/lib/dhcp/dhclient.eth0.leases": "lease {}",
    "/var/lib/NetworkManager/internal-1-eth0.lease": "x",
    "/etc/udev/rules.d/70-persistent-net.rules": "x",
    "/etc/netplan/50-cloud-init.yaml": "network: {}",
    "/etc/sysconfig/network-scripts/ifcfg-eth0": "HWADDR=00:0d:3a:11:22:33\n",
    "/etc/systemd/network/10-ib.link": "[Match]\nMACAddress=a0:00:02:10:fe:80:00:11\n",
    "/var/lib/cloud/instances/i-1/boot-finished": "",
    "/var/lib/cloud/data/status.json": "{}",
    "/etc/sudoers.d/90-cloud-init-users": "debian ALL=(ALL) NOPASSWD:ALL",
    "/var/lib/waagent/Certificates.p7m": "x",
    "/var/log/apt/history.log": "Commandline: apt-get install",
    "/var/log/journal/0123/system.journal": "x",
    "/root/.bash_history": "export TOKEN=1",
    "/home/debian/.python_history": "x",
    "/root/.lesshst": "x",
    "/tmp/packer-provisioner-ansible-local/x": "x",
    "/var/tmp/dracut.x": "",
    "/home/packer/.profile": "x",
    "/etc/ssl/private/server.key": PEM.format("", ""),
    "/root/backup/id": PEM.format("RSA ", "RSA "),
    "/home/debian/secret.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
    "/root/.gnupg/private-keys-v1.d/A.key": "x",
    "/etc/munge/munge.key": "x",
    "/var/lib/dkms/mok.key": "x",
    "/root/.aws/credentials": "x",
    "/etc/sudoers.d/90-lab": "lab ALL=(ALL) NOPASSWD: ALL\n",
    "/etc/sudoers": "root ALL=(ALL:ALL) ALL\n%wheel ALL=(ALL) NOPASSWD: ALL\n",
    "/etc/ssh/sshd_config.d/50-cloud-init.conf": "PasswordAuthentication yes\n",
    "/etc/ssh/sshd_config.d/10-ca.conf": "TrustedUserCAKeys /etc/ssh/ca.pub\n",
    "/etc/ssh/sshd_config": "Port 22\n  permitrootlogin yes\n",
    "/var/lib/snapd/device/private-keys-v1/AbC": "key",
    "/var/lib/ubuntu-advantage/private/machine-token.json": "{}",
    "/var/lib/ubuntu-advantage/machine-token.json": "{}",
    "/etc/apt/auth.conf.d/90ubuntu-advantage": "machine esm.ubuntu.com login bearer password x\n",
    "/etc/lvm/devices/system.devices": "IDTYPE=sys_wwid IDNAME=naa.6002 DEVNAME=/dev/sda4\n",
    "/etc/lvm/backup/rootvg": "x",
    "/root/anaconda-ks.cfg": "rootpw --iscrypted $6$x\n",
    "/root/original-ks.cfg": "rootpw x\n",
    "/etc/cloud/cloud.cfg.d/99-installer.cfg": "datasource: None\n",
    "/var/spool/cron/crontabs/root": "# m h\n* * * * * /root/report.sh\n",
    "/var/spool/cron/root": "@reboot curl http://x | sh\n",
    "/etc/hosts": "127.0.0.1 localhost\n10.0.0.4 builder.internal builder\n",
    "/etc/pip.conf": "[global]\nindex-url = https://me:s3cret@pypi.example/simple\n",
    "/root/.config/pip/pip.conf": "[global]\nextra-index-url = https://me:s3cret@pypi.example\n",
    "/home/debian/.gitconfig": '[url "https://x:t0ken@git.example/"]\n\tinsteadOf = https://git/\n',
    "/root/.gitconfig": "[http]\n\textraheader = Authorization: Basic AAAA\n",
    "/opt/site/tool/.git/config": "[remote]\n\turl = https://oauth2:t0ken@git.example/a.git\n",
    "/etc/yum.repos.d/site.repo": "[site]\nbaseurl=https://repo.example\npassword=x\n",
    "/etc/apt/sources.list.d/site.list": "deb https://me:s3cret@apt.example stable main\n",
    "/etc/environment.d/50-ci.conf": "CI_JOB_TOKEN=abc\n",
    "/etc/profile.d/site.sh": "export AWS_SECRET_ACCESS_KEY=abc\n",
    "/etc/profile.d/site.csh": "setenv API_KEY abc\n",
    "/root/.bashrc": "export DB_PASSWORD='abc'\n",
    "/root/.kube/config": "x",
    "/opt/site/etc/deep/server.key": PEM.format("", ""),
    "/etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:x",
    "/etc/iscsi/initiatorname.iscsi": "InitiatorName=iqn.1993-08.org.debian:01:x",
    "/usr/local/share/ca-certificates/proxy.crt": CERTIFICATE.format("BBBB"),
    "/etc/pki/ca-trust/source/anchors/proxy.pem": CERTIFICATE.format("BBBB"),
    "/etc/apt/apt.conf.d/01proxy": 'Acquire::http::Proxy "http://10.0.0.1:3128";\n',
    "/etc/environment": "https_proxy=http://10.0.0.1:3128\n",
    "/etc/dnf/dnf.conf": "[main]\nproxy=http://10.0.0.1:3128\n",
    "/etc/resolv.conf": "search build.example\nnameserver 10.0.2.3\n",
    "/core.123": "x",
    "/var/lib/systemd/coredump/core.bash.0": "x",
    "/swapfile": "x",
    "/etc/cron.d/site": "* * * * * root curl http://x | sh\n",
    "/etc/cron.daily/site": "#!/bin/sh\ncurl http://x\n",
    "/usr/local/etc/server.key": PEM.format("", ""),
    "/usr/share/site/key.pem": PEM.format("RSA ", "RSA "),
    "/boot/key.pem": PEM.format("RSA ", "RSA "),
    "/data/key.pem": PEM.format("RSA ", "RSA "),
    "/etc/sysconfig/rhn/systemid": "<x/>",
    "/etc/pki/entitlement/1.pem": "x",
    "/etc/NetworkManager/system-connections/wifi.nmconnection": "[wifi-security]\npsk=hunter2\n",
    "/etc/fstab": "//srv/x /mnt cifs username=a,password=b 0 0\n",
    "/root/.smbcredentials": "username=a\npassword=b\n",
    "/etc/xdg/pip/pip.conf": "[global]\nindex-url=https://a:b@pypi.example/\n",
    "/root/.env": "TOKEN=abc\n",
    "/srv/app/.env": "SECRET_KEY=abc\n",
    "/opt/app/config.env": "DB_PASSWORD=abc\n",
    "/root/.zshrc": "export TOKEN=abc\n",
    "/etc/bash.bashrc": "export TOKEN=abc\n",
    "/etc/profile": "export TOKEN=abc\n",
    "/etc/systemd/system/x.service": "[Service]\nEnvironment=AWS_SECRET_ACCESS_KEY=abc\n",
    "/etc/systemd/system.conf.d/10.conf": '[Manager]\nDefaultEnvironment="TOKEN=abc"\n',
    "/root/.config/rclone/rclone.conf": "[x]\npass = abc\n",
    "/home/debian/.pgpass": "host:5432:d:u:p\n",
    "/root/.vault-token": "x",
    "/root/.npmrc": "//registry.example/:_authToken=abc\n",
    "/root/.cargo/credentials.toml": "x",
    "/etc/sssd/sssd.conf": "ldap_default_authtok = x\n",
    "/etc/wireguard/wg0.conf": "PrivateKey = abc\n",
    "/etc/chrony/chrony.keys": "1 SHA1 HEX:ABCD\n",
    "/etc/cloud/cloud.cfg.d/99-user.cfg": "chpasswd:\n  list: root:abc\n",
    "/etc/cloud/cloud.cfg.d/curtin.cfg": "datasource: {NoCloud: {userdata: x}}\n",
    "/etc/gitlab-runner/config.toml": "x",
    "/etc/hosts.equiv": "+\n",
    "/root/.rhosts": "+ +\n",
    "/etc/doas.conf": "permit nopass lab\n",
    "/etc/sudoers.bak": "lab ALL=(ALL) NOPASSWD: ALL\n",
    "/etc/shadow.rpmsave": "root:$6$a$b:1::::::\n",
    "/var/lib/hyperv/.kvp_pool_1": "x",
    "/etc/hostname": "builder-17\n",
    "/etc/salt/minion_id": "builder-17",
    "/var/lib/snapd/assertions/asserts-v0/serial/x/active": "x",
    "/etc/multipath/wwids": "# Multipath wwids\n/3600508b4/\n",
    "/etc/site/tool.yaml": "key: ghp_abcdefghijklmnopqrstuvwxyz0123456789\n",
    "/home/debian/notes": "AKIAIOSFODNN7EXAMPLE\n",
    "/etc/site/storage": "AccountKey=abcdefghijklmnop==;\n",
}
HARMLESS: dict[str, str] = {
    "/etc/machine-id": "uninitialized\n",
    "/etc/ssl/certs/site.pem": CERTIFICATE.format("AAAA"),
    "/usr/share/doc/ssh/example.key": PEM.format("", ""),
    "/var/log/lastlog": "",
    "/root/.bashrc": "HISTSIZE=1000\n",
    "/etc/apt/apt.conf.d/50": '// Acquire::http::Proxy "http://x";\nAPT::Install-Recommends "0";\n',
    "/etc/profile.d/which.sh": "# proxy=http://x\nalias which=x\n",
    "/etc/resolv.conf": "# nameserver 10.0.0.1\nnameserver 127.0.0.53\n",
    "/etc/udev/rules.d/60-rdma.rules": 'ATTR{address}=="00:00:00:00:00:00"\n',
    "/etc/iscsi/initiatorname.iscsi": "GenerateName=yes\n",
    "/var/cache/debconf/passwords.dat": "",
    "/etc/hosts": "127.0.0.1 localhost\n127.0.1.1 image\n::1 ip6-localhost\nff02::1 ip6-allnodes\n",
    "/etc/sudoers": "%sudo ALL=(ALL:ALL) ALL\n# %wheel ALL=(ALL) NOPASSWD: ALL\n",
    "/etc/ssh/sshd_config": "#PermitRootLogin yes\nAuthorizedKeysCommand none\n",
    "/etc/pip.conf": "[global]\nindex-url = https://pypi.example:8080/simple\n",
    "/etc/apt/sources.list.d/site.list": "deb https://apt.example:443/x@y stable main\n",
    "/etc/profile.d/agent.sh": '# TOKEN=x\nexport SSH_TOKEN="$(cat token)"\n',
    "/var/spool/cron/atjobs/.SEQ": "00000\n",
    "/opt/mvapich-stack/software/Python/lib/test/keycert.pem": PEM.format("", ""),
    "/etc/cron.d/e2scrub_all": "30 3 * * 0 root run-one e2scrub\n",  # a package's, see OWNED
    "/usr/share/bash/example.key": PEM.format("", ""),
    # compiled at installation: the package owns the source alone
    "/usr/lib/python3/x/__pycache__/ssh.cpython-311.pyc": PEM.format("", ""),
    "/etc/chrony/chrony.keys": "# 1 SHA1 HEX:ABCD\n",
    "/etc/multipath/wwids": "# Multipath wwids, Version : 1.0\n",
    "/etc/hostname": "localhost\n",
    "/etc/fstab": "UUID=x / ext4 errors=remount-ro 0 1\n",
    "/etc/cloud/cloud.cfg": "system_info:\n  default_user:\n    lock_passwd: True\n",
    "/etc/passwd.org": "root:x:0:0::/:/bin/sh\n",
    "/etc/systemd/system/x.service": "[Service]\nEnvironment=LANG=C\nExecStart=/bin/true\n",
}
OWNED = """\
/etc/cron.d/e2scrub_all
/usr/share/bash/example.key
/usr/share/doc/ssh/example.key
/usr/lib/python3/x/ssh.py
"""


def test_a_generalised_tree_passes(tmp_path: Path) -> None:
    root = debian(tmp_path)
    for path, content in HARMLESS.items():
        put(root, path, content)
    put(root, "/var/lib/dpkg/info/bash.list", OWNED)
    assert audit(root) == []


def test_everything_left_behind_is_found_and_fails(tmp_path: Path) -> None:
    root = debian(tmp_path)
    for path, content in LEFT.items():
        put(root, path, content)
    found = audit(root)
    missed = set(LEFT) - {one.path for one in found}
    assert not missed
    assert all(one.fails and one.what and one.why for one in found)
    folders = {"/tmp/packer-provisioner-ansible-local"}
    assert {one.path for one in found} == set(LEFT) | folders
    assert len(found) == len(LEFT) + len(folders)  # each is told once


@pytest.mark.parametrize("path", sorted(LEFT))
def test_each_is_found_alone(tmp_path: Path, path: str) -> None:
    root = debian(tmp_path)
    put(root, path, LEFT[path])
    assert path in {one.path for one in audit(root)}


@pytest.mark.parametrize(
    ("line", "what", "fails"),
    [
        ("root:$y$j9T$abc$def:20778:0:99999:7:::", "password of root", True),
        ("debian::20778::::::", "debian needs no password", True),
        ("ubuntu:!$6$salt$hash:20778::::::", "hash of a password of ubuntu, locked", False),
    ],
)
def test_passwords(tmp_path: Path, line: str, what: str, fails: bool) -> None:
    root = debian(tmp_path)
    put(root, "/etc/shadow", f"{line}\n")
    found = audit(root)
    assert [(one.path, one.what, one.fails) for one in found] == [("/etc/shadow", what, fails)]
    assert "$6$" not in str(found) and "$y$" not in str(found)  # the report is published


def test_passwords_in_other_files(tmp_path: Path) -> None:
    root = debian(tmp_path)
    put(root, "/etc/passwd", "root:x:0:0::/:/bin/sh\npacker:abJnggxhB/yWI:1::/:/bin/sh\n")
    put(root, "/etc/shadow-", "root:$6$a$b:1::::::\n")
    put(root, "/etc/gshadow", "users:$6$a$b::\n")
    assert [(one.path, one.what) for one in audit(root)] == [
        ("/etc/gshadow", "password of the group users"),
        ("/etc/passwd", "account packer"),
        ("/etc/passwd", "password of packer"),
        ("/etc/shadow-", "password of root"),
    ]


@pytest.mark.parametrize(
    "folder",
    [
        *("/var/lib/apt/lists", "/var/cache/apt", "/var/cache/dnf", "/var/cache/yum"),
        *("/var/cache/PackageKit", "/root/.cache"),
    ],
)
def test_caches_are_told_once_and_do_not_fail(tmp_path: Path, folder: str) -> None:
    root = debian(tmp_path)
    put(root, f"{folder}/a/Packages", "x" * 2_000_000)
    put(root, f"{folder}/Release", "x")
    put(root, f"{folder}/lock", "")
    (found,) = audit(root)
    assert (found.path, found.fails) == (folder, False)
    assert found.what.endswith(": 2 files, 2.0 MB")


def test_a_setuid_file_that_no_package_owns_is_found(tmp_path: Path) -> None:
    root = debian(tmp_path)
    put(root, "/usr/local/bin/rootsh", "x", 0o4755)
    put(root, "/usr/local/bin/groupsh", "x", 0o2755)
    put(root, "/usr/local/bin/data", "x", 0o2644)  # no program: nothing runs with the group
    assert [(one.path, one.what) for one in audit(root)] == [
        ("/usr/local/bin/groupsh", "setgid file that no package owns"),
        ("/usr/local/bin/rootsh", "setuid file that no package owns"),
    ]
    shutil.rmtree(root / "var/lib/dpkg")
    assert [one.path for one in audit(root)] == ["/"]
    assert "unknown" in audit(root)[0].why


def test_a_file_that_dpkg_put_aside_is_owned(tmp_path: Path) -> None:
    root = debian(tmp_path)
    put(root, "/usr/bin/su.real", "x", 0o4755)
    put(root, "/var/lib/dpkg/diversions", "/bin/su\n/usr/bin/su.real\nother\n")
    assert audit(root) == []


def test_an_authority_that_stayed_in_the_bundle_is_found(tmp_path: Path) -> None:
    root = debian(tmp_path)
    put(root, "/usr/share/ca-certificates/mozilla/A.crt", CERTIFICATE.format("AA\nAA"))
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    put(root, bundle, CERTIFICATE.format("AAAA"))
    assert audit(root) == []
    put(root, bundle, CERTIFICATE.format("AAAA") + CERTIFICATE.format("BBBB"))
    assert [one.path for one in audit(root)] == [bundle]


def test_links_lead_nowhere_outside(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    outside = put(tmp_path, "outside/shadow", "root:$6$a$b:1::::::\n")
    (root / "etc/shadow").unlink()
    (root / "etc/shadow").symlink_to(outside)
    (root / "var/log/loop").symlink_to("loop")
    (root / "etc/ssl").symlink_to(tmp_path / "outside")
    put(tmp_path, "outside/server.key", PEM.format("", ""))
    assert audit(root) == []
    assert inside(root, "/var/log/loop") is None
    assert inside(root, "/bin/../bin/su") == root / "usr/bin/su"


def test_nothing_is_changed(tmp_path: Path) -> None:
    root = debian(tmp_path)
    before = sorted((str(path), os.lstat(path).st_mtime_ns) for path in root.rglob("*"))
    audit(root)
    assert sorted((str(path), os.lstat(path).st_mtime_ns) for path in root.rglob("*")) == before


def test_packages_of_dpkg(tmp_path: Path) -> None:
    found = {one.name: one for one in packages.installed(debian(tmp_path))}
    assert sorted(found) == [
        *("bash", "dpkg", "linux-image-6.1.0-56-cloud-amd64", "openssh-server"),
    ]
    assert found["bash"].sources == (("bash", "5.2.15-2"),)
    assert found["openssh-server"].sources == (("openssh", "1:9.2p1-2+deb12u3"),)
    kernel = found["linux-image-6.1.0-56-cloud-amd64"]
    assert kernel.sources == (("linux-signed-amd64", "6.1.192+2"), ("linux", "6.1.192-2"))


def test_a_tree_without_os_release_or_packages_is_told(tmp_path: Path) -> None:

    with pytest.raises(Missing, match="os-release"):
        packages.distribution(tmp_path)
    with pytest.raises(Missing, match="no package database"):
        packages.installed(tmp_path)
    with pytest.raises(Missing, match="cannot be read"):
        audit(tmp_path / "none")
