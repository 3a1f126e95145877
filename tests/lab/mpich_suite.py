"""Runs MPICH's test suite over an installed MPI, and tells known failures from new ones.

    tests/lab/mpich-suite --mpi PREFIX --source TARBALL|FOLDER --work DIR [--only FOLDER]…
                          [--np-max N] [--again] [--env NAME=VALUE]… [--mpiexec COMMAND]
                          [--record FILE]

Takes test/mpi out of the source, configures it with the wrappers in PREFIX/bin, builds folder by
folder on all cores, and runs each test by the suite's own `runtests`: its lists, limits, verdicts.
An MPI that is built for srun has no mpiexec: `--mpiexec "srun --mpi=pmi2"`, within an allocation.
What ran stands in DIR/results.jsonl and does not run again: a run that was broken off goes on.

A test that fails must have a row in mpich-suite-known.yaml, with its reason. Exit status 1: one
failed that has no row, or has a row and passes. 2: the call or the source is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock
from mpich_known import (
    BAD,
    KNOWN,
    Result,
    Verdict,
    Wrong,
    compared,
    keep,
    put_record,
    read_known,
    read_results,
    record_of,
)

LIMIT = 180  # seconds, where the suite's list names none; also runtests' own
MADE = (".o", ".lo", ".la", ".a", ".mod")
PATIENCE = 3  # times its limit for a test that is run again: slow is not hung


@dataclass(frozen=True)
class Test:
    """A line of one of the suite's lists."""

    folder: str  # below the suite, as threads/pt2pt
    name: str
    ranks: int
    limit: int
    line: str
    words: str = ""  # its arguments and environment
    copy: int = 1  # some lines stand twice

    @property
    def id(self) -> str:
        """What results and known failures call it: ``coll/bcasttest 16 MPIR_CVAR_…=1``."""
        words = f" {self.words}" if self.words else ""
        again = f" #{self.copy}" if self.copy > 1 else ""
        return f"{self.folder}/{self.name} {self.ranks}{words}{again}"


