#!/usr/bin/env python3
"""Builds and runs a covering set of a Spack recipe, and writes down what happened.

    tests/spack/cover.py --spack SPACK --work FOLDER [--accept-hash mvapich@4.0=SHA256]
                         [--only ID …] [--concretize-only] [--lock FILE]
                         [--suite TARBALL --suite-folder FOLDER …]

SPACK is a Spack whose configuration knows this repository (`spack repo add`), a compiler, and a
mirror with the tarballs. For each row of the set (covering.yaml beside this file): concretize,
install, `spack test run` (beside a Slurm of its own where the row says so), and one line in the
record (spack-repo/record.jsonl), from which the table in the documentation is made.

What is in the record was seen: a row that was not built says so. A line holds
    package, version, id, asked    what was asked of Spack
    spec                           its answer: the concrete root
    state                          how far it came: refused, concretizes, built or run; "" for
                                   what neither concretized nor was to be refused
    outcome                        "as asked", or what went wrong
    hash, packages                 of the answer
    seconds                        of the installation by Spack's own clock (ccache may have helped)
    source, sha256                 whose bytes were built; empty when nothing was
    printed                        what the stand-alone test printed, in short
    recipe                         hash of the recipe's package.py; of what was built without its
                                   conflicts and requirements
    date
With --suite what ran is put through folders of MPICH's test suite, out of that source, on at most
two ranks (tests/lab/mpich-suite says more): what is no known failure fails the row.
With --accept-hash a tarball that is not upstream's is built through a repository of its own; its
lines say "not upstream's bytes". Exit status 1 when a row went otherwise than the set says.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlay import make_overlay, recipe_hash
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
LOOPBACK = HERE.parent / "slurm" / "loopback"
SUITE = HERE.parent / "lab" / "mpich_suite.py"
# `mpiexec -n N PROGRAM` by mpirun_rsh, which wants a host for each rank.
BY_RSH = """#!/bin/sh
shift; ranks=$1; shift
exec {rsh} -np $ranks $(yes $(uname -n) | head -n $ranks) "$@"
"""
# Lines of the tests' output that tell something; nothing else of it goes into the record.
TELLING = re.compile(
    r"^((?:fortran )?world of \d+|any source of \d+|MVAPICH2? (?:Version|Device)\s*:.*)$"
)
PART = re.compile(r"^\w+::(test_\w+) \.\. (PASSED|FAILED|SKIPPED)$", re.M)


@dataclass(frozen=True)
class Row:
    """One row of a covering set; the fields are explained in covering.yaml."""

    id: str
    spec: str
    state: str
    slurm: bool = False
    because: str = ""
    why: str = ""


def read_set(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a set, and its packages.yaml; TypeError for a row's field that is none."""
    given = YAML(typ="safe").load(path.read_text())
    rows = [Row(**{**row, "spec": " ".join(row["spec"].split())}) for row in given["rows"]]
    return rows, given.get("packages", {})


def said_in_short(output: str) -> str:
    """The telling lines of the stand-alone tests' output, each once, blanks folded."""
    lines = (" ".join(line.split()) for line in output.splitlines())
    return "; ".join(dict.fromkeys(line for line in lines if TELLING.match(line)))


def problem_of(row: Row, answer: dict[str, Any]) -> str:
    """Why a concretization is not what the row says; "" when it is."""
    error = answer.get("error", "")
    if row.state == "refused":
        if not error:
            return "was not refused"
        folded = " ".join(error.split())
        return "" if row.because in folded else f"refused for another reason: {folded[:300]}"
    return f"does not concretize: {' '.join(error.split())[:300]}" if error else ""


def replace_lines(record: Path, lines: list[dict[str, Any]]) -> None:
    """Put the lines into the record, each in the place of an older one of its package and id."""
    kept = {}
    if record.exists():
        for text in record.read_text().splitlines():
            old = json.loads(text)
            kept[(old["package"], old.get("id", text))] = old
    for line in lines:
        kept[(line["package"], line["id"])] = line
    text = "".join(json.dumps(kept[key], sort_keys=True) + "\n" for key in sorted(kept))
    partial = record.with_name(record.name + ".partial")
    partial.write_text(text)
    partial.replace(record)


