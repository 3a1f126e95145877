"""A checkout of its own for each test of the launcher, with one small package to install.

And `mvstack`, the command line in the process of the test.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from checkout import Checkout
from said import mvstack

__all__ = ["mvstack"]


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One that is set up and whose wheels are gone; not to be changed."""
    folder = tmp_path_factory.mktemp("ready")
    made = Checkout(folder / "checkout", folder / "wheels")
    first = made.run()
    assert first.returncode == 0, first.stderr
    shutil.rmtree(made.wheels)
    return made


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout", tmp_path / "wheels")
