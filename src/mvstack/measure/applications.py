"""Installed applications as operations: run by their checks, over ours and over other MPIs.

A program that is linked with an MPI of MPICH's ABI (https://www.mpich.org/abi) runs over every
other one, so nothing is compiled for a peer.
"""

import math
import os
import platform
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.measure.bench import OPERATIONS, Bench, Wrong
from mvstack.measure.compare import machine
from mvstack.measure.mpis import BOUND, Mpi, clean
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing, MvstackError
from mvstack.support.processes import run
from mvstack.support.units import one_line
from mvstack.support.words import listed, nearest
from mvstack.test.expected import Check
from mvstack.test.run import CHECKS, TUNING, every_check, run_checks
from mvstack.tree.records import Records

Plan = dict[str, Any]
# libmpi of MPICH's ABI: MPICH's, Intel MPI's and MVAPICH's to 3.0; MVAPICH 4.0's; Debian's MPICH's
ABI = ("libmpi.so.12", "libmpi.so.0", "libmpich.so.12")


def applications(words: list[str], plan: Plan, ranks: int) -> dict[str, Check]:
    """By name and version the check of each application of ``words``. Raises InvalidInput.

    Of a check for several numbers of ranks that for ``ranks`` is taken.
    """
    checks: dict[str, list[Check]] = {}
    for check in every_check():
        checks.setdefault(check.software, []).append(check)
    there = {title(one): one["name"] for one in plan["packages"] if one["name"] in checks}
    found = dict[str, Check]()
    for word in dict.fromkeys(words):
        meant = [one for one, name in there.items() if word.lower() in (one.lower(), name.lower())]
        if not meant:
            what = f"--app {word}: no such application with a check is installed here"
            close = nearest(word, names := sorted({*there.values()}))
            todo = f"--app {close}" if close else f"mvstack install {plan['system']} {word}"
            raise InvalidInput(what, allowed=listed(names) or "none", nearest=close, todo=todo)
        ways = {dict(one.values).get("ranks", str(ranks)): one for one in checks[there[meant[0]]]}
        if str(ranks) not in ways:
            what = f"--app {word}: its check is not for {ranks} ranks"
            raise InvalidInput(what, allowed=f"--ranks {' or '.join(ways)}")
        found |= dict.fromkeys(meant, ways[str(ranks)])
    return found


def title(package: Plan) -> str:
    """``HPCC 1.5.0``."""
    return f"{package['name']} {package['version']}"


def with_applications(benches: list[Bench], plan: Plan, checks: dict[str, Check]) -> list[Bench]:
    """``benches`` that run these applications, too. Raises Missing without an MPI of ours."""
    if not checks:
        return benches
    if not (own := {one.mpi.name: one for one in benches if one.mpi.ours}):
        raise Missing("applications need the MPI that they are linked with, and it does not load")
    files = [*CHECKS.glob("*.py"), *{one.file for one in checks.values()}]
    rows = [one for one in plan["packages"] if title(one) in checks]
    keys = tuple(one.get("easyconfig") or f"/{one['module']}.lua" for one in rows)
    known = Records(Path(plan["tree"])).hashes().items()
    key = hashes.of(hashes.of_files(sorted(files)), {x: y for x, y in known if x.endswith(keys)})
    return [AppBench(x.mpi, x.folder, x.sizes, x.limit, plan, checks, own, key) for x in benches]


def libraries(bench: Bench) -> list[Path]:
    """What programs of ``bench`` load, libmpi first. Raises Wrong."""
    said = run(["ldd", bench.folder / "verify"], env=bench.mpi.environment).text
    found = [Path(one) for one in re.findall(r"=> (/\S+)", said)]
    if not (mpi := [one for one in found if re.match(r"libmpi(ch)?\.so", one.name)]):
        raise Wrong("its programs load no libmpi")
    return [*mpi, *found]


def linked(library: Path, wants: str, folder: Path) -> Path:
    """``folder``, in which a program finds ``library`` under the soname that it wants.

    So it does what Fortran and C++ have beside it. Raises Wrong for another ABI.
    """
    if library.name != wants and not {library.name, wants} <= {*ABI}:
        raise Wrong(f"it has {library.name}, and the program wants {wants}: another ABI")
    folder.mkdir(parents=True, exist_ok=True)
    for binding in ("", "fort", "cxx"):
        link = folder / wants.replace(".so", f"{binding}.so")
        link.unlink(missing_ok=True)
        link.symlink_to(library.with_name(library.name.replace(".so", f"{binding}.so")))
    return folder


def added(mpi: Mpi, name: str) -> list[str]:
    """The folders that ``mpi`` has in the variable ``name`` and the machine has not."""
    known = ["", *clean().get(name, "").split(":")]
    return [one for one in mpi.environment.get(name, "").split(":") if one not in known]


