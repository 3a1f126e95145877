"""Rows of the record out of Spack: what a lock file resolved, and what a store has built of it."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

from installed_rows import megabytes

from mvstack.model.release import Release
from mvstack.report.seen import Row
from mvstack.support.errors import InvalidInput, Problem, relative

_MPIS = ("mvapich-plus", "mvapich", "mvapich2-gdr", "mvapich2-x", "mvapich2", "mpich")

# a recipe of any other repository gives its version another hash
_OURS = ("builtin", "mvapich_stack", "mvapich_stack_mends")


def rows_of_lock(release: Release, lock: Path, where: str, store: Path | None = None) -> list[Row]:
    """A row for each package of ``release`` that is a root of ``lock``, a spack.lock.

    ``where`` says for what it was concretized (``expanse/cpu``). ``store`` is an install tree of
    Spack: a root that it holds is *built*, with seconds and size. Raises InvalidInput when
    ``lock`` is no lock file.
    """
    specs, roots = _read(lock)
    installed = _installed(store) if store else {}
    rows = []
    for package in release.packages:
        if package.where.builder == "easybuild" or not package.spack:
            continue
        root = next((one for one in roots if _is(specs[one], package.spack)), "")
        if not root:
            continue
        prefix = installed.get(root)
        rows.append(
            Row(
                package=package.name,
                version=package.version,
                builder="spack",
                mpi=f"{_mpi_of(root, specs)} on {where}",
                date=time.strftime("%F", time.gmtime()),
                state="built" if prefix else "resolves",
                of=package.spack,
                seconds=_seconds(prefix) if prefix else None,
                size_mb=megabytes(prefix) if prefix else None,
                bytes="" if specs[root]["namespace"] in _OURS else "not upstream's bytes",
            )
        )
    return rows


def _read(lock: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        data = json.loads(lock.read_text())
        return data["concrete_specs"], [root["hash"] for root in data["roots"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            Problem(
                f"this is not a lock file of Spack's: {error}",
                relative(lock),
                todo="`mvstack lock SYSTEM/PARTITION --profile full --to DIR` writes one",
            )
        ) from None


def _is(spec: dict[str, Any], wanted: str) -> bool:
    """Whether a concrete spec is ``wanted``: name, version and every variant that this names."""
    first, *words = shlex.split(wanted)
    match = re.fullmatch(r"([\w-]+)@=?([\w.-]+)(.*)", first)
    if not match or match.groups()[:2] != (spec["name"], str(spec["version"])):
        return False
    has = spec.get("parameters", {})
    for word in [match.group(3), *words]:
        key, equals, value = word.partition("=")
        if equals:
            # what a partition fills in (cuda_arch={cuda_arch}) has any value
            if "{" not in value and set(value.split(",")) != _values(has.get(key)):
                return False
        elif any(
            has.get(name) is not (sign == "+") for sign, name in re.findall(r"([+~])([^+~]+)", word)
        ):
            return False
    return True


def _values(value: object) -> set[str]:
    """What a lock file has as the value of a variant: one word, or a list of them."""
    return {str(one) for one in (value if isinstance(value, list) else [value])}


def _mpi_of(root: str, specs: dict[str, Any]) -> str:
    """``name@version`` of the MPI beneath; "no MPI" where there is none."""
    seen, left = set(), [root]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        spec = specs[one]
        if spec["name"] in _MPIS:
            return f"{spec['name']}@{spec['version']}"
        left += [edge["hash"] for edge in spec.get("dependencies", [])]
    return "no MPI"


def _installed(store: Path) -> dict[str, Path]:
    """The prefixes of what the store's own index says is installed."""
    index = json.loads((store / ".spack-db" / "index.json").read_text())
    records = index["database"]["installs"]
    return {
        key: Path(record["path"])
        for key, record in records.items()
        if record.get("installed") and record.get("path")
    }


def _seconds(prefix: Path) -> float | None:
    """How long Spack says that it built."""
    try:
        times = json.loads((prefix / ".spack" / "install_times.json").read_text())
    except (OSError, ValueError):
        return None
    return round(float(times["total"]), 1)
