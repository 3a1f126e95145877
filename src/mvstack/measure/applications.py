"""Installed applications as operations: run by their checks, over ours and over other MPIs.

A program that is linked with an MPI of MPICH's ABI (https://www.mpich.org/abi) runs over every
other one, so nothing is compiled for a peer.
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
# libmpi of MPICH's ABI: MPICH's, Intel MPI's and MVAPICH's to 3.0; MVAPICH 4.0's; Debian's MPICH's
ABI = ("libmpi.so.12", "libmpi.so.0", "libmpich.so.12")


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
        basis = one.mpi, one.folder, one.sizes, one.limit
        made.append(AppBench(*basis, plan, row, checks, mine))
    return made or benches


def libraries(bench: Bench) -> list[Path]:
    """What programs of ``bench`` load, libmpi first. Raises Wrong."""
    said = run(["ldd", bench.folder / "verify"], env=bench.mpi.environment).text
    found = [Path(one) for one in re.findall(r"=> (/\S+)", said)]
    mpi = [one for one in found if re.match(r"libmpi(ch)?\.so", one.name)]
    if not mpi:
        raise Wrong("its programs load no libmpi")
    return [*mpi, *found]


def linked(library: Path, wants: str, folder: Path) -> Path:
    """The folder in which a program that wants another soname finds ``library``. Raises Wrong.

    That is its own, or ``folder`` with links to it and to what Fortran and C++ have beside it.
    """
    if library.name == wants:
        return library.parent
    if not {library.name, wants} <= {*ABI}:
        raise Wrong(f"it has {library.name}, and the program wants {wants}: another ABI")
    folder.mkdir(exist_ok=True)
    for binding in ("", "fort", "cxx"):
        link = folder / wants.replace(".so", f"{binding}.so")
        link.unlink(missing_ok=True)
        link.symlink_to(library.with_name(library.name.replace(".so", f"{binding}.so")))
    return folder


def added(mpi: Mpi, name: str) -> list[str]:
    """The folders that ``mpi`` has in the variable ``name`` and the machine has not."""
    known = ["", *clean().get(name, "").split(":")]
    return [one for one in mpi.environment.get(name, "").split(":") if one not in known]


def instead(mpi: Mpi, of: Mpi, libraries: list[Path]) -> list[str]:
    """Shell lines that put ``mpi``, with ``libraries``, in the place of the loaded one, ``of``."""
    taken = (*TUNING, "MVSTACK_BOUND")
    set_ = {x: y for x, y in mpi.environment.items() if x.startswith(taken) or x in ALWAYS}
    lines = [f"unset {' '.join(f'${{!{one}@}}' for one in TUNING)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(set_.items())]
    for name, more in (("PATH", []), ("LD_LIBRARY_PATH", libraries)):
        first = ":".join(dict.fromkeys([*map(str, more), *added(mpi, name)]))
        gone = " ".join(map(shlex.quote, added(of, name)))
        lines += [
            f"{name}=:${name}:",  # its UCX would be found before that of another MPI
            f'for one in {gone}; do {name}="${{{name}//:$one:/:}}"; done',
            f'export {name}={shlex.quote(first)}"${name}"',
        ]
    return lines


@dataclass(frozen=True)
class AppBench(Bench):
    """A Bench that runs applications of ``plan``, too, linked with the MPI of its ``row``."""

    plan: Plan = field(default_factory=dict)
    row: Plan = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    of: Bench | None = None  # ours, that they are linked with

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
        of, loaded = self.of or self, libraries(self)
        first = linked(loaded[0], libraries(of)[0].name, self.folder / "app-libraries")
        line = self.mpi.launch.removesuffix("{program}")
        mpicc = run(
            ["bash", "-c", f"command -v {shlex.quote(self.mpi.cc)}"], env=self.mpi.environment
        )
        prefix = Path(os.path.realpath(mpicc.text.strip())).parents[1]
        # what it finds by a RUNPATH with $ORIGIN it does not find beside a link
        own = [one.parent for one in loaded if prefix in Path(os.path.realpath(one)).parents]
        row = {
            **self.row,
            "ranks": ranks,
            "launch": f"{line}bash {BOUND} {{program}}",
            "provided": str(prefix),
            "instead": instead(
                self.mpi, of.mpi, [first, *own] if prefix != Path("/usr") else [first]
            ),
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
