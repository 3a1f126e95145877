"""One build of an image: what it is of, where it works, and how it says what it does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from mvstack.image.plan import ImagePlan
from mvstack.image.store import Version
from mvstack.plan.types import Plan
from mvstack.support.progress import Progress, Step


@dataclass(frozen=True)
class Wanted:
    """What a person says of a build beside the system.

    ``site`` is the site's own file of Packer variables (subscription, gallery, subnet, …),
    ``packages`` a list of exact versions, ``packed`` a folder with the release where it is not
    installed here (packed.py), ``last`` the last day on which the image is to be used.
    """

    version: str | None = None
    site: Path | None = None
    packages: Path | None = None
    packed: Path | None = None
    last: date | None = None


@dataclass(frozen=True)
class Job:
    """One build: what it is of, where it works, and how it says what it does."""

    plan: Plan
    image: ImagePlan
    wanted: Wanted
    version: Version
    work: Path
    files: dict[str, str]
    packages: str
    progress: Progress

    @property
    def log(self) -> Path:
        """The log of all steps but Packer's."""
        return self.work / "build.log"

    @contextmanager
    def step(self, name: str, what: str, log: Path | None = None) -> Iterator[Step]:
        """One step, shown, and kept when it ended well."""
        began = time.monotonic()
        with self.progress.step("image", what, log=log or self.log) as step:
            yield step
        self.version.note(name, time.monotonic() - began)
