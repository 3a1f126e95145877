"""The Python that packages are built with: the distribution's, laid out as Python does it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mvstack.builders.easybuild import command
from mvstack.builders.easybuild.command import python_for_builds
from mvstack.support.errors import Missing

needs_python = pytest.mark.skipif(
    shutil.which("python3", path=command.SYSTEM_PATH) is None,
    reason="the distribution has no python3",
)


@needs_python
def test_it_sees_the_distributions_packages_and_installs_where_modules_look(
    tmp_path: Path,
) -> None:
    folder = python_for_builds(tmp_path)
    ask = "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_default_scheme())"
    said = subprocess.run(
        [folder / "python", "-c", ask], capture_output=True, text=True, check=True
    ).stdout.split()
    assert said[0] == "/usr" and said[1] in ("venv", "posix_prefix")
    settings = (folder.parent / "pyvenv.cfg").read_text()
    assert "include-system-site-packages = true" in settings


@needs_python
def test_it_is_made_once(tmp_path: Path) -> None:
    folder = python_for_builds(tmp_path)
    (folder / "mark").write_text("")
    assert python_for_builds(tmp_path) == folder and (folder / "mark").exists()


@needs_python
def test_half_of_one_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "build-python" / "lib").mkdir(parents=True)
    assert (python_for_builds(tmp_path) / "python").exists()


def test_without_one_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "SYSTEM_PATH", str(tmp_path))
    with pytest.raises(Missing, match="python3"):
        python_for_builds(tmp_path)
