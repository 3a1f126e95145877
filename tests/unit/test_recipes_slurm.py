"""When the stand-alone tests of the recipes let srun start ranks."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from recipe_loaded import loaded
from recipes.reading import RECIPES


class Tool:
    """A program below Slurm's prefix, or found on PATH: what sinfo says."""

    said = ""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *_: str, **__: Any) -> str:
        return self.said


class Spec(dict[str, Any]):
    """A spec whose ranks srun starts."""

    variants = {name: types.SimpleNamespace(value="pmi2") for name in ("pmi", "pmi_version")}  # noqa: RUF012

    def satisfies(self, text: str) -> bool:
        return text in ("process_managers=slurm", "models=mpi")


def launch_of(folder: str, said: str) -> Any:
    """How the recipe in ``folder`` starts ranks where sinfo says ``said``."""
    place = next(Path(RECIPES).parents[1].glob(f"*/packages/{folder}/package.py"))
    module = loaded(place)
    tool = type("Tool", (Tool,), {"said": said})
    vars(module).update(Executable=tool, which=lambda name, **_: tool(name))
    package = getattr(module, "".join(part.capitalize() for part in folder.split("_")))()
    if folder != "osu_micro_benchmarks":
        package.srun.__func__.__globals__["Executable"] = tool
    package.spec, package.prefix = Spec(), types.SimpleNamespace(bin="/mpi/bin")
    own = types.SimpleNamespace(prefix=package.prefix, package=None, satisfies=Spec().satisfies)
    package.spec.update(slurm=own, mpi=own)
    return package.launcher(2) if folder == "osu_micro_benchmarks" else package.launch()


def could(folder: str, said: str) -> bool:
    try:
        return bool(launch_of(folder, said))
    except Exception as error:
        assert "has no node to" in str(error)
        return False


@pytest.mark.parametrize("folder", ["mvapich", "mvapich2", "osu_micro_benchmarks"])
@pytest.mark.parametrize(
    ("sinfo", "answer"),
    [
        ("debug* up idle\n", True),
        ("gpu up allocated\ncpu* up mixed\n", True),
        ("cpu* up allocated\n", False),
        ("cpu* up idle*\n", False),  # the node does not respond
        ("cpu* down idle\n", False),
        ("gpu up idle\ncpu* up allocated\n", False),  # not where srun would go
        ("", False),
    ],
)
def test_it_needs_a_free_node_that_responds_in_the_default_partition(
    monkeypatch: pytest.MonkeyPatch, folder: str, sinfo: str, answer: bool
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert could(folder, sinfo) is answer


@pytest.mark.parametrize("folder", ["mvapich", "mvapich2", "osu_micro_benchmarks"])
def test_inside_an_allocation_it_can(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert could(folder, "cpu* up allocated\n")
