"""Concretize a plan's environment, once for what decides it, and hold the answer to the gates."""

import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.builders.spack.clone import REQUIREMENTS
from mvstack.builders.spack.gates import check
from mvstack.builders.spack.gates.mpi import paired
from mvstack.builders.spack.gates.planned import Case, gates_failed, request
from mvstack.builders.spack.repositories import contents
from mvstack.builders.spack.resolve import read
from mvstack.builders.spack.runner import INSIDE, Spack
from mvstack.model.gates import GATES, load_gates
from mvstack.model.meaning import of_paths, of_texts
from mvstack.model.spack import spack_pins
from mvstack.model.spack_lock import Lock
from mvstack.plan.spack import own_repositories, site_repositories
from mvstack.plan.types import Plan
from mvstack.support import hashes
from mvstack.support.errors import BuildFailed
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress

SCHEME = 2  # counts up when this file comes to ask Spack otherwise for the same inputs
LOCK = "spack.lock"
RECORDS = {f"compiler/{LOCK}": "lock-compiler.json", LOCK: "lock.json"}
"""The locks of a tree, below rendered/spack, and what is known of each, below records.

The first is of the compiler, where Spack builds that.
"""


def locks_of(tree: Path) -> list[Path]:
    """The locks that are there in a tree."""
    places = [tree / "rendered" / "spack" / name for name in RECORDS]
    return [place for place in places if place.is_file()]


@dataclass(frozen=True)
class Environment:
    """One environment of a plan; ``what`` names it to people.

    ``file`` is its lock, and ``record`` says what that was made from; ``inputs`` is what decides it
    now.
    """

    spack: Spack
    plan: Plan
    what: str
    file: Path
    record: Path
    inputs: str

    def locked(self, progress: Progress) -> Lock:
        """The lock, solved for now if the one that stands there is of other inputs.

        Raises BuildFailed with the solver's words when nothing fits.
        """
        if self.file.is_file() and known_inputs(self.record) == self.inputs:
            progress.skip("concretize", self.what, "its inputs are as they were")
            return read(self.file)
        with progress.step("concretize", self.what, log=self.spack.log("concretize")) as step:
            answer = self._solved(step.note)
            step.note(f"{len(answer.nodes)} packages")
        return answer

    def _solved(self, note: Callable[[str], None]) -> Lock:
        folder = self.file.parent
        self.file.unlink(missing_ok=True)
        # Spack copies recipes there, and stumbles over what one that was killed left of it.
        shutil.rmtree(folder / ".spack-env" / "repos", ignore_errors=True)
        began = time.monotonic()
        script = str(INSIDE / "concretize.py")
        try:
            self.spack.run("concretize", "-e", str(folder), "python", script, note=note)
        except BuildFailed as error:
            problem = error.problems[0]
            raise BuildFailed(
                "the environment cannot be concretized",
                self.what,
                found=problem.found,
                todo=f"read {problem.where}: a requirement that cannot hold is named with its "
                "file; `mvstack check` warns of externals that Spack does not use",
                outcome="Nothing was installed.",
            ) from None
        answer = read(self.file)
        row = {
            "inputs": self.inputs,
            "seconds": round(time.monotonic() - began, 1),
            "packages": len(answer.nodes),
            "built": len(answer.built()),
            "when": time.strftime("%FT%TZ", time.gmtime()),
        }
        write_atomically(self.record, json.dumps(row, indent=1) + "\n")
        return answer

    @property
    def of_compiler(self) -> bool:
        """Whether it is that of the compiler, not of the stack."""
        return self.file.parent.name == "compiler"

    def differences(self) -> list[dict[str, str]]:
        """What spack-repo/verify.py says of its lock, which is as it was asked for if it is []."""
        asked = request(self.plan, self.of_compiler)
        return list(self.spack.ask("verify", self.file.parent, asked)["differences"])

    def sources(self, packages: Collection[str]) -> dict[str, Any]:
        """What inside/sources.py says of the sources of packages (hashes)."""
        return self.spack.ask("sources", self.file.parent, {"packages": list(packages)})

    def roots(self, answer: Lock) -> dict[str, str]:
        """The hash of the root that stands for each MPI and package of the plan, by its key."""
        builds, packages = paired(Case(answer, self.plan, load_gates()))
        return {wanted.key: node.hash for wanted, node in (*builds, *packages)}


def inputs_of(files: Mapping[str, str]) -> str:
    """The hash of all that decides a concretization: environment, recipes, pins and solver.

    ``files`` are the rendered files of the partition by name. Comments and layout of YAML and of
    recipes do not count.
    """
    repos = [*site_repositories().values(), *own_repositories().values()]
    own = {
        name.removeprefix("spack/"): text
        for name, text in files.items()
        if name.startswith("spack/") and not name.endswith("spack.lock")
    }
    return hashes.of(
        SCHEME,
        of_texts(own),
        [of_paths(contents(one), one) for one in repos],
        [(pin.tag, pin.commit) for pin in spack_pins().repositories.values()],
        REQUIREMENTS.read_text(),
    )


def through_the_gates(environment: Environment, answer: Lock) -> None:
    """Raise CheckFailed, with a problem for each broken gate, when a lock is not as planned.

    The lock stays where it is: it is what the gates' messages speak of. The compiler's passes the
    gates of every lock, for it holds no planned package.
    """
    plan, rules = environment.plan, load_gates()
    broken = check(answer, plan, rules)
    try:
        broken = check(answer, plan, rules, environment.differences())
    except BuildFailed:  # Spack cannot read all that was edited by hand
        if not broken:
            raise
    first = GATES.index("solver") if environment.of_compiler else 0
    if broken := [one for one in broken if GATES.index(one.rule) >= first]:
        raise gates_failed(broken, where=environment.what)


def known_inputs(record: Path) -> str:
    """The inputs that the lock beside ``record`` was made from; "" when it is not known."""
    try:
        return str(json.loads(record.read_text())["inputs"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
