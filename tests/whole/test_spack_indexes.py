"""A real Spack over two checkouts of one repository that share an install root."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from spack_here import run, spack_here
from test_spack_builder import RECIPES

PACKAGE = """
from spack.package import *


class OnlyThere(Package):
    tags = ["only-there"]
    version("1.0")
"""


def test_the_indexes_of_one_checkout_are_not_taken_for_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where its files are older: Spack goes by their dates, for all of one namespace."""
    ours = spack_here(tmp_path / "ours")
    assert "only-there" not in run(ours, "tags", "only-there").stdout

    there = shutil.copytree(RECIPES, tmp_path / "there" / "spack_repo" / "mvapich_stack")
    file = there / "packages" / "only_there" / "package.py"
    file.parent.mkdir()
    file.write_text(PACKAGE)
    os.utime(file, (0, 0))
    monkeypatch.setattr("mvstack.plan.spack.RECIPES", there)
    theirs = spack_here(tmp_path / "theirs")
    done = run(theirs, "tags", "only-there")
    assert done.stdout.split()[-1] == "only-there", done.stdout + done.stderr
