"""Python packages that only images need: installed by the command that first uses one of them."""

import importlib
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from mvstack.support.errors import Missing
from mvstack.support.home import DATA

_INSTALL = """set -euo pipefail; top=$1; source "$top/requirements/setup.sh"; set_up_images"""


def need(*modules: str) -> None:
    """Install the packages for images (requirements/images.txt) unless ``modules`` are there.

    Raises Missing where they cannot be installed: outside a checkout's own .venv, without an index.
    """
    if not (lacking := [name for name in modules if not _there(name)]):
        return
    if sys.prefix == str(DATA / ".venv"):
        # it says what it does, and why it failed
        command = ["bash", "-c", _INSTALL, "mvstack", str(DATA)]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 130:
            raise KeyboardInterrupt
        importlib.invalidate_caches()
        lacking = [name for name in modules if not _there(name)]
    if lacking:
        raise Missing(
            f"Python packages for images are not installed: {', '.join(lacking)}",
            sys.prefix,
            todo=f"{sys.executable} -m pip install 'mvapich-stack[images]'",
        )


def load(name: str) -> Any:
    """The module ``name`` of such a package; see :func:`need`."""
    need(name)
    return importlib.import_module(name)


def _there(name: str) -> bool:
    try:
        return name in sys.modules or find_spec(name) is not None
    except ModuleNotFoundError:  # nor is the package that it is in
        return False
