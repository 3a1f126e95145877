"""Run EasyBuild for one easyconfig and follow what it does."""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.following import follow_into, inherited, lines_of, objects_in
from mvstack.plan.easyconfigs import FOLDER, folders
from mvstack.support import processes
from mvstack.support.errors import BuildFailed, Missing
from mvstack.tree.folder import MARK
from mvstack.tree.modules import lmod_command

# Not what a user has on PATH before it: a pyenv, or the environment that runs this very program.
SYSTEM_PATH = "/usr/bin:/bin"
STEP = re.compile(r"^== ([a-z][^.\[]*?)\.\.\.\s*$")


@dataclass(frozen=True)
class EasyBuild:
    """EasyBuild as it is run for one tree."""

    root: Path
    tree: Path
    rendered: Path
    system_compiler: bool
    umask: str = "022"
    jobs: int | None = None
    optimization: str = ""
    from_distribution: tuple[str, ...] = ()
    python: Path | None = None

    @property
    def build(self) -> Path:
        """Where packages are compiled; emptied after each."""
        return self.tree / "build"

    def command(self, easyconfig: str, *more: str) -> list[str]:
        """The whole command line that installs ``easyconfig``."""
        ours = folders()
        wraps = [folder / "system" for folder in ours] if self.system_compiler else []
        robot = [self.rendered / "easyconfigs", *wraps, *ours]
        blocks = matching(ours, "easyblocks/*.py")
        chains = matching(ours, "toolchains/*.py", "toolchains/*/*.py")
        options = [
            f"--installpath={self.tree}",
            "--subdir-modules=modules",
            "--suffix-modules-path=",
            "--subdir-software=software",
            f"--buildpath={self.build}",
            f"--tmpdir={self.tree}/logs/tmp",
            f"--repositorypath={self.tree}/ebfiles_repo",
            f"--sourcepath={self.root}/sources/easybuild",
            "--modules-tool=Lmod",
            "--module-syntax=Lua",
            f"--include-easyblocks={blocks}",
            f"--include-toolchains={chains}",
            f"--include-module-naming-schemes={FOLDER}/naming/*.py",
            "--module-naming-scheme=MvapichStackMNS",
            f"--hooks={FOLDER}/hooks.py",
            f"--robot={':'.join(str(path) for path in robot)}",
            f"--umask={self.umask}",
            # an RPATH wrapper adds 0.3 s to each compile, and modules set LD_LIBRARY_PATH
            "--disable-rpath",
            "--allow-use-as-root-and-accept-consequences",
            "--disable-cleanup-tmpdir",
            # ours is the lock of the root; EasyBuild would stop at what a killed run left
            "--ignore-locks",
        ]
        if not self.system_compiler:  # a name on the command line is looked for in all folders
            options.append("--ignore-dirs=.git,.svn,system")
        if shutil.which("ccache"):
            options.append(f"--use-ccache={self.root}/ccache")
        if self.optimization:  # else EasyBuild's own choice, -march=native
            options.append(f"--optarch=GCC:{self.optimization}")
        if self.from_distribution:  # tools and libraries that no package is built for
            options.append(f"--filter-deps={','.join(self.from_distribution)}")
        if self.jobs:
            options.append(f"--parallel={self.jobs}")
        return [*_program(), *options, *more, easyconfig]

    def environment(self) -> dict[str, str]:
        """The environment of EasyBuild: ours, without modules and settings of the caller."""
        kept = inherited("AWS_", "AZURE_")
        lmod = lmod_command(self.root)
        first = f"{self.python}:" if self.python else ""
        own = Path(sys.executable).parent
        return {
            **kept,
            MARK: str(self.tree),
            "LMOD_CMD": lmod,
            # last: EasyBuild finds its own easyconfigs beside `eb`, and builds the system's python
            "PATH": f"{Path(lmod).parent}:{first}{kept.get('PATH', '')}:{own}",
            # rich would break the paths of its messages into lines of 80 characters
            "COLUMNS": "4000",
            "XDG_CONFIG_HOME": str(self.tree / "logs" / "no-config"),
        }


