"""Tests inside an image that was started: pytest-testinfra over ssh, as the image's default user.

`mvstack image test` runs them; by hand, against any instance of the image:

    MVSTACK_IMAGE_FACTS=…/image/image.json pytest images/tests --hosts=ssh://NAME --ssh-config=FILE

What is expected stands in image.json, which is rendered from the same tables as the image.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

FACTS = json.loads(Path(os.environ["MVSTACK_IMAGE_FACTS"]).read_text())


def rows(table: str, name: str) -> Any:
    """A test for each row of a table, called by the row's ``name``."""
    return pytest.mark.parametrize(
        "row", FACTS[table], ids=[str(row[name]) for row in FACTS[table]]
    )


@pytest.fixture(scope="session")
def facts() -> dict[str, Any]:
    return FACTS


@pytest.fixture
def login(host: Any) -> Any:
    """Runs a line in a login shell that inherits nothing, as after `ssh` with a terminal."""

    def run(line: str) -> Any:
        words = "env -i HOME=$HOME USER=$USER SHELL=/bin/bash PATH=/usr/bin:/bin bash -lc "
        return host.run(words + shlex.quote(line))

    return run
