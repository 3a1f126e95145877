"""Installed applications as operations: run by their checks, over ours and over other MPIs.

A program that is linked with an MPI runs over every other one whose libmpi has the same soname
(that of MPICH, MVAPICH and Intel MPI is libmpi.so.12), so nothing is compiled for a peer.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.measure.bench import OPERATIONS, Bench, Wrong, watched
from mvstack.measure.compare import machine
from mvstack.measure.mpis import ALWAYS, BOUND, Mpi, clean
from mvstack.support.errors import InvalidInput, MvstackError
from mvstack.support.processes import run
from mvstack.support.units import one_line
from mvstack.support.words import listed, nearest
from mvstack.test.expected import Check
from mvstack.test.run import TUNING, every_check, run_checks

Plan = dict[str, Any]


def applications(words: list[str], plan: Plan, ranks: int) -> dict[str, Check]:
    """By name and version the check of each application of ``words``. Raises InvalidInput.

    Of a check for several numbers of ranks that for ``ranks`` is taken, or the first.
    """
    checks: dict[str, list[Check]] = {}
    for check in every_check():
        checks.setdefault(check.software, []).append(check)
    there = {f"{one['name']} {one['version']}": one["name"] for one in plan["packages"]}
    there = {title: name for title, name in there.items() if name in checks}
    found = {}
    for word in dict.fromkeys(words):
        titles = [one for one, name in there.items() if word.lower() in (one.lower(), name.lower())]
        if not titles:
            names = sorted({*there.values()})
            what = f"--app {word}: no such application with a check is installed here"
            raise InvalidInput(what, allowed=listed(names) or "none", nearest=nearest(word, names))
        ways = checks[there[titles[0]]]
        wanted = ("ranks", str(ranks))
        found[titles[0]] = next((one for one in ways if wanted in one.values), ways[0])
    return found


def with_applications(benches: list[Bench], plan: Plan, checks: dict[str, Check]) -> list[Bench]:
    """``benches`` that run these applications, too: ours those linked with it, a peer the first's.

    Raises Wrong where none of ours says what its programs load.
    """
    rows = {row["module"]: row for row in plan["mpi"]}
    own = {one.mpi.name: one for one in benches if one.mpi.ours}
    made: list[Bench] = []
    for one in benches if checks and own else ():
        name = one.mpi.name.partition(" over ")[0]
        mine = own.get(name) or next(iter(own.values()))
        row = rows.get(name, rows[mine.mpi.name])
        wants = libmpi(mine).name
        basis = one.mpi, one.folder, one.sizes, one.limit
        made.append(AppBench(*basis, plan, row, checks, wants))
    return made or benches


def libmpi(bench: Bench) -> Path:
    """The libmpi that programs of ``bench`` load. Raises Wrong."""
    said = run(["ldd", bench.folder / "verify"], env=bench.mpi.environment).text
    if found := re.search(r"=> (\S+/libmpi[a-z]*\.so\S*)", said):
        return Path(found[1])
    raise Wrong("its programs load no libmpi")


def instead(mpi: Mpi, libraries: Path) -> list[str]:
    """Shell lines that put ``mpi`` in the place of the one whose module is loaded."""
    taken = (*TUNING, "MVSTACK_BOUND")
    set_ = {x: y for x, y in mpi.environment.items() if x.startswith(taken) or x in ALWAYS}
    before, first = clean(), {"PATH": [""], "LD_LIBRARY_PATH": [str(libraries)]}
    for name, folders in first.items():
        known = before.get(name, "").split(":")
        folders += [x for x in mpi.environment.get(name, "").split(":") if x not in known]
    return [
        f"unset {' '.join(f'${{!{one}@}}' for one in TUNING)}",
        *(f"export {name}={shlex.quote(value)}" for name, value in sorted(set_.items())),
        *(
            f"export {name}={shlex.quote(':'.join(filter(None, folders)))}:${name}"
            for name, folders in first.items()
            if any(folders)
        ),
    ]


@dataclass(frozen=True)
class AppBench(Bench):
    """A Bench that runs applications of ``plan``, too, linked with the MPI of its ``row``."""

    plan: Plan = field(default_factory=dict)
    row: Plan = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    wants: str = ""  # the name of the libmpi that they load

    def on(self, name: str, ranks: int) -> int:
        """On how many ranks it runs."""
        return super().on(name, ranks) if name in OPERATIONS else ranks

    def verify(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> None:
        """See that an operation or application gives what is known of it. Raises Wrong."""
        if name in OPERATIONS:
            super().verify(name, ranks, more)
        else:
            self._figures(name, ranks)

    def measure(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> dict[str, Any]:
        """As that of an operation; instead of sizes an application has its figures. Wrong."""
        if name in OPERATIONS:
            return super().measure(name, ranks, more)
        with self.between_hops() as seen, watched() as used:
            seen["values"] = sorted(self._figures(name, ranks).items())
        if len(machine()) > 1:  # in a job its ranks may be nobody's children
            used["others"] = 0.0
        return {**seen, **used}

    def _figures(self, name: str, ranks: int) -> dict[str, float]:
        library = libmpi(self)
        if library.name != self.wants:
            raise Wrong(f"it has {library.name}, and the program wants {self.wants}")
        line = self.mpi.launch.removesuffix("{program}")
        mpicc = run(
            ["bash", "-c", f"command -v {shlex.quote(self.mpi.cc)}"], env=self.mpi.environment
        )
        row = {
            **self.row,
            "ranks": ranks,
            "launch": f"{line}bash {BOUND} {{program}}",
            "provided": str(Path(os.path.realpath(mpicc.text.strip())).parents[1]),
            "instead": instead(self.mpi, library.parent),
        }
        here = {"scheduler": "local", "starter": "local", "access": []}
        try:
            results = run_checks(
                {**self.plan, **here, "mpi": [row]}, self.folder / "app", [], only=self.checks[name]
            )
        except MvstackError as error:
            raise Wrong(one_line(str(error), 300)) from None
        for case in results["cases"]:
            if case["result"] != "pass":
                raise Wrong(one_line(case["why"], 300))
            if case["figures"]:
                return {f"{one['name']} in {one['unit']}": one["value"] for one in case["figures"]}
        raise Wrong(
            "its check has no figure" if results["cases"] else "it is not installed over it"
        )