class Machine:
    """A Spack on this machine, with a configuration scope and folders below `work`."""

    def __init__(
        self,
        spack: str,
        work: Path,
        accepted: dict[tuple[str, str], str],
        packages: dict[str, Any],
    ) -> None:
        self.work, self.accepted = work, accepted
        scope = work / "scope"
        scope.mkdir(parents=True, exist_ok=True)
        (scope / "config.yaml").write_text(f"config:\n  test_stage: {work / 'tests'}\n")
        with (scope / "packages.yaml").open("w") as out:
            YAML().dump({"packages": packages}, out)
        if accepted:
            overlay = make_overlay(work / "accepted", accepted)
            (scope / "repos.yaml").write_text(f"repos:\n  {overlay.name}: {overlay}\n")
        self.spack = [spack, "-C", str(scope)]

    def call(self, *words: str, log: str = "", before: tuple[str, ...] = ()) -> tuple[int, str]:
        """Exit status and output of `spack WORD…`; the output is kept in a file `log` too."""
        done = subprocess.run(
            [*before, *self.spack, *words],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if log:
            (self.work / log).write_text(done.stdout)
        return done.returncode, done.stdout

    def concretize(self, rows: list[Row]) -> dict[str, dict[str, Any]]:
        """The answers by id; those of an earlier call are kept when the same was asked."""
        answers = {}
        for row in rows:
            path = self.work / f"{row.id}.answer.json"
            with suppress(FileNotFoundError):
                kept = json.loads(path.read_text())
                if kept["asked"] == row.spec:
                    answers[row.id] = kept
        wanted = [[row.id, row.spec] for row in rows if row.id not in answers]
        if wanted:
            asked = self.work / "specs.json"
            asked.write_text(json.dumps(wanted))
            script = str(HERE / "concretize_all.py")
            code, output = self.call("python", script, str(asked), str(self.work))
            if code:
                raise SystemExit(f"cover: concretizing failed\n{output}")
        for name, _ in wanted:
            answers[name] = json.loads((self.work / f"{name}.answer.json").read_text())
        return answers

    def install(self, row: Row, answer: dict[str, Any], lock: str) -> tuple[float, str]:
        """Seconds by Spack's clock and "", or 0 and what went wrong."""
        before = ("flock", lock) if lock else ()
        file = str(self.work / f"{row.id}.spec.json")
        code, output = self.call("install", file, log=f"{row.id}.install.log", before=before)
        if code:
            errors = [line for line in output.splitlines() if "Error" in line]
            return 0.0, f"not built: {(errors or output.splitlines()[-1:])[0][:300]}"
        prefix = self.call("location", "-i", "/" + answer["hash"])[1].strip().splitlines()[-1]
        times = json.loads((Path(prefix) / ".spack" / "install_times.json").read_text())
        return round(times["total"], 1), ""

    def test(self, row: Row, answer: dict[str, Any]) -> tuple[bool, str, str]:
        """Whether two ranks ran, what was printed, and what went wrong."""
        before = (sys.executable, str(LOOPBACK), "-n", "2", "--") if row.slurm else ()
        name = f"*/*-{answer['hash'][:7]}-test-out.txt"
        for old in (self.work / "tests").glob(name):
            old.unlink()  # Spack writes on to its end
        self.call("test", "run", "/" + answer["hash"], log=f"{row.id}.test.log", before=before)
        outputs = list((self.work / "tests").glob(name))
        if not outputs:
            return False, "", "the stand-alone test left no output"
        output = max(outputs, key=lambda path: path.stat().st_mtime).read_text(errors="replace")
        parts = dict(PART.findall(output))
        failed = [name for name, said in parts.items() if said == "FAILED"]
        ran = parts.get("test_world") == "PASSED" and not failed
        wrong = f"failed: {', '.join(failed)}" if failed else "" if parts else "no test part ran"
        skipped = [name for name, said in parts.items() if said == "SKIPPED"]
        printed = said_in_short(output)
        if skipped:
            printed = "; ".join(filter(None, [printed, "skipped: " + ", ".join(skipped)]))
        return ran, printed, wrong

    def suite(self, row: Row, answer: dict[str, Any], asked: argparse.Namespace) -> tuple[str, str]:
        """Counts of folders of MPICH's suite over a build, and what went wrong."""
        loaded = self.call("load", "--sh", "/" + answer["hash"])[1]  # as its user has it
        sets = dict(re.findall(r"^export (\w+)=(.*?);?$", loaded, re.M))
        words = [
            "--source",
            str(asked.suite),
            "--work",
            str(self.work / f"{row.id}.{answer['hash'][:7]}"),
        ]
        words += ["--lists", "testlist"]  # not the generated datatypes: an hour of them
        words += [word for one in asked.suite_folder for word in ("--only", one)]
        words += [
            f"--env={name}={' '.join(shlex.split(value))}"
            for name, value in sets.items()
            if name.startswith(("FI_", "UCX_", "MPIR_CVAR_", "SLURM_MPI_TYPE"))
        ]
        # as the stand-alone tests: 3.0 warns of cores that are all taken, and the suite takes what
        # it does not know for a failure
        words += [f"--env={name}_ENABLE_AFFINITY=0" for name in ("MV2", "MVP")]
        before: tuple[str, ...] = ()
        if row.slurm:
            before = (sys.executable, str(LOOPBACK), "-n", "2", "--", "salloc", "-n", "2", "--")
            words += ["--mpiexec", f"srun --mpi={sets['SLURM_MPI_TYPE']}"]
        prefix = self.call("location", "-i", "/" + answer["hash"])[1].strip().splitlines()[-1]
        if (rsh := Path(prefix, "bin/mpirun_rsh")).exists() and not rsh.with_name(
            "mpiexec"
        ).exists():
            starter = self.work / "mpirun_rsh"
            starter.write_text(BY_RSH.format(rsh=rsh))
            starter.chmod(0o755)
            words += ["--mpiexec", str(starter)]
        done = subprocess.run(
            [*before, sys.executable, str(SUITE), "--mpi", prefix, "--np-max", "2", *words],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        (self.work / f"{row.id}.suite.log").write_text(done.stdout)
        counts = [
            " ".join(line.split())
            for line in done.stdout.splitlines()
            if line.split() and line.split()[0] in asked.suite_folder
        ]
        new = re.findall(r"^(?:new|stale): (.*)$", done.stdout, re.M)
        wrong = f"MPICH's suite: {'; '.join(new) or done.stdout[-300:]}" if done.returncode else ""
        return f"MPICH's suite on 2 ranks: {', '.join(counts)}", wrong

    def bytes_of(self, row: Row) -> dict[str, str]:
        """Whose bytes a build was made of."""
        name, _, version = row.spec.split()[0].partition("@=")
        sha256 = self.accepted.get((name, version), "")
        return {"source": "not upstream's bytes" if sha256 else "upstream", "sha256": sha256}

    def line(self, row: Row, answer: dict[str, Any]) -> dict[str, Any]:
        """What is known of a row before anything is built."""
        found = re.match(r"([\w-]+)@=?([\w.-]+)", row.spec)
        if not found:
            raise SystemExit(f"cover: {row.id}: the spec names no version: {row.spec}")
        package, version = found.groups()
        problem = problem_of(row, answer)
        refused = "" if problem or row.state != "refused" else "refused"
        state = refused if "error" in answer else "concretizes"
        return {
            "package": package,
            "version": version,
            "id": row.id,
            "asked": row.spec,
            "spec": answer.get("spec", ""),
            "state": state,
            "hash": answer.get("hash", ""),
            "packages": answer.get("packages", 0),
            "seconds": 0.0,
            "source": "",
            "sha256": "",
            "printed": "",
            "outcome": problem or "as asked",
            "recipe": recipe_hash(package),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }


def go(
    machine: Machine, row: Row, answer: dict[str, Any], asked: argparse.Namespace
) -> dict[str, Any]:
    """One row as far as it says; its line for the record."""
    line = machine.line(row, answer)
    if row.state == "refused":
        line["printed"] = row.because if line["outcome"] == "as asked" else ""
    if row.state not in ("built", "run") or line["outcome"] != "as asked":
        return line
    seconds, wrong = machine.install(row, answer, asked.lock)
    if wrong:
        return line | {"outcome": wrong}
    line |= {"state": "built", "seconds": seconds} | machine.bytes_of(row)
    line["recipe"] = recipe_hash(line["package"], "built")
    if row.state == "built":  # it lacks here what a run needs: a driver, a launcher
        return line
    ran, printed, wrong = machine.test(row, answer)
    if not ran and not wrong:
        wrong = "two ranks were not started"
    if asked.suite and not wrong:
        counts, wrong = machine.suite(row, answer, asked)
        printed = f"{printed}; {counts}"
    state = "run" if ran else "built"
    return line | {"state": state, "printed": printed, "outcome": wrong or "as asked"}


def accepted_hash(text: str) -> tuple[tuple[str, str], str]:
    """(("mvapich", "4.0"), "d62e…") of "mvapich@4.0=d62e…"."""
    found = re.fullmatch(r"([\w-]+)@([\w.-]+)=([0-9a-f]{64})", text)
    if not found:
        raise argparse.ArgumentTypeError(f"not PACKAGE@VERSION=SHA256: {text}")
    return (found[1], found[2]), found[3]


def arguments(words: list[str]) -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(description="Builds and runs a covering set of a recipe.")
    parser.add_argument("--spack", default="spack", help="the spack to use (default: of the PATH)")
    parser.add_argument("--work", type=Path, required=True, help="folder for logs and answers")
    parser.add_argument("--set", type=Path, default=HERE / "covering.yaml", help="the set")
    parser.add_argument("--record", type=Path, default=TOP / "spack-repo" / "record.jsonl")
    parser.add_argument("--accept-hash", type=accepted_hash, action="append", default=[])
    parser.add_argument("--only", action="append", default=[], metavar="ID")
    parser.add_argument("--concretize-only", action="store_true")
    parser.add_argument(
        "--suite", type=Path, metavar="TARBALL", help="with MPICH's suite of that source"
    )
    parser.add_argument(
        "--suite-folder",
        action="append",
        default=[],
        metavar="FOLDER",
        help="of the suite, as pt2pt",
    )
    parser.add_argument("--lock", default="", help="file that no two builds hold at once")
    asked = parser.parse_args(words)
    if bool(asked.suite) != bool(asked.suite_folder):
        parser.error("--suite and --suite-folder go together")
    return asked


def main(words: list[str]) -> int:
    """Go through the set; 0 when every row went as it says."""
    asked = arguments(words)
    rows, packages = read_set(asked.set)
    unknown = sorted(set(asked.only) - {row.id for row in rows})
    if unknown:
        raise SystemExit(f"cover: no row of that id: {', '.join(unknown)}")
    rows = [row for row in rows if not asked.only or row.id in asked.only]
    asked.work.mkdir(parents=True, exist_ok=True)
    machine = Machine(asked.spack, asked.work.resolve(), dict(asked.accept_hash), packages)
    answers = machine.concretize(rows)
    wrong = 0
    for row in rows:
        if asked.concretize_only and row.state in ("built", "run"):
            line = machine.line(row, answers[row.id])
        else:
            line = go(machine, row, answers[row.id], asked)
        replace_lines(asked.record, [line])
        wrong += line["outcome"] != "as asked"
        print(f"{row.id:<22} {line['outcome']}  {line['printed']}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