class Suite:
    """The suite in a working folder, configured for one MPI."""

    def __init__(self, mpi: Path, work: Path, env: list[str], mpiexec: str = "") -> None:
        for tool in ("mpicc", "mpichversion", *(() if mpiexec else ("mpiexec",))):
            if not (mpi / "bin" / tool).exists():
                more = ": say how ranks are started by --mpiexec" if tool == "mpiexec" else ""
                raise Wrong(f"--mpi {mpi}: no bin/{tool} there{more}")
        self.mpiexec = mpiexec or f"{mpi}/bin/mpiexec"
        self.mpi, self.work = mpi, work
        self.build = work / "build"
        self.results = work / "results.jsonl"
        self.source = Path()
        self.sha256 = ""
        self.set = env
        # as the MPI's module says: what was built over another MPI of its ABI runs over this one
        pairs = dict(one.partition("=")[::2] for one in env)
        self.env = os.environ | {"LD_LIBRARY_PATH": f"{mpi}/lib"} | pairs
        self.env["PATH"] = f"{mpi}/bin:{os.environ['PATH']}"
        said = self.told(mpi / "bin" / "mpichversion")
        version = re.search(r"^(MPICH|MVAPICH2?) Version:\s*(\S+)", said, re.M)
        device = re.search(r"^\w+ Device:\s*(\S+)", said, re.M)
        if not version or not device:
            raise Wrong(f"--mpi {mpi}: mpichversion says neither version nor device: {said[:200]}")
        self.name = f"{version[1].lower()} {version[2]} {device[1]}"

    def told(self, *words: str | Path) -> str:
        """What a command prints. Raises Wrong when it fails."""
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, cwd=self.work)
        if done.returncode:
            raise Wrong(f"{shlex.join(map(str, words))}: {done.stderr.strip() or done.stdout}")
        return done.stdout

    def logged(self, log: str, *words: str | Path) -> int:
        """Runs a command in the build folder; its output goes to DIR/logs."""
        path = self.work / "logs" / f"{log}.log"
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as out:
            return subprocess.run(
                words, env=self.env, cwd=self.build, stdout=out, stderr=subprocess.STDOUT
            ).returncode

    def unpack(self, given: Path) -> None:
        """Finds or unpacks test/mpi."""
        if given.is_dir():
            below = given / "test" / "mpi"
            self.source = (below if below.is_dir() else given).resolve()
        elif not given.is_file():
            raise Wrong(f"--source {given}: no such file or folder")
        else:
            self.sha256 = hashlib.sha256(given.read_bytes()).hexdigest()
            place = self.work / "source" / self.sha256[:16]
            if not (place / "whole").exists():
                with tarfile.open(given) as packed:
                    for member in packed:
                        _, _, rest = member.name.partition("/")
                        if rest.startswith("test/mpi/"):
                            packed.extract(member.replace(name=rest), place, filter="tar")
                (place / "whole").touch()
            self.source = place / "test" / "mpi"
        if not (self.source / "configure").is_file():
            raise Wrong(f"{given}: no test/mpi/configure: take a released source, not a clone")
        if (self.source / "config.status").exists():
            raise Wrong(f"{self.source} was configured in place: give a clean source")

    def configure(self, more: list[str]) -> None:
        """Once per MPI, source and options; another one wants another --work."""
        made = self.work / "configured"
        key = f"{shlex.join([str(self.mpi), str(self.source), *more])}\n"
        if made.exists():
            if made.read_text() != key:
                raise Wrong(f"--work {self.work}: is of {made.read_text().strip()}: name another")
            return
        self.build.mkdir(parents=True, exist_ok=True)
        # The suite looks for "MPICH Device:" and MVAPICH says "MVAPICH Device:". Told of ch4:ucx it
        # leaves out dynamic processes, which MPICH 4's did not have and MVAPICH's has.
        version = self.work / "mpichversion"
        words = shlex.quote(f"{self.mpi}/bin/mpichversion")
        change = r"s/MVAPICH2*\(.*\)ch4:ucx/MPICH\1MVAPICH ch4:ucx/; s/^MVAPICH2*/MPICH/"
        version.write_text(f"#!/bin/sh\n{words} | sed '{change}'\n")
        version.chmod(0o755)
        words = [f"MPICHVERSION={version}", f"--with-mpi={self.mpi}", "--enable-cxx"]
        # Left alone it links a GPU's libraries where the machine has them: tests start slowly.
        # MVAPICH2's would look for scripts of its whole source.
        words += ["--disable-maintainer-mode"]
        words += ["--enable-romio", *(f"--without-{gpu}" for gpu in ("cuda", "hip", "ze")), *more]
        configure = self.source / "configure"
        if self.logged("configure", configure, *words):
            raise Wrong(f"configure failed: {self.work}/logs/configure.log")
        made.write_text(key)

    def folders(self) -> tuple[list[str], dict[str, str]]:
        """Those that configure enabled, and those that it left out, each with the reason."""
        named = (self.source / "testlist.in").read_text().splitlines()
        written = [one.split("#")[0].strip() for one in self.listed("testlist")]
        enabled = [one for one in written if one and not one.startswith("!")]
        out = {}
        for line in named:
            mine = re.fullmatch(r"(#?)@?(\w+?)(dir)?@?", line.strip())
            # the list says errordir of the folder errors
            name = mine and {"error": "errors"}.get(mine[2], mine[2])
            if mine and name not in enabled and (self.source / name).is_dir():
                out[name] = "commented out in the suite" if mine[1] else "left out by its configure"
        return enabled, out

    def listed(self, name: str) -> list[str]:
        """The lines of a list: configure's, or the source's own."""
        for place in (self.build, self.source):
            if (place / name).is_file():
                return (place / name).read_text().splitlines()
        return []

    def make(self, jobs: int, *folders: str) -> None:
        """Builds folders' programs; one that does not build is found when it is run."""
        for one in ("util", "dtpools", *folders):
            if (self.build / one / "Makefile").is_file():
                self.logged(f"make-{one}", "make", "-k", f"-j{jobs}", "-C", one, "all")

    def take(self, other: Path, folder: str) -> None:
        """Copies what another --work built there, with its times: make finds nothing to do."""
        for one in ("util", "dtpools", folder):
            for made in (other / "build" / one).rglob("*"):
                if made.is_file() and (made.suffix in MADE or is_elf(made)):
                    place = self.build / made.relative_to(other / "build")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(made, place)

    def tests(self, folder: str, lists: list[str]) -> Iterator[Test]:
        """The tests of a folder and those below, as runtests finds them."""
        met: Counter[str] = Counter()
        for name in lists:
            for line in self.listed(f"{folder}/{name}"):
                words = line.split("#")[0].split()
                if not words or words[0].startswith("!"):
                    continue
                if (self.source / folder / words[0]).is_dir():
                    if name == "testlist":
                        yield from self.tests(f"{folder}/{words[0]}", lists)
                    continue
                ranks = int(words[1]) if len(words) > 1 else 2
                options = [one.partition("=") for one in words[2:]]
                limits = [value for key, _, value in options if key == "timeLimit"]
                limit = int(limits[0]) if limits and limits[0].isdigit() else LIMIT
                more = [value for key, _, value in options if key in ("arg", "env")]
                test = Test(folder, words[0], ranks, limit, " ".join(words), " ".join(more))
                met[test.id] += 1
                yield replace(test, copy=met[test.id])

    def run(self, test: Test) -> Result:
        """Runs a test by runtests, and reads its verdict."""
        place = self.build / test.folder
        (place / "one.list").write_text(test.line + "\n")
        verdict = place / "one.tap"
        verdict.unlink(missing_ok=True)
        script = self.build / "runtests"
        script = script if script.is_file() else self.source / "runtests"
        words = ["perl", str(script), f"-srcdir={self.source / test.folder}", "-tests=one.list"]
        words += [f"-mpiexec={self.mpiexec}", "-tapfile=one.tap"]
        load, began = os.getloadavg()[0], time.monotonic()
        said, ended = over_at(words, place, self.env, test.limit + 60)
        seconds = round(time.monotonic() - began, 1)
        tap = verdict.read_text(errors="replace") if verdict.is_file() else ""
        state, why = judged(tap, said)
        if not ended or (state == "failed" and seconds >= test.limit):
            state = "timed out"
        return Result(test.id, state, test.ranks, seconds, why, load=round(load, 1))