def matching(folders: Sequence[Path], *patterns: str) -> str:
    """The patterns below ``folders`` that match a file: EasyBuild refuses one that does not."""
    every = ((folder, one) for folder in folders for one in patterns)
    return ",".join(f"{folder}/{one}" for folder, one in every if any(folder.glob(one)))


def python_for_builds(tree: Path) -> Path:
    """The folder whose ``python`` builds packages of ``tree``; made when it is not there.

    Debian's own installs packages into ``local/lib/python3.11/dist-packages``, where modules do not
    look for them. A virtual environment of it, which sees what the distribution has installed, puts
    them into ``lib/python3.11/site-packages`` as Python does everywhere else. What is built with it
    runs with the distribution's ``python3``.

    Raises Missing when the distribution has no Python, or none that can make an environment.
    """
    folder = tree / "build-python"
    if (folder / "bin" / "python").exists():
        return folder / "bin"
    python = shutil.which("python3", path=SYSTEM_PATH)
    if python is None:
        raise Missing("the distribution has no python3", todo="apt-get install python3")
    shutil.rmtree(folder, ignore_errors=True)
    command = [python, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)]
    done = processes.run(command)
    if not done.ok:
        shutil.rmtree(folder, ignore_errors=True)
        raise Missing(
            "the distribution's Python cannot make an environment to build packages in",
            python,
            found=(done.errors or done.text).strip()[-500:],
            todo="apt-get install python3-venv",
        )
    return folder / "bin"


def run(
    easybuild: EasyBuild,
    easyconfig: str,
    log: Path,
    note: Callable[[str], None],
    *more: str,
) -> dict[str, float]:
    """Install ``easyconfig``; the seconds of each of its steps, of which ``note`` is told.

    Raises BuildFailed with EasyBuild's own last words when it fails. Whatever ends this function
    ends EasyBuild and all its children with it.
    """
    step, since, steps = "starting", time.monotonic(), dict[str, float]()

    def passed(to: str) -> None:
        nonlocal step, since
        now = time.monotonic()
        steps[step] = steps.get(step, 0.0) + now - since
        step, since = to, now

    def line(text: str) -> None:
        if found := STEP.match(text):
            passed(found[1])
            note(step)

    def tick() -> None:
        # it has said nothing for a while: what is compiled can be counted
        count = objects_in([easybuild.build]) if step == "building" else 0
        note(f"{step}, {count} objects" if count else step)

    (easybuild.tree / "logs" / "tmp").mkdir(parents=True, exist_ok=True)
    command = easybuild.command(easyconfig, *more)
    if status := follow_into(log, command, easybuild.environment(), line, tick):
        raise _failure(easyconfig, status, log)
    passed("")
    shutil.rmtree(easybuild.build, ignore_errors=True)
    return {name: round(value, 1) for name, value in steps.items()}


def _failure(easyconfig: str, status: int, log: Path) -> BuildFailed:
    lines = lines_of(log)
    said = [line for line in lines if line.startswith(("ERROR", "== FAILED", "** "))] or lines[-3:]
    printed = _printed("\n".join(lines))
    return BuildFailed(
        f"EasyBuild could not install {easyconfig} (status {status})",
        str(log),
        found=" | ".join(dict.fromkeys(said[-4:]))[:1500],
        because=f"the command's last words were: {printed}" if printed else "",
        todo="read the log named above, correct the cause, and run the same command again",
        outcome="What was installed before stays; no module of the failed package can be loaded.",
    )


OUTPUT = re.compile(r"^output \(std.*?->\s+(\S+)$|^error/warnings \(stderr\)\s+->\s+(\S+)$", re.M)
LAST = 8  # lines of a command's output that an error quotes


def _printed(log: str) -> str:
    """The end of what the failed command printed; EasyBuild's log names the file that holds it."""
    for found in reversed(OUTPUT.findall(log)):
        with contextlib.suppress(OSError):
            if lines := lines_of(Path(found[0] or found[1])):
                return " | ".join(lines[-LAST:])[-1500:]
    return ""


def _program() -> list[str]:
    return [sys.executable, "-P", "-m", "easybuild.main"]
