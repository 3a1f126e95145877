"""Which checks there are, found by reading their files and not by ReFrame.

ReFrame only warns about a check file that it cannot import, and exits 0: so what it ran is compared
with this list. Nothing is imported here; a check's parameters and tags are read from its text, so
they must be literals.
"""

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.support.errors import InvalidInput, relative
from mvstack.support.files import read_python


@dataclass(frozen=True)
class Check:
    """One check with one value of each of its parameters.

    ``values`` are the parameters as ReFrame prints them, so that the two can be compared.
    ``software`` is the package that it is of; it runs where the plan has that. "": everywhere.
    ``needs`` is what the plan must say of the MPI build, or of a job. "": nothing.
    """

    name: str
    values: frozenset[tuple[str, str]]
    tags: frozenset[str]
    file: Path
    description: str
    software: str = ""
    needs: str = ""

    def runs_over(self, mpi: dict[str, Any], plan: dict[str, Any]) -> bool:
        """Whether it is for the MPI build ``mpi`` of ``plan``; jobs as settings.py has them."""
        packages = plan.get("packages", [])
        there = [one["name"] for one in packages if one.get("mpi") in (mpi["module"], "", None)]
        job = {} if plan.get("scheduler") == "local" else plan.get("job", {})
        needed = {**job, **mpi}.get(self.needs) if self.needs else True
        return self.software in ("", *there) and bool(needed) and needed != "none"


def expected_checks(folder: Path, tags: list[str]) -> list[Check]:
    """All checks in ``folder`` that have one of ``tags``; all there are when it is empty.

    :raises InvalidInput: a parameter or the tags of a check are not literals.
    """
    found: list[Check] = []
    for path in sorted([*folder.glob("*.py"), *folder.glob("apps/*.py")]):
        classes = [node for node in read_python(path).body if isinstance(node, ast.ClassDef)]
        for node in classes:
            if any(ast.unparse(one).endswith("simple_test") for one in node.decorator_list):
                found += _variants(node, path)
    return [check for check in found if not tags or check.tags & set(tags)]


def _variants(node: ast.ClassDef, path: Path) -> list[Check]:
    """One :class:`Check` for each combination of the parameters of the class."""
    parameters: dict[str, list[Any]] = {}
    tags: frozenset[str] = frozenset()
    words = {"software": "", "needs": ""}
    for statement in node.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        name, value = statement.targets[0].id, statement.value
        if name == "tags":
            tags = frozenset(_literal(value, path))
        elif name in words:
            words[name] = str(_literal(value, path))
        elif (
            isinstance(value, ast.Call)
            and value.args
            and ast.unparse(value.func).endswith("parameter")
        ):
            parameters[name] = list(_literal(value.args[0], path))
    return [
        Check(
            name=node.name,
            values=frozenset(
                (key, str(item)) for key, item in zip(parameters, combination, strict=True)
            ),
            tags=tags,
            file=path,
            description=(ast.get_docstring(node) or "").split("\n")[0],
            **words,
        )
        for combination in itertools.product(*parameters.values())
    ]


def _literal(node: ast.expr, path: Path) -> Any:
    try:
        value = ast.literal_eval(node)
        iter(value)
        return value
    except (TypeError, ValueError):
        raise InvalidInput(
            "a check's parameters and tags must be literals",
            where=f"{relative(path)}:{node.lineno}",
            found=ast.unparse(node),
            because="they are read without running the file, to know what should run",
            todo="write the values out",
        ) from None
