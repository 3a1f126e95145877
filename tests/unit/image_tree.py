"""File trees for the tests of images: a small Debian without a program in it, and helpers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

OS_RELEASE = 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'

STATUS = """\
Package: dpkg
Status: install ok installed
Maintainer: Dpkg Developers <debian-dpkg@lists.debian.org>
Architecture: amd64
Version: 1.21.22
Description: Debian package management system
 a second line: with a colon

Package: openssh-server
Status: install ok installed
Maintainer: Debian OpenSSH Maintainers <debian-ssh@lists.debian.org>
Architecture: amd64
Source: openssh
Version: 1:9.2p1-2+deb12u3
Description: secure shell (SSH) server

Package: bash
Status: install ok installed
Maintainer: Matthias Klose <doko@debian.org>
Architecture: amd64
Source: bash (5.2.15-2)
Version: 5.2.15-2+b13
Description: GNU Bourne Again SHell

Package: linux-image-6.1.0-56-cloud-amd64
Status: install ok installed
Maintainer: Debian Kernel Team <debian-kernel@lists.debian.org>
Architecture: amd64
Source: linux-signed-amd64 (6.1.192+2)
Version: 6.1.192-2
Built-Using: linux (= 6.1.192-2)
Description: Linux 6.1 for x86-64 cloud (signed)

Package: gone
Status: deinstall ok config-files
Maintainer: Nobody <nobody@example.org>
Architecture: amd64
Version: 1.0
Description: removed, its settings left
"""


def put(root: Path, path: str, content: str | bytes = "", mode: int = 0o644) -> Path:
    """A file of a tree, with the folders above it."""
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    place.chmod(mode)
    return place


def debian(root: Path) -> Path:
    """A tree as a generalised Debian image has it: nothing in it that an audit complains of."""
    for folder in ("usr/bin", "tmp", "var/tmp", "var/log/apt", "root", "home", "etc/ssh"):
        (root / folder).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    put(root, "/etc/os-release", OS_RELEASE)
    put(root, "/etc/machine-id")
    put(root, "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
    put(root, "/etc/shadow", "root:*:20778:0:99999:7:::\nsshd:!:20778::::::\nx:!!:1::::::\n", 0o640)
    put(root, "/etc/gshadow", "root:*::\nusers:!::\nmunge:::\n", 0o640)
    put(root, "/var/log/apt/history.log")
    put(root, "/usr/bin/su", "setuid", 0o4755)
    put(root, "/var/lib/dpkg/status", STATUS)
    put(root, "/var/lib/dpkg/info/login.list", "/.\n/bin\n/bin/su\n")
    return root


RPM_SPEC = """\
Name: mvtest
Version: 1.2
Release: 3.el9
Epoch: 2
Summary: a package for a test
License: GPLv2+ and BSD
%description
A package for a test.
%package libs
Summary: its libraries
%description libs
Its libraries.
%install
mkdir -p %{buildroot}/usr/bin
echo test > %{buildroot}/usr/bin/mvtest
%files
%attr(4755, root, root) /usr/bin/mvtest
%files libs
"""


def rpm_family(root: Path, work: Path) -> Path:
    """A tree of an RPM family with a real database, made by rpmbuild and rpm."""
    assert shutil.which("rpmbuild")
    spec = put(work, "mvtest.spec", RPM_SPEC)
    subprocess.run(
        ["rpmbuild", "-bb", "--define", f"_topdir {work}/build", "--target", "noarch", str(spec)],
        check=True,
        capture_output=True,
    )
    put(root, "/etc/os-release", 'ID="almalinux"\nVERSION_ID="9.4"\nPRETTY_NAME="AlmaLinux 9.4"\n')
    database = root / "var/lib/rpm"
    database.mkdir(parents=True)
    packages = sorted(map(str, (work / "build").rglob("*.rpm")))
    subprocess.run(
        ["rpm", "--dbpath", str(database), "-i", "--justdb", "--nodeps", *packages],
        check=True,
        capture_output=True,
    )
    put(root, "/usr/bin/mvtest", "test\n", 0o4755)
    return root
