"""Folders as a kit unpacks to, for tests of the provisioning alone: without a release."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mvstack.image.kit import PROGRAMS
from mvstack.image.packer import TEMPLATES
from mvstack.support.home import DATA

RENDERED = DATA / "environments/rendered/qemu-debian12/mpich/image/provision.env"

SHELL = ("bash", "-euo", "pipefail", "-O", "inherit_errexit", "-c")  # as run calls it


def kit_folder(
    kit: Path,
    steps: Sequence[str] | Mapping[str, str],
    tree: Path | None = None,
    cloud: str = "qemu",
) -> Path:
    """``kit`` with the repository's provisioning and the rendered provision.env of a Debian image.

    ``steps`` are those that `run` goes through; where they have texts, they are the test's own.
    """
    shutil.copytree(TEMPLATES / "provision", kit / "provision")
    for name, text in steps.items() if isinstance(steps, Mapping) else ():
        (kit / "provision" / name).write_text(text)
    (kit / "tests").mkdir()
    for name in PROGRAMS:
        shutil.copy(DATA / "tests/reframe/src" / name, kit / "tests")
    names = "\n".join(steps)
    text, count = re.subn(
        r"^STEPS=\(.*?^\)", f"STEPS=(\n{names}\n)", RENDERED.read_text(), flags=re.M | re.S
    )
    assert count == 1
    text += f"CLOUD={cloud}\n" + (f"TREE={tree}\n" if tree else "")
    (kit / "image").mkdir()
    (kit / "image/provision.env").write_text(text)
    return kit


def bash(
    script: str, *words: str, folder: Path, given: str | None = None, **environment: str
) -> tuple[int, str, str]:
    """``script`` as a step has it, after lib.sh: its status, what it printed, what it changed.

    ``folder`` is the kit, and keeps the list of changes.
    """
    changes = folder / "changes"
    changes.write_text("")
    library = TEMPLATES / "provision/lib.sh"
    done = subprocess.run(
        [*SHELL, f'source "{library}"\n{script}', "step", *words],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C",
            "FAMILY": "debian",
            "KIT": str(folder),
            "CHANGES": str(changes),
            **environment,
        },
    )
    return done.returncode, done.stdout, changes.read_text()
