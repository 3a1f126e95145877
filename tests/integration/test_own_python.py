"""Packages that come as wheels are left out where the machine has another Python than theirs."""

from __future__ import annotations

import pytest

from mvstack.install import local, stages
from mvstack.plan.types import Extent

WHEELS = [
    "cffi-2.1.1-cp311-cp311-manylinux_2_17_x86_64.whl",
    "torch-2.9.1+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
]
OF_ANY = [
    "cryptography-50.0.2-cp311-abi3-manylinux_2_17_x86_64.whl",
    "six-1.17.0-py2.py3-none-any.whl",
    "torch-2.9.1.tar.gz",
]


def test_the_python_of_a_wheel() -> None:
    assert local.python_of_wheels(WHEELS) == {"3.11"}
    assert local.python_of_wheels(OF_ANY) == set()
    assert local.python_of_wheels(["numpy-2.3.0-cp314-cp314-musllinux_1_2_x86_64.whl"]) == {"3.14"}


def test_the_machine_is_asked() -> None:
    major, minor = map(int, local.own_python().split("."))
    assert (major, minor) >= (3, 6)


@pytest.mark.parametrize("own", ["3.13", ""])
def test_tensorflow_of_another_python_is_left_out(own, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stages, "own_python", lambda: own)
    system, [partition] = stages.load("local")
    extent = Extent("full", frozenset({"TensorFlow", "Horovod"}))
    plan = stages.plan_for(system, partition, None, tmp_path, extent=extent)
    said = {row["module"]: row["because"] for row in plan.left_out}
    assert said["tensorflow/2.14.1"].startswith("its wheels are for Python 3.11; this machine has")
    assert said["horovod/0.28.1-tensorflow-2.14.1"].startswith("needs tensorflow/2.14.1")