def instead(mpi: Mpi, of: Mpi, folders: list[Path]) -> list[str]:
    """Shell lines that put ``mpi``, with ``folders``, in the place of the loaded one, ``of``."""
    lines = [f"unset {' '.join(f'${{!{one}@}}' for one in TUNING)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(mpi.settings.items())]
    for name, more in (("PATH", []), ("LD_LIBRARY_PATH", folders)):
        first = ":".join(dict.fromkeys([*added(mpi, name), *map(str, more)]))
        gone = " ".join(map(shlex.quote, added(of, name)))
        lines += [
            f"{name}=:${name}:",  # its UCX would be found before that of another MPI
            f'for one in {gone}; do {name}="${{{name}//:$one:/:}}"; done',
            f'{name}={shlex.quote(first)}"${name}"',
            f'{name}="${{{name}#:}}"; export {name}="${{{name}%:}}"',  # no current folder
        ]
    return lines


@dataclass(frozen=True)
class AppBench(Bench):
    """A Bench that runs applications of ``plan``, too, each linked with one of ``own``."""

    plan: Plan = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    own: Mapping[str, Bench] = field(default_factory=dict)  # by module
    content: str = ""  # of the checks and of the applications, with what they need

    def on(self, name: str, ranks: int) -> int:
        """On how many ranks it runs."""
        return super().on(name, ranks) if name in OPERATIONS else ranks

    def verify(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> float:
        """As that of an operation; an application is verified whenever it is measured. Wrong."""
        if name in OPERATIONS:
            return super().verify(name, ranks, more)
        return float(self.measure(name, ranks)["seconds"])

    def measure(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> dict[str, Any]:
        """As that of an operation; instead of sizes an application has its figures. Wrong."""
        if name in OPERATIONS:
            return super().measure(name, ranks, more)
        with self.watched() as seen:
            seen["values"] = sorted(self._figures(name, ranks).items())
        if len(machine()) > 1:  # in a job its ranks may be nobody's children
            seen |= {"load": None, "others": None}
        return seen

    def _linked_with(self, name: str) -> Bench:
        """The MPI of ours that the application is linked with, for others the first. Wrong."""
        rows = [one for one in self.plan["packages"] if title(one) == name]
        over = [one for one in self.own if {one, "", None} & {x.get("mpi") for x in rows}]
        mine = self.mpi.name.partition(" over ")[0]
        if not over:
            raise Wrong("the MPI that it is linked with does not load")
        return self.own[mine if mine in over else over[0]]

    def _row(self, of: Bench, ranks: int) -> Plan:
        """The plan's row of ``of``, with this MPI in its place: its libmpifort, if any, too."""
        loaded, mpi, bare = libraries(self), self.mpi, "{program}"
        first = linked(loaded[0], libraries(of)[0].name, self.folder / "app-libraries")
        mpicc = run(["bash", "-c", f"command -v {shlex.quote(mpi.cc)}"], env=mpi.environment)
        prefix = Path(os.path.realpath(mpicc.text.strip())).parents[1]
        # what it finds by a RUNPATH with $ORIGIN it does not find beside a link
        beside = [one.parent for one in loaded if prefix in Path(os.path.realpath(one)).parents]
        folders = [first, *(beside if prefix != Path("/usr") else ())]
        names = {one: one.name.partition(".so")[0] for one in (*loaded, *first.iterdir())}
        loads = {x.replace("mpich", "mpi"): os.path.realpath(one) for one, x in names.items()}
        return {
            **next(row for row in self.plan["mpi"] if row["module"] == of.mpi.name),
            "ranks": ranks,
            "peer": mpi.name,
            "launch": f"{mpi.launch.removesuffix(bare)}bash {shlex.quote(str(BOUND))} {bare}",
            "provided": str(prefix),
            "loads": {x: y for x, y in loads.items() if re.match("libmpi|libucp|libfabric", x)},
            "instead": instead(mpi, of.mpi, folders),
        }

    def _figures(self, name: str, ranks: int) -> dict[str, float]:
        row = self._row(self._linked_with(name), ranks)
        here = {"scheduler": "local", "starter": "local", "access": []}
        others = {x["name"] for x in self.plan["packages"] if title(x) == name}
        packages = [x for x in self.plan["packages"] if title(x) == name or x["name"] not in others]
        plan = {**self.plan, **here, "mpi": [row], "packages": packages}
        out = self.folder / f"app.{platform.node()}.{os.getpid()}.{self.checks[name].name}"
        try:
            results = run_checks(plan, out, [], only=self.checks[name])
        except MvstackError as error:
            raise Wrong(one_line(str(error), 300)) from None
        if wrong := [case["why"] for case in results["cases"] if case["result"] != "pass"]:
            raise Wrong(one_line(wrong[0], 400))
        rows = [one for case in results["cases"] for one in case["figures"]]
        named = [f"{x['name']} {'' if x['size'] is None else x['size']}".strip() for x in rows]
        found = {f"{x} in {y['unit']}": y["value"] for x, y in zip(named, rows, strict=True)}
        shutil.rmtree(out, ignore_errors=True)  # of one that failed the files are left
        if not found:
            raise Wrong("its check has no figure")
        if bad := [x for x, y in found.items() if not (math.isfinite(y) and y > 0)]:
            raise Wrong(f"a figure is not above zero: {bad[0]}")
        return found
