"""The OSU Micro-Benchmarks: compiled for one MPI, checked by value, run, read."""

import contextlib
import operator
import os
import platform
import re
import resource
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from mvstack.measure.mpis import Mpi
from mvstack.sources.fetch import Fetcher
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.support import hashes
from mvstack.support.errors import BuildFailed, InvalidInput, Missing, MvstackError
from mvstack.support.home import home
from mvstack.support.processes import run
from mvstack.support.units import one_line
from mvstack.support.words import listed, nearest
from mvstack.test.run import CHECKS

LIMIT = 120.0  # seconds that one run may take; what takes longer hangs
OWN = [CHECKS / "src" / "collectives.c", CHECKS / "src" / "identity.c"]
VERIFIERS = (*(Path(__file__).with_name(x) for x in ("verify.c", "hop.c")), *OWN)
USAGE = Path(__file__).with_name("usage.c")
WHERE = ("node", "cpu", "cores", "os")
RANKS = re.compile(r"^rank on (\S+) took ([\d.]+) s$", re.M)
COLUMNS = re.compile(r"^(\d+)((?:[ \t]+\d+(?:\.\d*)?)+)[ \t]*(Pass|Fail)?[ \t]*$", re.M)
ALONE = re.compile(r"avg: (\d+(?:\.\d*)?) ms|^[ \t]*(\d+(?:\.\d*)?)[ \t]*$", re.M)


class Wrong(Exception):
    """An operation gives wrong values, hangs or dies: it says how."""


MOVED = 2  # times as long between two cores: the host of a virtual machine has moved them
# Messages before the clock starts: UCX 1.20 is slow in its first hundreds (docs/performance.md).
WARM_UP = 1000