def is_elf(path: Path) -> bool:
    """Whether a file is a program or library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def over_at(words: list[str], place: Path, env: dict[str, str], limit: float) -> tuple[str, bool]:
    """What a command printed, and whether it ended by itself: after ``limit`` s it is ended."""
    with subprocess.Popen(
        words, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, errors="replace",
    ) as process:  # fmt: skip
        ended = False
        with suppress(subprocess.TimeoutExpired):
            try:
                said = process.communicate(timeout=limit)[0]
                ended = True
            finally:  # also when this one is told to end: ranks would go on
                if not ended:
                    end(psutil.Process(process.pid))
            return said, True
        return process.communicate()[0] or "", False


def end(process: psutil.Process) -> None:
    """End a process and those below it; srun, killed at once, would leave its ranks running."""
    going = [*process.children(recursive=True), process]
    for way in ("terminate", "kill"):
        for one in going:
            with suppress(psutil.NoSuchProcess):
                getattr(one, way)()
        going = psutil.wait_procs(going, timeout=10)[1]


def judged(tap: str, said: str) -> tuple[str, str]:
    """State, and what was said, of one test by what runtests wrote."""
    verdict = re.search(r"^(ok|not ok) .*$", tap, re.M)
    printed = [line[3:] for line in tap.splitlines() if re.match(r"## (?!Test output)", line)]
    text = "\n".join(line for line in printed if line.strip())[:2000] or said.strip()[:2000]
    if not verdict:
        return "failed", text or "runtests gave no verdict"
    if skipped := re.search(r"# SKIP (.*)", verdict[0]):
        return "skipped", skipped[1].strip()
    if verdict[1] == "ok":
        return "passed", ""
    if "Failed to build" in text:
        return "not built", text
    return "timed out" if "APPLICATION TIMED OUT" in text else "failed", text


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/lab/mpich-suite", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--mpi", type=Path, required=True, metavar="PREFIX", help="Where the MPI is installed")
    add("--source", type=Path, required=True, help="Tarball or folder of MPICH or MVAPICH")
    add("--work", type=Path, required=True, metavar="DIR", help="Builds, logs and results go here")
    add("--only", action="append", default=[], metavar="FOLDER", help="Of the suite, as coll")
    add("--test", metavar="PATTERN", help='Only such tests, as "coll/bcast*"')
    add("--np-max", type=int, default=0, metavar="N", help="Skip tests of more ranks than N")
    add("--again", action="store_true", help=f"New failures once more, {PATIENCE} times as long")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="Set for the tests")
    add(
        "--configure", action="append", default=[], metavar="WORD", help="As --configure=--with-hip"
    )
    add("--lists", default="testlist,testlist.dtp", help="In each folder (%(default)s)")
    add("--programs", type=Path, metavar="DIR", help="Take programs of that --work (one ABI)")
    add("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="Parallel compile jobs")
    add("--known", type=Path, default=KNOWN, help="Known failures (%(default)s)")
    add("--mpiexec", default="", metavar="COMMAND", help="Starts ranks (PREFIX/bin/mpiexec)")
    add("--record", type=Path, metavar="FILE", help="Put the counts there, one line per MPI")
    given = parser.parse_args(words)
    if given.test and given.record:
        parser.error("--record is of whole folders: not with --test")
    return given


def run_all(suite: Suite, given: argparse.Namespace, folders: list[str]) -> list[Result]:
    """Runs what has no result yet; the results of the folders, in the suite's order."""
    found = []
    for folder in folders:
        # two may work on one suite, each on folders of its own
        with FileLock(suite.work / f"{folder}.lock"):
            found += run_folder(suite, given, folder)
    return found


