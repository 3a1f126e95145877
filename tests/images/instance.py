"""A stand-in for a cloud's instance: a real sshd over a bare Debian, on the loopback of a world.

It is no machine: no kernel and no systemd of its own, no cloud-init, no devices beyond /dev/null
and its like. It knows no source of packages, since none could be
reached. What provisioning writes goes to memory and is gone with it. Kernel settings cannot be
changed from in there (/proc/sys is read-only), since they would be this machine's.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .world import LOOPBACK, World, children, end, processes

USER = "admin"
_START = r"""
top=$1 base=$2 port=$3 user=$4 key=$5
root=$top/root
mount -t tmpfs -o mode=0755 instance "$top"
mkdir "$top/upper" "$top/work" "$root"
mount -t overlay -o "lowerdir=$base,upperdir=$top/upper,workdir=$top/work" instance "$root"
mkdir "$top/bare"
mount --bind "$root" "$top/bare" # the disk alone, without what is mounted on it below
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup" # a machine has them; Slurm looks
mount -t tmpfs -o mode=0755 dev "$root/dev"
for name in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 0666 "$root/dev/${name%:*}" c 1 "${name#*:}"
done
mknod -m 0666 "$root/dev/tty" c 5 0
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=0755 run "$root/run"
mkdir -p "$root/run/sshd"

hostname instance
echo "127.0.0.1 localhost instance" > "$root/etc/hosts"
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
chroot "$root" useradd --create-home --shell /bin/bash "$user"
echo "$user ALL=(ALL) NOPASSWD:ALL" > "$root/etc/sudoers.d/90-cloud-init-users"
mkdir -m 0700 "$root/home/$user/.ssh"
cp "$key" "$root/home/$user/.ssh/authorized_keys"
chroot "$root" chown -R "$user:" "/home/$user/.ssh"
rm -f "$root"/etc/ssh/ssh_host_*
chroot "$root" ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
printf '%s\n' "Port $port" "ListenAddress 127.0.0.1" "UsePAM yes" "PasswordAuthentication no" \
    "HostKey /etc/ssh/ssh_host_ed25519_key" > "$root/etc/ssh/instance_config"
echo "Subsystem sftp /usr/lib/openssh/sftp-server" >> "$root/etc/ssh/instance_config"
exec setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot \
    chroot "$root" /usr/sbin/sshd -D -e -f /etc/ssh/instance_config
"""


class Instance:
    """Use as a context manager: up when the block begins, gone with all its processes after it."""

    def __init__(self, world: World, base: Path, public_key: Path, user: str = USER) -> None:
        self.world, self.base, self.public_key, self.user = world, base, public_key, user
        self.port = world.free_port()
        self._top = tempfile.TemporaryDirectory(prefix="mvstack-instance-")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace = ""

    def __enter__(self) -> Instance:
        arguments = [self._top.name, self.base, str(self.port), self.user, self.public_key]
        spaces = ["--mount", "--pid", "--uts", "--fork", "--kill-child"]
        self._process = self.world.popen(
            ["unshare", *spaces, "bash", "-euc", _START, "instance", *arguments],
            {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            self._log,
        )
        while not self._answers():
            if self._process.poll() is not None:
                said = self.log()
                self.stop()
                raise RuntimeError(f"the instance did not start: {said}")
            time.sleep(0.02)
        self._namespace = str((self.root.parent / "ns/pid").readlink())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def root(self) -> Path:
        """Its file tree, while it is up."""
        assert self._process is not None
        (unshare,) = children(self._process.pid)
        (init,) = children(unshare)
        return Path(f"/proc/{init}/root")

    @property
    def disk(self) -> Path:
        """The file tree that its disk would hold, while it is up."""
        assert self._process is not None
        (unshare,) = children(self._process.pid)
        return Path(f"/proc/{unshare}/root{self._top.name}/bare")

    def log(self) -> str:
        """What sshd said."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    def stop(self) -> None:
        """Cut it off as a crash would: sshd and all sessions are killed at once."""
        if self._process:
            end(self._process)
            self._process = None
            while self._namespace and processes(self._namespace):
                time.sleep(0.01)  # the kernel has killed them and is taking them away
            self._log.close()
            self._top.cleanup()

    def _answers(self) -> bool:
        address = (LOOPBACK, self.port)
        with (
            contextlib.suppress(OSError),
            self.world.inside(),
            socket.create_connection(address, 1) as connection,
        ):
            return connection.recv(4) == b"SSH-"
        return False


def make_key(folder: Path) -> Path:
    """A new key pair without passphrase; the private key's file, the public one has ``.pub``."""
    key = folder / "id_test"
    # PEM: the only form that Packer 1.6.6 and newer ones both read
    command = ["ssh-keygen", "-q", "-t", "rsa", "-b", "3072", "-m", "PEM", "-N", "", "-C", "test"]
    subprocess.run([*command, "-f", str(key)], check=True)
    return key
