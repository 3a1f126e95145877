"""The arguments and options that commands share: one name, one help and one meaning each."""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option, Typer

from mvstack.model.load import load_release, load_system, release_names, system_names
from mvstack.support.errors import MvstackError
from mvstack.support.progress import Progress


def systems(incomplete: str) -> list[str]:
    """Systems, the partitions of one whose name is complete, and system files."""
    found = system_names()
    name, slash, _ = incomplete.partition("/")
    if slash and name in found:
        try:
            found = [f"{name}/{one}" for one in load_system(name).partitions]
        except MvstackError:
            return []
    files = map(str, (Path(incomplete).parent if slash else Path()).glob("*.yaml"))
    return [one for one in [*found, *files] if one.startswith(incomplete)]


def _releases(incomplete: str) -> list[str]:
    return [name for name in release_names() if name.startswith(incomplete)]


def packages(incomplete: str) -> list[str]:
    """The packages of the newest release, in small letters."""
    names = dict.fromkeys(one.name.lower() for one in load_release().packages)
    return [name for name in names if name.startswith(incomplete.lower())]


def _place(help: str, metavar: str = "SYSTEM[/PARTITION]|FILE") -> Any:
    return Argument(metavar=metavar, help=help, autocompletion=systems)


System = Annotated[str, _place("A system, one of its partitions, or a system file.")]
Systems = Annotated[
    list[str] | None, _place("Systems, partitions or system files; all systems if none is named.")
]
_ONE = "A partition of a system or of a system file; the system alone if it has no other."
Partition = Annotated[str, _place(_ONE, "SYSTEM/PARTITION")]
Packages = Annotated[
    list[str] | None,
    Argument(
        metavar="PACKAGE",
        help="Install these packages and what they need; else the whole profile.",
        autocompletion=packages,
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Root = Annotated[
    Path | None,
    Option(
        "--root",
        metavar="DIR",
        help="Install root; else MVSTACK_ROOT, that of the system's file, or the default.",
    ),
]
ReleaseName = Annotated[
    str | None,
    Option("--release", help="Release; else the newest.", autocompletion=_releases),
]
Profile = Annotated[
    Literal["default", "small", "full"] | None,
    Option(
        "--profile",
        help="How much of the release: the MPI and its benchmarks; with FFTW, hypre and mpi4py; "
        "or all libraries and applications. Else as installed, or as the partition's file says.",
    ),
]
Jobs = Annotated[int | None, Option("--jobs", "-j", min=1, help="Number of parallel compile jobs.")]
Yes = Annotated[
    bool,
    Option(
        "--yes",
        envvar="MVSTACK_YES",
        help="Install missing packages of the distribution without asking (as root).",
    ),
]
Prerequisites = Annotated[
    bool, Option(help="Check that the distribution's packages are installed.")
]
KeepGoing = Annotated[
    bool,
    Option("--keep-going", "-k", help="After a failed build, continue with what does not need it."),
]
Caches = Annotated[
    list[str] | None,
    Option(
        "--cache",
        metavar="DIR|URL",
        help="Binary cache to ask first, before those of MVSTACK_CACHES; may be repeated.",
    ),
]
Tags = Annotated[
    list[str] | None, Option("--tag", help="Run only checks with this tag; may be repeated.")
]
Key = Annotated[
    str,
    Option("--key", metavar="FINGERPRINT", help="Key to sign with, if there are several."),
]


def commands(help: str | None = None) -> Typer:
    """What holds a command, or with ``help`` a group of them."""
    return Typer(help=help, no_args_is_help=True, add_completion=False)


def progress(as_json: bool, total: int = 0) -> Progress:
    """What shows how far a command is; nothing beside JSON."""
    return Progress(total, mode="quiet" if as_json else "auto")


def passed(results: dict[str, Any]) -> str:
    """How many checks of ReFrame's run passed, in words."""
    count = sum(case["result"] == "pass" for case in results["cases"])
    return (
        f"{count} of {len(results['cases'])} checks passed, "
        f"{len(results['skipped'])} skipped, in {results['seconds']:.0f} s"
    )