def run_folder(suite: Suite, given: argparse.Namespace, folder: str) -> list[Result]:
    """Builds a folder and runs what has no result yet."""
    had = read_results(suite.results)
    tests = list(suite.tests(folder, given.lists.split(",")))
    if given.test:  # runtests makes the few
        tests = [test for test in tests if fnmatchcase(test.id, given.test)]
    if any(test.id not in had for test in tests):
        if given.programs:
            suite.take(given.programs, folder)
        suite.make(given.jobs, *([] if given.test else [folder]))
    for test in tests:
        if test.id not in had and 0 < given.np_max < test.ranks:
            why = f"more than {given.np_max} ranks (--np-max)"
            had[test.id] = Result(test.id, "skipped", test.ranks, said=why)
        elif test.id not in had:
            had[test.id] = suite.run(test)
            keep(suite.results, had[test.id])
    states = Counter(had[test.id].state for test in tests)
    counts = ", ".join(f"{n} {state}" for state, n in states.items())
    print(f"{folder:10} {counts or 'no test'}", flush=True)
    return [had[test.id] for test in tests]


def run_again(
    suite: Suite, given: argparse.Namespace, folders: list[str], new: list[Result]
) -> None:
    """Runs failures once more, with more time: slow is not hung."""
    wanted = {one.test: one for one in new if not one.first and one.state != "not built"}
    for folder in folders:
        for test in suite.tests(folder, given.lists.split(",")):
            if test.id in wanted:
                longer = PATIENCE * test.limit
                line = re.sub(r" timeLimit=\S+", "", test.line)
                count = "" if len(line.split()) > 1 else f" {test.ranks}"
                line = f"{line}{count} timeLimit={longer}"
                result = suite.run(replace(test, limit=longer, line=line))
                result.first = wanted[test.id].state
                keep(suite.results, result)
                print(f"again      {test.id}: {result.first}, then {result.state}", flush=True)


def mpi_of(work: Path) -> str:
    """The MPI that another --work was configured for. Raises Wrong when it is none."""
    made = work / "configured"
    if not made.is_file():
        said = f"--programs {work}: nothing was configured there"
        raise Wrong(f"{said}; name the --work of another run")
    return Suite(Path(shlex.split(made.read_text())[0]), work, [], "none").name


def chosen(suite: Suite, only: list[str]) -> tuple[list[str], dict[str, str]]:
    """The folders to run, and the others with the reason."""
    folders, not_run = suite.folders()
    if strange := [one for one in only if one not in folders]:
        why = "".join(f"; {one}: {not_run[one]}" for one in strange if one in not_run)
        raise Wrong(f"--only {', '.join(strange)}: allowed {', '.join(folders)}{why}")
    if only:
        not_run |= {one: "not asked for (--only)" for one in folders if one not in only}
    return [one for one in folders if not only or one in only], not_run


def report(name: str, record: dict[str, Any], verdict: Verdict) -> None:
    """Prints what is new and stale, and the counts."""
    for one in verdict.new:
        print(f"\nnew: {one.test}: {one.state} after {one.seconds} s, load {one.load}\n{one.said}")
    for stale in verdict.stale:
        print(f"stale: {stale}")
    for folder, why in record["not_run"].items():
        print(f"not run: {folder}: {why}")
    counts = [f"{record[one.replace(' ', '_')]} {one}" for one in ("passed", "skipped", *BAD)]
    known, new, stale_rows = map(len, (verdict.explained, verdict.new, verdict.stale))
    print(f"{name}: {record['tests']} tests: {', '.join(counts)}")
    print(f"{known} known, {new} new, {stale_rows} stale")


def main(words: list[str]) -> int:
    given = arguments(words)
    programs = mpi_of(given.programs) if given.programs else ""
    given.work.mkdir(parents=True, exist_ok=True)
    suite = Suite(given.mpi.resolve(), given.work.resolve(), given.env, given.mpiexec)
    known = read_known(given.known)
    suite.unpack(given.source)
    suite.configure(given.configure)
    folders, not_run = chosen(suite, given.only)
    results = run_all(suite, given, folders)
    whole = [] if given.test else folders
    verdict = compared(results, known, suite.name, whole)
    if given.again and verdict.new:
        run_again(suite, given, folders, verdict.new)
        results = run_all(suite, given, folders)
        verdict = compared(results, known, suite.name, whole)
    here = Path(__file__).parent
    git = ["git", "-C", here, "rev-parse", "--short", "HEAD"]  # "" outside a clone
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    record = {"mpi": suite.name, "source": suite.sha256, "set": given.env, "commit": commit}
    record |= record_of(results, verdict) | {"not_run": not_run}
    record["lists"] = given.lists
    record["programs"] = programs or suite.name
    report(suite.name, record, verdict)
    if given.record:
        put_record(given.record, record)
    return 1 if verdict.new or verdict.stale else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except Wrong as wrong:
        print(f"tests/lab/mpich-suite: {wrong}", file=sys.stderr)
        sys.exit(2)
