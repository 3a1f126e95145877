"""What the tool costs: the program that measures it still fits what it measures."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

MEASURE = Path(__file__).resolve().parents[2] / "benchmarks" / "measure.py"


def measure():
    spec = importlib.util.spec_from_file_location("measure_the_tool", MEASURE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


def test_what_it_calls_of_ours_is_there() -> None:
    """It runs on a quiet machine alone, so nobody would see that a function was renamed."""
    module = measure()
    for node in ast.walk(ast.parse(MEASURE.read_text())):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "stages":
            assert hasattr(module.stages, node.attr), node.attr


def test_a_ratio_leaves_out_what_both_hold() -> None:
    module = measure()
    rows = [module.figure(name, [took]) for name, took in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
    assert [one.ratio for one in module.beside(rows, "b", "c", "a")] == [None, 2.0, None]


def test_modules_as_easybuild_alone_writes_them(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("Core/mvapich-stack/1.lua", "MPI/hpcc/1.5.0.lua"):
        (tree / "modules" / name).parent.mkdir(parents=True)
        (tree / "modules" / name).write_text(
            "help([==[\nUsage\n=====\nours\n\n\nMore information\n]==])\n"
            f'use("{tree}/modules/MPI")\n'
            'setenv("EBDEVELHPCC", "x")\n\nfamily("mpi")\n'
        )
    plain = measure().without_ours(tree, tmp_path)
    (found,) = plain.rglob("*.lua")
    text = found.read_text()
    assert text.endswith('setenv("EBDEVELHPCC", "x")\n')
    assert "ours" not in text and "More information" in text
    assert f'use("{plain}/MPI")' in text
