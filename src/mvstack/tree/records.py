"""What is known of a tree: which build made each module, how long it took, from which bytes."""

import json
from pathlib import Path
from typing import Any

from mvstack.support.files import write_atomically


def kept_plan(tree: Path) -> dict[str, Any]:
    """The plan that ``tree`` was built by. Raises OSError or ValueError when there is none."""
    path = tree / "records" / "plan.json"
    plan = json.loads(path.read_text())
    kinds = {"tree": str, "root": str, "mpi": list, "packages": list, "compiler": dict}
    if not (
        isinstance(plan, dict)
        and "release" in plan
        and all(isinstance(plan.get(name), kind) for name, kind in kinds.items())
        and all(isinstance(row, dict) for row in [*plan["mpi"], *plan["packages"]])
    ):
        raise ValueError(f"{path} is no plan")
    return plan


def mpi_contents(plan: dict[str, Any], hashes: dict[str, str]) -> dict[str, str]:
    """Content hash by module of each MPI of ``plan`` that is installed.

    ``hashes`` are :meth:`Records.hashes`: by easyconfig, or by module file where Spack builds.
    """
    found = {}
    for row in plan["mpi"]:
        module = str(row.get("module", ""))
        for key, content in hashes.items():
            if key == row.get("easyconfig") or key.endswith(f"/{module}.lua"):
                found[module] = content
    return found


class Records:
    """The records of one tree, below ``<tree>/records``."""

    def __init__(self, tree: Path) -> None:
        self.folder = tree / "records"

    def plan(self, plan: dict[str, Any]) -> None:
        """Keep the plan that this tree is built by."""
        write_atomically(self.folder / "plan.json", json.dumps(plan, indent=1) + "\n")

    def hashes(self) -> dict[str, str]:
        """Easyconfig → content hash of what is installed; empty when nothing is known."""
        try:
            found = json.loads((self.folder / "nodes.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def built(self, easyconfig: str, content: str) -> None:
        """Note that ``easyconfig`` is installed as of ``content``."""
        known = {**self.hashes(), easyconfig: content}
        write_atomically(self.folder / "nodes.json", json.dumps(known, indent=1) + "\n")

    def forget(self, easyconfig: str) -> None:
        """Note that ``easyconfig`` is installed no more."""
        known = {key: value for key, value in self.hashes().items() if key != easyconfig}
        write_atomically(self.folder / "nodes.json", json.dumps(known, indent=1) + "\n")

    def begin(self, easyconfig: str, content: str) -> None:
        """Note what is being built, so that a run after a kill knows what a module came from."""
        row = {"easyconfig": easyconfig, "hash": content}
        write_atomically(self.folder / "building.json", json.dumps(row) + "\n")

    def begun(self) -> dict[str, str]:
        """What :meth:`begin` noted last: key → hash."""
        try:
            found = json.loads((self.folder / "building.json").read_text())
            return {found["easyconfig"]: found["hash"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def append(self, name: str, row: dict[str, Any]) -> None:
        """Add one row to ``<name>.jsonl``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.jsonl").open("a") as stream:
            stream.write(json.dumps(row) + "\n")