@dataclass(frozen=True)
class Operation:
    """What is measured by one program of OMB, with so many iterations a size.

    ``ranks`` are 2, 0 for as many as asked for, or -2 for the even number below that. ``checked``:
    the program itself checks what arrives; of the others verify.c does. ``least`` is the smallest
    message in bytes, 0 where there are none; ``column`` is that of the figure. ``to_all``: one call
    sends from each rank to all others. ``named``: it is measured only where it is asked for.
    """

    program: str
    iterations: int = 200
    ranks: int = 0
    unit: str = "us"
    checked: bool = True
    least: int = 1
    column: int = 0
    to_all: bool = False
    named: bool = False

    @property
    def higher_is_better(self) -> bool:
        """Rates are not times."""
        return self.unit.endswith("/s")

    def on(self, ranks: int) -> int:
        """On how many ranks it runs."""
        return max(ranks - ranks % 2, 2) if self.ranks == -2 else self.ranks or ranks

    def words(self, sizes: tuple[int, int], check: bool, ranks: int = 2) -> list[str]:
        """What its program is called with, to measure or to ``check`` what arrives."""
        iterations = 5 if check else self.iterations
        span = ["-m", f"{max(sizes[0], self.least)}:{sizes[1]}"] if self.least else []
        also = ["-c"] if check and self.checked else []
        # a window of rates has 64 messages
        many = 64 if self.higher_is_better else max(ranks // 8, 1) if self.to_all else 1
        warm_up = 2 if check else WARM_UP // many
        words = ["-i", str(iterations), "-x", str(warm_up), *span, *also]
        return words if self.iterations else []

    def read(self, text: str) -> dict[int, float]:
        """The figures by size that its program printed; by 0 where it has none. Raises Wrong."""
        if len(re.findall(r"^# OSU ", text, re.M)) > 1:
            raise Wrong("its ranks are worlds of their own: the launcher does not fit the MPI")
        rows = COLUMNS.findall(text)
        if bad := [size for size, _, said in rows if said == "Fail"]:
            raise Wrong(f"data arrived changed, first at {bad[0]} bytes")
        found = {int(size): float(words.split()[self.column]) for size, words, _ in rows}
        if not self.least:
            found = dict(enumerate(float("".join(one)) for one in ALONE.findall(text)[-1:]))
        if not found or min(found.values()) <= 0:
            raise Wrong("it printed no figure, or one that is not above zero")
        return found


OPERATIONS = {
    "latency": Operation("osu_latency", 1000, 2),
    "bw": Operation("osu_bw", 50, 2, "MB/s"),
    "bibw": Operation("osu_bibw", 50, 2, "MB/s"),
    "rate": Operation("osu_mbw_mr", 50, -2, "messages/s", column=1),
    "allreduce": Operation("osu_allreduce", least=4),
    "alltoall": Operation("osu_alltoall", to_all=True),
    "bcast": Operation("osu_bcast"),
    "allgather": Operation("osu_allgather", to_all=True),
    "reduce": Operation("osu_reduce", least=4),
    "barrier": Operation("osu_barrier", 1000, checked=False, least=0),
    "put": Operation("osu_put_latency", 500, 2, checked=False),
    "init": Operation("osu_init", 0, unit="ms", checked=False, least=0),
    "get": Operation("osu_get_latency", 500, 2, checked=False, named=True),
    "gather": Operation("osu_gather", named=True),
    "scatter": Operation("osu_scatter", named=True),
    "reduce_scatter": Operation("osu_reduce_scatter", least=8, named=True),
}


def operations(words: list[str]) -> list[str]:
    """Those of ``words`` (each may hold several, with commas), or the usual. InvalidInput."""
    asked = [one for word in words for one in word.split(",") if one]
    for one in (one for one in asked if one not in OPERATIONS):
        close = nearest(one, OPERATIONS)
        raise InvalidInput(f"no operation {one}", allowed=listed(OPERATIONS), nearest=close)
    return [x for x, one in OPERATIONS.items() if x in asked or not (asked or one.named)]


def omb_source(given: Path | None, fetcher: Fetcher, cache: Path) -> Path:
    """OMB's source: ``given`` (a folder or tarball), or the release's. InvalidInput or Missing."""
    if given is None:
        recipes = home().files("easyconfigs", "o/OSU-Micro-Benchmarks/*.eb")
        spec = specs_from_easyconfigs(list(recipes.values())[-1:])[0]
        try:
            given = fetcher.fetch(spec).path
        except MvstackError as error:
            what = f"the source of {spec.software} {spec.version} cannot be had"
            todo = "name a folder or tarball of it, of any version from 5.9 on: --omb DIR|TARBALL"
            raise Missing(what, found=error.problems[0].found, todo=todo) from None
    folder = given.absolute()
    if given.is_file():
        folder = cache / "omb" / hashes.of(str(folder), given.stat().st_mtime_ns)[:12]
        new = folder.with_suffix(f".{os.getpid()}")  # whole, or not at all
        try:
            if not folder.is_dir():
                with tarfile.open(given) as tar:
                    tar.extractall(new, filter="data")
                new.rename(folder)
        except (tarfile.TarError, OSError) as error:
            raise InvalidInput("not a tarball", str(given), found=one_line(str(error))) from None
        finally:
            shutil.rmtree(new, ignore_errors=True)
    if not next(folder.rglob("osu_util_mpi.c"), None):
        allowed = "a folder or tarball with util/osu_util_mpi.c in it"
        raise InvalidInput("there is no source of OMB here", str(given), allowed=allowed)
    return folder


def omb_version(folder: Path) -> str:
    """As its configure.ac says it; "" where it does not."""
    texts = [one.read_text() for one in sorted(folder.rglob("configure.ac"))]
    return "".join(re.findall(r"AC_INIT\(\[[^]]*\], *\[([^]]*)\]", "".join(texts[:1])))


@dataclass(frozen=True)
class Bench:
    """One MPI with its compiled programs, and the least and largest size in bytes."""

    mpi: Mpi
    folder: Path
    sizes: tuple[int, int]
    limit: float = field(default_factory=lambda: LIMIT)  # seconds of one run
    content = ""  # of what it runs beside its folder

    def run(self, program: str, ranks: int, *words: str, more: Mapping[str, str] = {}) -> str:
        """What a program of ``folder`` prints; ``more`` is added to its environment. Wrong."""
        mpi = replace(self.mpi, environment={**self.mpi.environment, **more})
        hosts = self.folder / f"hosts.{os.getpid()}"
        if mpi.hosts:
            nodes = run(["bash", "-c", mpi.hosts], env=mpi.environment)
            if not nodes.ok:
                raise Wrong(f"the nodes of this job cannot be listed: {one_line(nodes.said, 300)}")
            hosts.write_text(nodes.text)
        command = mpi.command(ranks, self.folder / program, *words, hosts=hosts)
        try:
            done = run(command, env=mpi.environment, cwd=self.folder, limit=self.limit)
        except OSError as error:
            raise Wrong(f"{command[0]} cannot be started: {error.strerror}") from None
        finally:
            hosts.unlink(missing_ok=True)
        if done.timed_out:
            raise Wrong(f"it did not end within {self.limit:g} s: it hangs, or is that slow")
        if not done.ok:
            last = [one_line(line, 300) for line in done.said.splitlines() if line.strip()][-3:]
            raise Wrong(f"it ended with status {done.status}: {' | '.join(last) or 'said nothing'}")
        return done.said

    def on(self, name: str, ranks: int) -> int:
        """On how many ranks it runs."""
        return OPERATIONS[name].on(ranks)

    def verify(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> float:
        """See that an operation brings the right values: its seconds, or 0 if not timed. Wrong."""
        operation = OPERATIONS[name]
        on = operation.on(ranks)
        said = "" if operation.checked else self.run("verify", on, more=more)
        if said and f"world {on}\n" not in said:
            raise Wrong(f"its world is not of {on} ranks: the launcher does not fit the MPI")
        if f"{name} wrong" in said:
            raise Wrong("its results are wrong")
        words = operation.words(self.sizes, check=True)
        operation.read(self.run(operation.program, on, *words, more=more))
        return 0.0

    def measure(self, name: str, ranks: int, more: Mapping[str, str] = {}) -> dict[str, Any]:
        """``values`` by size, and what :meth:`watched` saw. Wrong."""
        operation, on = OPERATIONS[name], self.on(name, ranks)
        words = operation.words(self.sizes, check=False, ranks=on)
        with self.watched() as seen:
            said = self.run(operation.program, on, *words, more=more)
            ran, here = RANKS.findall(said), platform.node()
            seen["ranks"] = sum(float(took) for node, took in ran if node == here)
        nodes = {node for node, _ in ran} or {here}
        if nodes != {here}:  # how far two cores of one node are apart says little of it
            seen["hop"] = 0.0
        if here not in nodes:  # nor does what else this one does
            seen |= {"load": None, "others": None}
        return {"values": sorted(operation.read(said).items()), **seen}

    @contextlib.contextmanager
    def watched(self) -> Iterator[dict[str, Any]]:
        """What the machine did beside us while the block ran.

        ``others``: how many processors the rest and a virtual machine's host took; ``load``: the
        load before; ``seconds``: how long it took; ``hop``: of before and after, None if it
        changed. The block may add what ``ranks`` took, if no children.
        """

        def spent() -> list[float]:
            both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            all_ = psutil.cpu_times()._asdict()
            busy = sum(all_.get(one, 0.0) for one in ("user", "nice", "system", "steal", "softirq"))
            return [time.monotonic(), busy, *(one.ru_utime + one.ru_stime for one in both)]

        load, hop, before = round(os.getloadavg()[0], 2), self.hop(), spent()
        yield (seen := dict[str, Any](load=load))
        seconds, busy, ours, children = map(operator.sub, spent(), before)
        others = max(busy - ours - max(children, seen.pop("ranks", 0.0)), 0)
        seen |= {"seconds": round(seconds, 3), "others": round(others / max(seconds, 0.01), 3)}
        low, high = sorted((hop, self.hop()))
        seen["hop"] = high if high <= MOVED * low else None

    def hop(self) -> float:
        """Nanoseconds of a cache line between the first two cores (hop.c); 0 for unknown."""
        with contextlib.suppress(OSError, ValueError):
            return float(run([self.folder / "hop"], env=self.mpi.environment, limit=10).text)
        return 0.0

    def told(self) -> dict[str, str]:
        """WHERE rank 0 is, and the ``version`` of its MPI; each "" where nothing says it."""
        said = dict.fromkeys((*WHERE, "version"), "")
        with contextlib.suppress(Wrong):
            rows = re.findall(rf"^({'|'.join(said)}) (.*)", self.run("verify", 2), re.M)
            said |= {name: " ".join(words.split()) for name, words in rows}
        return said


def compiled(mpi: Mpi, source: Path | None, cache: Path, sizes: tuple[int, int]) -> Bench:
    """The benchmarks of ``mpi``, compiled once for each build of it. Raises BuildFailed."""
    version, files = source and omb_version(source), hashes.of_files([*VERIFIERS, USAGE])
    key = hashes.of(mpi.identity, mpi.cc, str(source), str(version), files, [*OPERATIONS])[:16]
    folder, new = cache / "benchmarks" / key, cache / "benchmarks" / f"{key}.{os.getpid()}"
    if folder.is_dir():
        return Bench(mpi, folder, sizes)
    new.mkdir(parents=True, exist_ok=True)
    commands = [["-O2", "-pthread", str(one), "-o", one.stem] for one in VERIFIERS]
    if source:
        util = next(source.rglob("osu_util_mpi.c")).parent
        # as OMB's configure defines them; what else it finds out is for GPUs, Java and Python
        flags = [f'-DPACKAGE_VERSION="{version}"', "-DFIELD_WIDTH=18", "-DFLOAT_PRECISION=2"]
        flags = ["-O2", "-w", *flags, f"-I{util}"]
        common = [one for one in util.glob("osu_util*.c") if not one.stem.endswith("pgas")]
        objects = [f"{one.stem}.o" for one in common]
        commands.append([*flags, "-c", *map(str, common)])
        for program in (one.program for one in OPERATIONS.values()):
            main = next(map(str, source.rglob(f"{program}.c")), "no-such-program.c")
            commands.append([*flags, main, *objects, str(USAGE), "-o", program, "-lm", "-lpthread"])
    for words in commands:
        if not (done := run([mpi.cc, *words], env=mpi.environment, cwd=new)).ok:
            todo = "see that the MPI has headers, and that its wrapper's compiler is installed"
            found = " | ".join(done.said.splitlines()[:4])
            raise BuildFailed(f"{mpi.name}: {mpi.cc} fails", str(new), found=found, todo=todo)
    new.rename(folder)
    return Bench(mpi, folder, sizes)
