"""Concretize a plan's environment, once for what decides it, and hold the answer to the gates."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.builders.spack.clone import REQUIREMENTS, Clones, Pins
from mvstack.builders.spack.gates import check
from mvstack.builders.spack.gates.deprecated import deprecated_roots, deprecated_versions
from mvstack.builders.spack.gates.planned import gates_failed
from mvstack.builders.spack.isolated import RECIPES
from mvstack.builders.spack.repositories import contents
from mvstack.builders.spack.resolve import built, read
from mvstack.builders.spack.runner import INSIDE, Spack
from mvstack.model.gates import load_gates
from mvstack.model.spack_lock import Lock
from mvstack.model.yamlfile import parse_yaml, read_yaml
from mvstack.plan.spack import site_repositories
from mvstack.plan.types import Plan
from mvstack.support import hashes
from mvstack.support.errors import BuildFailed, CheckFailed, Problem, Refused
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA

SOLVE = INSIDE / "concretize.py"
SCHEME = 1  # counts up when this file comes to ask Spack otherwise for the same inputs
Note = Callable[[str], None]


@dataclass(frozen=True)
class Locked:
    """The solver's answer for one environment; ``seconds`` is 0 when it was known already."""

    file: Path
    answer: Lock
    inputs: str
    seconds: float

    @property
    def fresh(self) -> bool:
        """Whether the solver was asked just now."""
        return self.seconds > 0


def inputs_of(files: Mapping[str, str], pins: Pins) -> str:
    """The hash of all that decides a concretization: environment, recipes, pins and solver.

    ``files`` are the rendered files of the environment by name. Comments and layout of YAML and of
    recipes do not count.
    """
    repos = [*site_repositories().values(), RECIPES]
    recipes = {path: str(path.relative_to(one)) for one in repos for path in contents(one)}
    return hashes.of(
        SCHEME,
        {name: _meaning(name, text) for name, text in files.items()},
        list(recipes.values()),
        hashes.of_files(list(recipes)),
        [(pin.tag, pin.commit) for pin in pins.both],
        REQUIREMENTS.read_text(),
    )


def environment_files(files: Mapping[str, str]) -> dict[str, str]:
    """Of a partition's rendered files those of its Spack environment, named from its folder."""
    return {
        name.removeprefix("spack/"): text
        for name, text in files.items()
        if name.startswith("spack/") and not name.endswith("spack.lock")
    }


def concretized(
    spack: Spack, folder: Path, inputs: str, record: Path, note: Note, what: str
) -> Locked:
    """The lock of the environment in ``folder``: the one that stands there, or a new one.

    ``what`` names the environment in errors.

    ``record`` says which inputs the lock that stands there was made from. Raises Refused when a
    root's version is deprecated, BuildFailed with the solver's words when nothing fits.
    """
    file = folder / "spack.lock"
    if file.is_file() and known_inputs(record) == inputs:
        return Locked(file, read(file), inputs, 0.0)
    _no_deprecated_root(folder / "spack.yaml", spack.isolated.clones)
    file.unlink(missing_ok=True)
    # Spack copies recipes there, and stumbles over what one that was killed left of it.
    shutil.rmtree(folder / ".spack-env" / "repos", ignore_errors=True)
    began = time.monotonic()
    try:
        spack.run("concretize", "-e", str(folder), "python", str(SOLVE), note=note)
    except BuildFailed as error:
        raise _unsolvable(error, what) from None
    seconds = max(time.monotonic() - began, 0.001)
    answer = read(file)
    row = {
        "inputs": inputs,
        "seconds": round(seconds, 1),
        "packages": len(answer.nodes),
        "built": len(built(answer)),
        "when": time.strftime("%FT%TZ", time.gmtime()),
    }
    write_atomically(record, json.dumps(row, indent=1) + "\n")
    return Locked(file, answer, inputs, seconds)


def _no_deprecated_root(file: Path, clones: Clones) -> None:
    """Refuse at once what the solver refuses after minutes, where the environment allows none."""
    environment = read_yaml(file).data["spack"]
    if environment.get("config", {}).get("deprecated"):
        return
    repos = {**site_repositories(), "mvapich_stack": RECIPES, "builtin": clones.builtin}
    if problems := deprecated_roots(environment.get("specs", []), repos, file):
        raise Refused(*problems, outcome="Nothing was solved for.")


def through_the_gates(locked: Locked, plan: Plan, clones: Clones) -> None:
    """Raise CheckFailed, with a problem for each broken gate, when a lock is not as planned.

    The lock stays where it is: it is what the gates' messages speak of.
    """
    bad = deprecated_versions(locked.answer, {"builtin": clones.builtin, "mvapich_stack": RECIPES})
    broken = check(locked.answer, plan, load_gates(), deprecated=bad)
    if broken:
        raise gates_failed(broken, where=f"{plan.system}/{plan.partition}")


def missing_roots(plan: Plan, parts: list[dict[str, str]], roots: dict[str, str]) -> None:
    """Raise CheckFailed for each part of a plan that is not among the environment's roots."""
    lost = [part for part in parts if part["key"] not in roots]
    if lost:
        raise CheckFailed(
            *(
                Problem(
                    f"no root of the environment is {part['spec']}",
                    f"{plan.system}/{plan.partition}: {part['key']}",
                    todo="render the environment anew (`mvstack render`), or correct the spec",
                )
                for part in lost
            ),
            outcome="Nothing was installed.",
        )


def known_inputs(record: Path) -> str:
    """The inputs that the lock beside ``record`` was made from; "" when it is not known."""
    try:
        return str(json.loads(record.read_text())["inputs"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _meaning(name: str, text: str) -> Any:
    """A file's content without comments, as far as its kind is known."""
    if name.endswith((".yaml", ".yml")):
        return json.dumps(parse_yaml(text, DATA / name).data, sort_keys=True, default=str)
    return hashes.normalised(text) if name.endswith(".py") else text


def _unsolvable(error: BuildFailed, what: str) -> BuildFailed:
    problem = error.problems[0]
    return BuildFailed(
        "the environment cannot be concretized",
        what,
        found=problem.found,
        todo=f"read {problem.where}: a requirement that cannot hold is named with its file",
        outcome="Nothing was installed.",
    )
