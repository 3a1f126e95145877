"""The images that were built here: one folder a version, with what is known of it.

``<images>/<release>/<system>-<partition>/<version>/image.json`` says in which state a version is,
which of its steps are done and what came of them; the artefacts lie beside it. A version that is a
candidate never changes again.
"""

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.support import locks
from mvstack.support.errors import InvalidInput, Locked, Missing, Refused
from mvstack.support.files import full, write_atomically

STATES = ("building", "candidate", "tested", "published")
WORK, BASE = "work", "base"  # beside the releases: where versions are worked on; base disks
_BUILD = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


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

    @property
    def goes_on(self) -> bool:
        """Whether its build was not ended: it is not whole, or its first test was cut off."""
        return self.state == "building" or bool(
            self.state == "candidate" and self.data.get("testing")
        )

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
    return full(chosen) if chosen else Path(root) / "images"


def work_folder(version: Version) -> Path:
    """Where a version is worked on; not part of it."""
    return version.folder.parents[2] / WORK / str(version.data["build_id"])


def versions(folder: Path, release: str = "", image: str = "") -> list[Version]:
    """All versions below ``folder``, in order of image and number; see also :func:`damaged`."""
    found = []
    for place in _places(folder, release, image):
        if data := _record(place):
            found.append(Version(place, data))
    return sorted(found, key=lambda one: (one.data["image"], _numbers(one.version)))


def damaged(folder: Path, release: str = "", image: str = "") -> list[Path]:
    """Folders of versions that hold something and no record that can be believed."""
    return [
        place
        for place in sorted(_places(folder, release, image))
        if not _record(place) and any(place.iterdir())
    ]


def _places(folder: Path, release: str, image: str) -> list[Path]:
    found = folder.glob(f"{release or '*'}/{image or '*'}/*")
    return [
        place
        for place in found
        if place.parents[1].name not in (WORK, BASE)
        and place.name.startswith(f"{place.parents[1].name}.")
        and place.is_dir()
    ]


def _record(place: Path) -> dict[str, Any] | None:
    """image.json of a version's folder; None unless it is one, and that folder's own."""
    try:
        data = json.loads((place / "image.json").read_text())
    except (OSError, ValueError):
        return None
    names = ("image", "version", "release", "state", "build_id", "inputs")
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in names):
        return None
    here = (place.parent.name, place.name)
    believed = (data["image"], data["version"]) == here and isinstance(data.get("steps"), dict)
    # the build's id names a folder that `clean` removes
    known = data["state"] in STATES and _BUILD.fullmatch(data["build_id"])
    return data if believed and known else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def begin(
    folder: Path, release: str, image: str, inputs: str, asked: str | None, facts: dict[str, Any]
) -> Version:
    """The version to build: the one asked for, an unfinished one of the same inputs, or a new one.

    One whose first test was cut off is unfinished too. Raises InvalidInput for a version that is
    none of this release, Refused for one that is whole already: it never changes.
    """
    there = versions(folder, release, image)
    if asked is not None:
        check(asked, release)
        same = [one for one in there if one.version == asked]
        if same and (not same[0].goes_on or same[0].data["inputs"] != inputs):
            raise Refused(
                f"{same[0].title} is there already",
                str(same[0].folder),
                found=same[0].state,
                because="a version of an image never changes"
                if not same[0].goes_on
                else "it was begun from other inputs",
                todo="leave --version out for the next number, or "
                "`mvstack image clean` to remove what was not finished",
            )
        if same:
            return same[0]
        return _new(folder, release, image, asked, inputs, facts)
    for one in reversed(there):
        if one.goes_on and one.data["inputs"] == inputs:
            return one
    # by the folders, not by their records: what lies below a damaged one is not written over
    places = _places(folder, release, image)
    last = max((_numbers(place.name)[-1] for place in places), default=-1)
    return _new(folder, release, image, f"{release}.{last + 1}", inputs, facts)


def check(version: str, release: str) -> None:
    """Raise InvalidInput for what is no version of an image of ``release``."""
    rest = version.removeprefix(f"{release}.")
    if rest == version or not re.fullmatch(r"0|[1-9][0-9]{0,5}", rest):
        raise InvalidInput(
            "this is not a version of an image of this release",
            "--version",
            found=version,
            allowed=f"{release}.0, {release}.1, …",
            because="galleries want three numbers, and the first two are the release",
        )


def _new(
    folder: Path, release: str, image: str, version: str, inputs: str, facts: dict[str, Any]
) -> Version:
    place = folder / release / image / version
    writable(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.mkdir()  # one of two builds that begin at the same time gets the number
    except FileExistsError:
        raise Refused(
            f"{image} {version} is there already",
            str(place),
            found="a folder without a record that can be read, or a build that begins now",
            todo="the same command again takes the next number; look into the folder, and "
            "remove it when nobody needs it",
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


def writable(folder: Path) -> None:
    """Make ``folder``. Raises Missing when nothing can be kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else "it may not be written to"
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            why = "its file system is read-only"
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise Missing(
            f"images cannot be kept there: {why}",
            str(folder),
            todo="name another folder with --images or MVSTACK_IMAGES",
        )


@contextlib.contextmanager
def locked(version: Version) -> Iterator[None]:
    """Hold the lock of one version. Raises Locked when another process builds or tests it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(work_folder(version) / ".lock", wait=False))
        except locks.Held as held:
            raise Locked(
                f"{version.title} is being worked on by another process",
                str(version.folder),
                found=held.holder,
                todo="wait until it has ended",
            ) from None
        # what another process did of it until now
        version.data.update(_record(version.folder) or {})
        yield


def busy(version: Version) -> bool:
    """Whether another process works on it. Writes nothing: it may be somebody else's folder."""
    return locks.is_held(work_folder(version) / ".lock")


def find(
    folder: Path, image: str, version: str | None, states: tuple[str, ...], release: str = ""
) -> Version:
    """The version of ``image`` that is meant: the newest in one of ``states``, or the one named.

    Raises Refused when there is none.
    """
    there = versions(folder, release, image)
    fitting = [one for one in there if version in (None, one.version)]
    chosen = [one for one in fitting if one.state in states]
    if chosen:
        return chosen[-1]
    raise Refused(
        f"there is no version of {image} that is {' or '.join(states)}",
        str(folder),
        found=", ".join(
            [
                *(f"{one.version} ({one.state})" for one in fitting),
                *(f"{one.name} (damaged)" for one in damaged(folder, release, image)),
            ]
        )
        or "none",
        todo=f"mvstack image build {_asked(image)}",
    )


def _asked(image: str) -> str:
    system, _, partition = image.rpartition("-")
    return f"{system}/{partition}" if system else image
