"""What can go wrong, said so that a person can act on it.

Every failure that a user can cause or mend is an :class:`MvstackError` holding one or more
:class:`Problem`. A problem names the place, what was found, what is allowed, the nearest valid
word, why, and what to do. The command line prints them and exits with ``exit_code``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from mvstack.support.units import clean


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    ``where`` is ``file:line`` or the name of what is at fault (a host, a package, a partition);
    ``message`` is one sentence. The other fields are printed below it, each on a line of its own,
    when they are set: ``found``, ``allowed``, ``nearest`` (the valid word or row closest to what
    was found), ``because`` (the reason and its source) and ``todo`` (what to do next).
    """

    message: str
    where: str = ""
    found: str = ""
    allowed: str = ""
    nearest: str = ""
    because: str = ""
    todo: str = ""

    def lines(self) -> list[str]:
        """The problem as text: a headline, then one indented line for each field that is set."""
        said = self.as_dict()
        head = ": ".join(said.pop(name) for name in ("where", "message") if name in said)
        labels = {"todo": "to go on"}
        lines = [head, *(f"    {labels.get(name, name):<9} {text}" for name, text in said.items())]
        return [clean(line) for line in lines]  # what it quotes must not steer a terminal

    def as_dict(self) -> dict[str, Any]:
        """The fields that are set, for ``--json``."""
        return {key: value for key, value in asdict(self).items() if value}


class Fields(TypedDict, total=False):
    """The fields of a :class:`Problem` that may be left out."""

    where: str
    found: str
    allowed: str
    nearest: str
    because: str
    todo: str


class MvstackError(Exception):
    """A failure with its problems, or the message and fields of its only one.

    Subclasses differ only in ``exit_code`` and ``title``.
    """

    exit_code = 1
    title = "failed"

    def __init__(self, *said: Problem | str, outcome: str = "", **fields: Unpack[Fields]) -> None:
        """``said`` is problems, or the message of the only one and its place.

        ``outcome`` says what was and was not done, e.g. "Nothing was rendered.".
        """
        words = [one for one in said if isinstance(one, str)]
        self.problems = [one for one in said if isinstance(one, Problem)]
        if words:
            self.problems.append(Problem(*words, **fields))
        self.outcome = outcome
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [line for problem in self.problems for line in problem.lines()]
        count = len(self.problems)
        tail = f"{count} errors. {self.outcome}" if count > 1 else self.outcome
        return "\n".join([*lines, *([tail.strip()] if tail.strip() else [])])

    def as_dict(self) -> dict[str, Any]:
        """The error with all its problems, for ``--json``."""
        return {
            "error": self.title,
            "exit_code": self.exit_code,
            "problems": [problem.as_dict() for problem in self.problems],
            "outcome": self.outcome,
        }


class CheckFailed(MvstackError):
    """A check ran and did not pass, or did not run at all."""

    exit_code, title = 1, "check failed"


class WrongUsage(MvstackError):
    """The command line itself is wrong: no such command or option, or one that is lacking."""

    exit_code, title = 2, "wrong usage"


class InvalidInput(MvstackError):
    """A hand-written file or an argument is wrong."""

    exit_code, title = 3, "invalid input"


class Refused(MvstackError):
    """What was asked for is understood, and no build or machine fits it."""

    exit_code, title = 4, "refused"


class SourceError(MvstackError):
    """A source cannot be obtained, or is not what its hash says."""

    exit_code, title = 5, "source"


class BuildFailed(MvstackError):
    """The builder (EasyBuild, Spack) failed."""

    exit_code, title = 6, "build failed"


class Missing(MvstackError):
    """Something that the machine must have is not there."""

    exit_code, title = 7, "missing on this machine"


class Locked(MvstackError):
    """Another process installs into the same root, or checks the same installation."""

    exit_code, title = 8, "locked"


@contextmanager
def telling(kind: type[MvstackError], what: str, **fields: Unpack[Fields]) -> Iterator[None]:
    """Raise ``kind`` for an OSError of the block: ``what``, and the system's words for why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}", **fields) from None


def together(errors: list[MvstackError], outcome: str = "") -> MvstackError:
    """All problems of ``errors`` in one, whatever their order; wrong input counts most."""
    kind = min((type(error) for error in errors), key=lambda one: one.exit_code)
    return kind(*(problem for error in errors for problem in error.problems), outcome=outcome)


@contextmanager
def gathered(errors: list[MvstackError]) -> Iterator[None]:
    """Keep the error of this block in ``errors``: what is wrong with one thing stops no other."""
    try:
        yield
    except MvstackError as error:
        errors.append(error)


def relative(path: Path) -> str:
    """``path`` as a person would type it from here: relative when it is below this folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
