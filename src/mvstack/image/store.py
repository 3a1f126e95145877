"""The images that were built here: one folder a version, with what is known of it.

``<images>/<release>/<system>-<partition>/<version>/image.json`` says in which state a version is,
which of its steps are done and what came of them; the artefacts lie beside it. A version that is a
candidate never changes again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.errors import InvalidInput, Locked, Missing, Problem, Refused
from mvstack.files import write_atomically

STATES = ("building", "candidate", "tested", "published")


@dataclass
class Version:
    """One version of an image: its folder and what image.json says of it."""

    folder: Path
    data: dict[str, Any]

    @property
    def version(self) -> str:
        """``2026.11.0``."""
        return str(self.data["version"])

    @property
    def state(self) -> str:
        """building, candidate (whole, not tested), tested, or published."""
        return str(self.data["state"])

    @property
    def title(self) -> str:
        """``qemu-debian12-mpich 2026.11.0``."""
        return f"{self.data['image']} {self.version}"

    def done(self, step: str) -> bool:
        """Whether ``step`` was ended in an earlier run."""
        return step in self.data["steps"]

    def note(self, step: str, seconds: float, **facts: Any) -> None:
        """Keep that ``step`` is done, how long it took, and what came of it."""
        self.data["steps"][step] = {"seconds": round(seconds, 1), **facts}
        self.save()

    def set(self, **facts: Any) -> None:
        """Keep facts of the version itself."""
        self.data.update(facts)
        self.save()

    def save(self) -> None:
        """Write image.json, whole or not at all."""
        write_atomically(self.folder / "image.json", json.dumps(self.data, indent=1) + "\n")


def images_folder(root: str) -> Path:
    """Where images are kept: MVSTACK_IMAGES, else ``images`` below the install root."""
    chosen = os.environ.get("MVSTACK_IMAGES", "")
    return Path(chosen).absolute() if chosen else Path(root) / "images"


def work_folder(version: Version) -> Path:
    """Where a version is worked on; not part of it."""
    return version.folder.parents[2] / "work" / str(version.data["build_id"])


def versions(folder: Path, release: str = "", image: str = "") -> list[Version]:
    """All versions below ``folder``, in order of image and number."""
    found = []
    for path in folder.glob(f"{release or '*'}/{image or '*'}/*/image.json"):
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(data, dict) and {"image", "version", "state", "steps"} <= set(data):
            found.append(Version(path.parent, data))
    return sorted(found, key=lambda one: (one.data["image"], _numbers(one.version)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def begin(
    folder: Path, release: str, image: str, inputs: str, asked: str | None, facts: dict[str, Any]
) -> Version:
    """The version to build: the one asked for, an unfinished one of the same inputs, or a new one.

    Raises InvalidInput for a version that is none of this release, Refused for one that is whole
    already: it never changes.
    """
    there = versions(folder, release, image)
    if asked is not None:
        _check(asked, release)
        same = [one for one in there if one.version == asked]
        if same and (same[0].state != "building" or same[0].data["inputs"] != inputs):
            raise Refused(
                Problem(
                    f"{same[0].title} is there already",
                    str(same[0].folder),
                    found=same[0].state,
                    because="a version of an image never changes"
                    if same[0].state != "building"
                    else "it was begun from other inputs",
                    todo="leave --version out for the next number, or "
                    "`mvstack image clean` to remove what was not finished",
                )
            )
        if same:
            return same[0]
        return _new(folder, release, image, asked, inputs, facts)
    for one in reversed(there):
        if one.state == "building" and one.data["inputs"] == inputs:
            return one
    last = max((_numbers(one.version)[-1] for one in there), default=-1)
    return _new(folder, release, image, f"{release}.{last + 1}", inputs, facts)


def _check(version: str, release: str) -> None:
    rest = version.removeprefix(f"{release}.")
    if rest == version or not re.fullmatch(r"0|[1-9][0-9]{0,5}", rest):
        raise InvalidInput(
            Problem(
                "this is no version of an image of this release",
                "--version",
                found=version,
                allowed=f"{release}.0, {release}.1, …",
                because="galleries want three numbers, and the first two are the release",
            )
        )


def _new(
    folder: Path, release: str, image: str, version: str, inputs: str, facts: dict[str, Any]
) -> Version:
    place = folder / release / image / version
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Missing(
            Problem(
                f"images cannot be kept there: {error.strerror}",
                str(place),
                todo="name another folder with --images or MVSTACK_IMAGES",
            )
        ) from None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    made = Version(
        place,
        {
            "image": image,
            "version": version,
            "release": release,
            "state": "building",
            "build_id": f"{stamp}-{secrets.token_hex(3)}",
            "inputs": inputs,
            **facts,
            "steps": {},
        },
    )
    made.save()
    return made


@contextlib.contextmanager
def locked(version: Version) -> Iterator[None]:
    """Hold the lock of one version. Raises Locked when another process builds or tests it."""
    work = work_folder(version)
    work.mkdir(parents=True, exist_ok=True)
    with (work / ".lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(
                Problem(
                    f"{version.title} is being worked on by another process",
                    str(version.folder),
                    todo="wait until it has ended",
                )
            ) from None
        yield


def busy(version: Version) -> bool:
    """Whether another process works on it."""
    try:
        with locked(version):
            return False
    except Locked:
        return True


def find(folder: Path, image: str, version: str | None, states: tuple[str, ...]) -> Version:
    """The version of ``image`` that is meant: the newest in one of ``states``, or the one named.

    Raises Refused when there is none.
    """
    there = versions(folder, image=image)
    fitting = [one for one in there if version in (None, one.version)]
    chosen = [one for one in fitting if one.state in states]
    if chosen:
        return chosen[-1]
    raise Refused(
        Problem(
            f"there is no version of {image} that is {' or '.join(states)}",
            str(folder),
            found=", ".join(f"{one.version} ({one.state})" for one in fitting) or "none",
            todo=f"mvstack image build {_asked(image)}",
        )
    )


def _asked(image: str) -> str:
    system, _, partition = image.rpartition("-")
    return f"{system}/{partition}" if system else image
