"""What these worlds need of the machine; a test that lacks it is skipped with the reason."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = {  # program: its package
    "packer": "packer",
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "ip": "iproute2",
    "openssl": "openssl",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "zstd": "zstd",
}


def needs(*modules: str) -> None:
    """Skip where the worlds cannot be made: no root, a program or Python module not installed."""
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces, mounts and a Debian root")
    if lacking := sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)}):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    if lacking := [name for name in modules if not _is_there(name)]:
        pytest.skip(f"not installed in {Path(sys.prefix).name}: {', '.join(lacking)}")
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine allows no namespaces: {tried.stderr.strip()}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it would be in is not there
        return False
