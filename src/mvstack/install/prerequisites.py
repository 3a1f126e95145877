"""What a machine must have from its distribution before anything can be built on it."""

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from mvstack.model.prerequisites import Family, Needed, family_of
from mvstack.support.errors import Missing
from mvstack.support.processes import english, follow, run

NOT_THERE = ("", "not-installed", "config-files", "half-installed", "unpacked", "half-configured")


@dataclass(frozen=True)
class Lacking:
    """What is not installed here and the command that installs it."""

    needed: list[Needed]
    family: Family

    def indispensable(self, planned: bool) -> bool:
        """Whether it holds something that nothing can be done without.

        ``planned`` says whether the plan is one that does without what the MPI stands on.
        """
        return any(not item.without or (item.planned and not planned) for item in self.needed)

    @property
    def commands(self) -> list[list[str]]:
        """What to run as root, in order."""
        names = [item.package for item in self.needed]
        return [shlex.split(self.family.update), [*shlex.split(self.family.install), *names]]

    @property
    def line(self) -> str:
        """The same as one line for a person."""
        return " && ".join(shlex.join(command) for command in self.commands)


def lacking(os_name: str, profile: str = "") -> Lacking | None:
    """What of the prerequisites is not installed on this machine; None when all is there.

    ``profile`` is how much of a release is to be installed. ``os_name`` is a word such as debian12.
    Raises Missing where the family is not known.
    """
    family = family_of(os_name)
    needed = [item for item in family.of(profile) if not _present(family, item)]
    return Lacking(needed, family) if needed else None


def install_missing(missing: Lacking, log: Path) -> None:
    """Install what is missing. Raises Missing with the end of the log when that fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        said: list[str] = []

        def line(text: str) -> None:
            said.append(text)
            stream.write(f"{text}\n")

        for command in missing.commands:
            try:
                status = follow(command, english(DEBIAN_FRONTEND="noninteractive"), line=line)
            except OSError as error:
                raise Missing(f"{command[0]}: {error.strerror}", str(log)) from None
            if status:
                raise Missing(
                    f"`{shlex.join(command)}` failed with status {status}",
                    str(log),
                    found=" | ".join(said[-3:]),
                    todo="mend what it says and run the same command again",
                )


def refuse(missing: Lacking) -> Missing:
    """The error that says what is missing, what for, and how to get it."""
    return Missing(
        f"{len(missing.needed)} packages that a build needs are not installed",
        found="missing: " + ", ".join(f"{n.package} ({n.why})" for n in missing.needed),
        todo=f"as root: {missing.line}    or, as root, the same command with --yes",
        outcome="Nothing was installed.",
    )


def _present(family: Family, item: Needed) -> bool:
    if os.geteuid() != 0 and item.command and shutil.which(os.path.expandvars(item.command)):
        return True
    command = shlex.split(family.present.replace("{package}", item.package))
    try:
        done = run(command)
    except OSError:
        return False
    # dpkg-query also knows packages that were removed, and those that are half there
    return done.ok and done.text.strip() not in NOT_THERE
