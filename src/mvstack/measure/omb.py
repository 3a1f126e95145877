"""The OSU Micro-Benchmarks: what is measured with which program, how they are made and read."""

import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mvstack.sources.fetch import Fetcher
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.support import hashes
from mvstack.support.errors import BuildFailed, InvalidInput, Missing, MvstackError
from mvstack.support.home import home
from mvstack.support.processes import run
from mvstack.support.words import listed, nearest

VERIFY = Path(__file__).with_name("verify.c")
COLUMNS = r"^(\d+)((?:[ \t]+[\d.]+)+)[ \t]*(Pass|Fail)?[ \t]*$"


@dataclass(frozen=True)
class Operation:
    """One thing that is measured: OMB's program for it, the unit, and on how many ranks.

    ``checked``: the program checks what arrives (``-c``); of the others verify.c does. ``least`` is
    the smallest message in bytes, 0 where there is none. ``iterations`` are those of one size.
    """

    program: str
    ranks: Literal["two", "even", "all"] = "all"
    unit: str = "us"
    checked: bool = True
    least: int = 1
    column: int = 0
    iterations: int = 200

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better: rates are not times."""
        return self.unit.endswith("/s")

    def on(self, ranks: int) -> int:
        """On how many it runs where ``ranks`` are asked for."""
        return {"two": 2, "even": max(ranks - ranks % 2, 2), "all": ranks}[self.ranks]


OPERATIONS = {
    "latency": Operation("osu_latency", "two", iterations=1000),
    "bw": Operation("osu_bw", "two", "MB/s", iterations=50),
    "bibw": Operation("osu_bibw", "two", "MB/s", iterations=50),
    "rate": Operation("osu_mbw_mr", "even", "messages/s", column=1, iterations=50),
    "allreduce": Operation("osu_allreduce", least=4),
    "alltoall": Operation("osu_alltoall"),
    "bcast": Operation("osu_bcast"),
    "allgather": Operation("osu_allgather"),
    "reduce": Operation("osu_reduce", least=4),
    "barrier": Operation("osu_barrier", checked=False, least=0, iterations=1000),
    "put": Operation("osu_put_latency", "two", checked=False, iterations=500),
    "init": Operation("osu_init", unit="ms", checked=False, least=0),
}


def operations(words: list[str]) -> dict[str, Operation]:
    """Those of ``words`` (each may hold several, separated by commas), or all. InvalidInput."""
    asked = [one for word in words for one in word.split(",") if one]
    for one in asked:
        if one not in OPERATIONS:
            close = nearest(one, OPERATIONS)
            raise InvalidInput(
                f"no operation {one} is measured", allowed=listed(OPERATIONS), nearest=close
            )
    return {name: row for name, row in OPERATIONS.items() if not asked or name in asked}


def read(text: str, operation: Operation) -> dict[int, float]:
    """The figures by size in what a program printed; those without a size by 0.

    Raises ValueError: wrong data, no figure, or several worlds in the place of one.
    """
    if len(re.findall(r"^# OSU ", text, re.M)) > 1:
        raise ValueError("its ranks are worlds of their own: the launcher and the MPI do not match")
    rows = re.findall(COLUMNS, text, re.M)
    if wrong := [size for size, _, said in rows if said == "Fail"]:
        raise ValueError(f"data arrived changed, first at {wrong[0]} bytes")
    if not operation.least:
        alone = re.findall(r"avg: ([\d.]+) ms|^[ \t]*([\d.]+)[ \t]*$", text, re.M)
        found = {0: float(one or other) for one, other in alone[-1:]}
    else:
        found = {int(size): float(words.split()[operation.column]) for size, words, _ in rows}
    if not found:
        raise ValueError("it printed no figure")
    if bad := [size for size, value in found.items() if not value > 0]:
        raise ValueError(f"its figure at {bad[0]} bytes is not above zero")
    return found


def arguments(operation: Operation, sizes: tuple[int, int], check: bool) -> list[str]:
    """What its program is called with, to measure or to ``check`` what arrives."""
    if operation.program == "osu_init":
        return []
    iterations = 5 if check else operation.iterations
    words = ["-i", str(iterations), "-x", str(max(iterations // 10, 2))]
    if operation.least:
        words += ["-m", f"{max(sizes[0], operation.least)}:{sizes[1]}"]
    return [*words, *(["-c"] if check and operation.checked else [])]


def source(given: Path | None, fetcher: Fetcher, cache: Path) -> Path:
    """The folder of OMB's source: ``given`` (a folder or tarball), or the release's own, fetched.

    Raises InvalidInput for what is not OMB, and Missing where it cannot be had.
    """
    if given is None:
        recipe = home().files("easyconfigs", "o/OSU-Micro-Benchmarks/*.eb")
        (spec,) = specs_from_easyconfigs(list(recipe.values())[-1:])
        try:
            given = fetcher.fetch(spec).path
        except MvstackError as error:
            raise Missing(
                f"the source of {spec.software} {spec.version} cannot be had",
                found=error.problems[0].found,
                todo="name a folder or tarball of it: --omb DIR|TARBALL (any version from 5.9 on)",
            ) from None
    folder = given
    if given.is_file():
        folder = cache / "omb" / hashes.of(str(given.absolute()), given.stat().st_mtime_ns)[:12]
        if not folder.is_dir():
            try:
                with tarfile.open(given) as tar:
                    tar.extractall(folder.with_suffix(".new"), filter="data")
            except (tarfile.TarError, OSError) as error:
                raise InvalidInput(f"this is no tarball: {error}", str(given)) from None
            folder.with_suffix(".new").rename(folder)
    if not next(folder.rglob("osu_util_mpi.c"), None):
        raise InvalidInput(
            "this is no source of the OSU Micro-Benchmarks",
            str(given),
            allowed="a folder or tarball with util/osu_util_mpi.c in it",
        )
    return folder


def version_of(folder: Path) -> str:
    """OMB's version as its configure.ac says it, "" where it does not."""
    text = next((one.read_text() for one in sorted(folder.rglob("configure.ac"))), "")
    found = re.search(r"AC_INIT\(\[[^]]*\], *\[([^]]*)\]", text)
    return found[1] if found else ""


