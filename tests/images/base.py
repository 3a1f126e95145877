"""A bare Debian root, made once by mmdebstrap and kept; instances write into an overlay over it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mvstack.image.base import configure

SUITE = "bookworm"
LATER = "deb [trusted=yes] file:/srv/mirror ./\n"
ALWAYS = ("openssh-server", "sudo")


def cache() -> Path:
    """Where roots are kept: MVSTACK_TEST_IMAGES, else a folder of ours in the temporary folder."""
    named = os.environ.get("MVSTACK_TEST_IMAGES", "")
    folder = Path(named) if named else Path(tempfile.gettempdir()) / "mvstack-test-images"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} can be written by others: a root is not taken from there")
    return folder


def base(packages: Sequence[str] = (), later: Sequence[str] = ()) -> Path:
    """The root that has ``packages``; made from Debian's archive when it is not kept yet.

    Flows run without network, so what a flow's provisioning would install from Debian must be in
    its base: the provisioning then finds it installed. What it installs and removes again is
    ``later``: its packages lie in /srv/mirror, which apt is told of by LATER. Raises
    CalledProcessError with what mmdebstrap said.
    """
    wanted = sorted({*ALWAYS, *packages})
    digest = hashlib.sha256(" ".join([SUITE, *wanted, *later]).encode()).hexdigest()[:16]
    folder = cache()
    root = folder / f"{SUITE}-{digest}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if root.is_dir():
            return root
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
        new.chmod(0o755)
        try:
            command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
            if later:
                names = " ".join(later)
                hook = f"apt-get --yes --no-install-recommends --download-only install {names}"
                command += [
                    f'--customize-hook=chroot "$1" {hook}',
                    '--customize-hook=mkdir "$1/srv/mirror"',
                    '--customize-hook=mv "$1"/var/cache/apt/archives/*.deb "$1/srv/mirror"',
                    '--customize-hook=cd "$1/srv/mirror" && dpkg-scanpackages . >Packages',
                ]
            command += [f"--include={','.join(wanted)}", SUITE, str(new)]
            try:
                subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
            except subprocess.CalledProcessError as error:
                error.add_note(error.stderr)
                raise
            if any(
                one.startswith("linux-image") for one in wanted
            ):  # as a cloud's: its disk starts
                configure(new)
            new.rename(root)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return root
