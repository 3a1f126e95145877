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
Named = Annotated[list[str] | None, _place("Systems or partitions; all systems if none is named.")]
_ONE = "A partition of a system or of a system file; the system alone if it has no other."
Partition = Annotated[str, _place(_ONE, "SYSTEM/PARTITION")]
_NAMED = "Install these packages and what they need; else the whole profile."
_PACKAGE = Argument(metavar="PACKAGE", help=_NAMED, autocompletion=packages)
Packages = Annotated[list[str] | None, _PACKAGE]
Json = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
_ROOT = "Install root; else MVSTACK_ROOT, that of the system's file, or the default."
Root = Annotated[Path | None, Option("--root", metavar="DIR", help=_ROOT)]
_RELEASE = Option("--release", help="Release; else the newest.", autocompletion=_releases)
ReleaseName = Annotated[str | None, _RELEASE]
_PROFILE = (
    "How much of the release: the MPI and its benchmarks; with FFTW, hypre and mpi4py; "
    "or all libraries and applications. Else as installed, or as the partition's file says."
)
_Some = Literal["default", "small", "full"] | None
Profile = Annotated[_Some, Option("--profile", help=_PROFILE)]
Jobs = Annotated[int | None, Option("--jobs", "-j", min=1, help="Number of parallel compile jobs.")]
_YES = "Install missing packages of the distribution without asking (as root)."
Yes = Annotated[bool, Option("--yes", envvar="MVSTACK_YES", help=_YES)]
_CHECKED = "Check that the distribution's packages are installed."
Prerequisites = Annotated[bool, Option(help=_CHECKED)]
_GOING = "After a failed build, continue with what does not need it."
KeepGoing = Annotated[bool, Option("--keep-going", "-k", help=_GOING)]
_CACHE = "Binary cache to ask first, before those of MVSTACK_CACHES; may be repeated."
Caches = Annotated[list[str] | None, Option("--cache", metavar="DIR|URL", help=_CACHE)]
_TAG = Option("--tag", help="Run only checks with this tag; may be repeated.")
Tags = Annotated[list[str] | None, _TAG]
_KEY = "Key to sign with, if there are several."
Key = Annotated[str, Option("--key", metavar="FINGERPRINT", help=_KEY)]


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