def programs(folder: Path, to: Path, cc: str, environment: dict[str, str]) -> None:
    """Compile every program that is measured, and verify.c, by the wrapper ``cc`` into ``to``.

    What is there already is left. Raises BuildFailed.
    """
    if to.is_dir():
        return
    util = next(folder.rglob("osu_util_mpi.c")).parent
    new = to.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    # OMB's own configure defines these; the rest of what it finds out is for GPUs, Java and Python
    flags = [f'-DPACKAGE_VERSION="{version_of(folder)}"', "-DFIELD_WIDTH=18", "-DFLOAT_PRECISION=2"]
    flags = ["-O2", "-w", *flags, f"-I{util}"]
    common = [
        str(one) for one in util.glob("osu_util*.c") if not one.stem.endswith(("pgas", "sycl"))
    ]
    objects = [f"{Path(one).stem}.o" for one in common]
    sources = [next(folder.rglob(f"{one.program}.c"), None) for one in OPERATIONS.values()]
    own = [
        [cc, *flags, str(one), *objects, "-o", one.stem, "-lm", "-lpthread"]
        for one in sources
        if one
    ]
    own.append([cc, "-O2", str(VERIFY), "-o", "verify"])
    for command in ([cc, *flags, "-c", *common], *own):
        done = run(command, env=environment, cwd=new)
        if not done.ok:
            raise BuildFailed(
                f"{Path(command[-1]).name}: could not be compiled",
                cc,
                found=" | ".join(done.said.splitlines()[:4]),
                todo="see that the MPI has headers and that its wrapper's compiler is installed",
            )
    new.rename(to)
