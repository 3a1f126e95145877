"""The distribution's Python, as packages are built with it.

Debian's own installs packages into ``local/lib/python3.11/dist-packages``, where modules do not
look for them. A virtual environment of it, which sees what the distribution has installed, puts
them into ``lib/python3.11/site-packages`` as Python does everywhere else. What is built with it
runs with the distribution's ``python3``.
"""

import shutil
from pathlib import Path

from mvstack.support.errors import Missing
from mvstack.support.processes import run

# Not what a user has on PATH before it: a pyenv, or the environment that runs this very program.
PATH = "/usr/bin:/bin"


def for_builds(tree: Path) -> Path:
    """The folder whose ``python`` builds packages of ``tree``; made when it is not there.

    Raises Missing when the distribution has no Python, or none that can make an environment.
    """
    folder = tree / "build-python"
    if (folder / "bin" / "python").exists():
        return folder / "bin"
    python = shutil.which("python3", path=PATH)
    if python is None:
        raise Missing("the distribution has no python3", todo="apt-get install python3")
    shutil.rmtree(folder, ignore_errors=True)
    command = [python, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)]
    done = run(command)
    if not done.ok:
        shutil.rmtree(folder, ignore_errors=True)
        raise Missing(
            "the distribution's Python cannot make an environment to build packages in",
            python,
            found=(done.errors or done.text).strip()[-500:],
            todo="apt-get install python3-venv",
        )
    return folder / "bin"
