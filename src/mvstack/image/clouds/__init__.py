"""What a cloud is to us: it holds images, and what builds of images leave behind.

Everything that a build makes carries tags (TAG and its like), so that it can be found again without
any record of ours. ``aws`` and ``azure`` are the two clouds; each imports its SDK only when used.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from mvstack.image.plan import ImagePlan
from mvstack.support.errors import Refused

State = Literal["building", "candidate", "published"]

TAG, OURS = "mvapich-stack", "image"  # the tag that everything of ours has, and its value
BUILD, IMAGE, VERSION = f"{TAG}-build", f"{TAG}-image", f"{TAG}-version"
STATE, COMMIT = f"{TAG}-state", f"{TAG}-commit"
END = f"{TAG}-end-of-life"

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-")


@dataclass(frozen=True)
class Leftover:
    """One thing that a build made and that nobody needs once that build has ended.

    ``kind`` is the cloud's own word (instance, resource group, …), ``id`` names it there. ``build``
    is the build's id, empty where the thing has no tags and was found by what it belongs to.
    ``created`` is UTC, as ``2026-11-21T21:15:00Z``, or empty where the cloud does not say.
    """

    kind: str
    id: str
    build: str
    image: str
    created: str
    region: str


@dataclass(frozen=True)
class CloudImage:
    """One version of an image, with its identifier in each region that it is in.

    ``end`` is its last day as ``2027-06-30``, once it is deprecated.
    """

    image: str
    version: str
    state: State
    build: str
    commit: str
    created: str
    regions: dict[str, str] = field(hash=False)
    end: str = ""


@dataclass(frozen=True)
class Booted:
    """What ``count`` machines are started with to test ``image`` on its own size.

    ``key`` is the public key that lets the image's user in, ``build`` names the run in their tags.
    They end by themselves after ``minutes``. ``site`` is the site's file, with its network.
    """

    image: ImagePlan
    key: str
    build: str
    minutes: int
    site: Mapping[str, Any]
    count: int = 1


class Cloud(Protocol):
    """What the steps of `mvstack image` ask of a cloud.

    Every method raises Missing (no SDK, no credentials), Refused (the cloud does not allow it) or
    MvstackError (anything else that the cloud answers), each with the cloud's own words.
    """

    name: str

    def leftovers(self) -> list[Leftover]:
        """What is in state ``building``, and what belongs to it, in the order to remove it in.

        A cloud does not know which builds still run: the caller leaves those out, by ``build``.
        """
        ...

    def remove(self, leftover: Leftover) -> None:
        """Remove it and wait until it is gone. It is no error when it is gone already."""
        ...

    def images(self) -> list[CloudImage]:
        """Candidates and published images, by name and version."""
        ...

    def disk(self, image: str, version: str, to: Path, note: Callable[[str], None]) -> None:
        """Write the disk of a version that was built to ``to``, raw: what is audited is the disk.

        Raises Refused when that version was never built.
        """
        ...

    def accept(self, image: str, version: str) -> None:
        """Call a built image a candidate, after its tests. Changes nothing when it is one.

        Raises Refused when that version was never built or is published.
        """
        ...

    def publish(
        self, image: str, version: str, regions: Sequence[str], again: bool = False
    ) -> dict[str, str]:
        """Make a candidate available in ``regions``; where it is now.

        What is there is not copied again, so that it can be run again after it was cut off. Raises
        Refused when that version was never built, is published already or no candidate yet; with
        ``again``, which brings it to more regions, when it is not published or past its last day.
        """
        ...

    def machines(self, version: str, how: Booted) -> AbstractContextManager[list[str]]:
        """Start machines of a version; their addresses in the site's network. The block ends them.

        Raises Refused when that version was never built.
        """
        ...

    def deprecate(self, image: str, version: str, last: date) -> dict[str, str]:
        """Tell users that ``last`` is the last day of a published version; where it is.

        It still starts, and newest no longer means it. Raises Refused when it is not published.
        """
        ...

    def delete(self, image: str, version: str) -> dict[str, str]:
        """Delete a version whose last day is over, in every region; where it was.

        Can be run again after it was cut off. Raises Refused before that day.
        """
        ...


def image_name(image: str, version: str) -> str:
    """The name of a version in a cloud: ``mvapich-stack-azure-hbv4-hpc-2026.11.0``."""
    return f"{TAG}-{image}-{version}"


def ours(tags: Mapping[str, str]) -> bool:
    """Whether what has these tags was made by a build of ours."""
    return tags.get(TAG) == OURS


def when(build: str) -> str:
    """When a build began, from its id; empty when it is not of that form."""
    if found := _STAMP.match(build):
        try:
            began = datetime(*(int(part) for part in found.groups()), tzinfo=UTC)  # type: ignore[arg-type,misc]
        except ValueError:
            return ""
        return began.strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


def never_built(image: str, version: str, where: str) -> Refused:
    """The error for a version that is not there."""
    return Refused(
        f"version {version} of {image} was never built",
        where,
        found=f"nothing there is called {image_name(image, version)}",
        todo="`mvstack image list` shows what there is; `mvstack image build` builds",
        outcome="Nothing was published.",
    )


def published_already(image: str, version: str, where: str) -> Refused:
    """The error for a version that may not be changed any more."""
    return Refused(
        f"version {version} of {image} is published already",
        where,
        because="a published version never changes: whoever started it can start it again",
        todo="build and publish the next version",
        outcome="Nothing was changed.",
    )


def must_be_candidate(image: str, version: str, state: str, where: str) -> None:
    """Raise Refused when a version in that state may not be published."""
    if state == "published":
        raise published_already(image, version, where)
    if state != "candidate":
        raise Refused(
            f"version {version} of {image} is no candidate",
            where,
            found=f"{STATE} = {state}" if state else f"no tag {STATE}",
            allowed=f"{STATE} = candidate",
            because="its build has not ended, or its tests did not pass",
            todo="see how the build ended; `mvstack image clean` removes what it left",
            outcome="Nothing was published.",
        )


def must_be_published(image: str, version: str, state: str, where: str) -> None:
    """Raise Refused when a version in that state has no users yet."""
    if state != "published":
        raise Refused(
            f"version {version} of {image} is not published",
            where,
            found=f"{STATE} = {state}" if state else f"no tag {STATE}",
            todo="`mvstack image clean` removes what builds left",
            outcome="Nothing was changed.",
        )


def is_over(end: str) -> bool:
    """Whether a version's last day, as ``2027-06-30`` or "" for none, is over (UTC)."""
    return bool(end) and end < datetime.now(UTC).strftime("%Y-%m-%d")


def not_over(what: str, end: str, where: str) -> None:
    """Raise Refused for a version past its last day, which nobody should begin to use."""
    if is_over(end):
        raise Refused(
            f"{what} is past its last day",
            where,
            found=end,
            todo="build a newer one",
            outcome="Nothing was changed.",
        )


def must_be_over(image: str, version: str, end: str, where: str) -> None:
    """Raise Refused unless the last day of a version, ``end``, is over (UTC)."""
    if not is_over(end):
        raise Refused(
            f"version {version} of {image} may still be used",
            where,
            found=f"its last day is {end}" if end else "it is not deprecated",
            because="clusters that start machines of it would stop growing",
            todo="delete it after that day" if end else "mvstack image deprecate … --last DAY",
            outcome="Nothing was deleted.",
        )
