"""`mvstack image replicate`, `deprecate` and `delete`: a version after it was published."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from mvstack.image import store
from mvstack.image.clouds import Cloud
from mvstack.image.flow import Asked
from mvstack.image.plan import ImagePlan
from mvstack.image.site import cloud, read_site
from mvstack.support.errors import InvalidInput


def replicate_image(
    asked: Asked, version: str, regions: Sequence[str], site: Path | None
) -> dict[str, Any]:
    """Bring a published version to more regions of its cloud; where it is now.

    Raises Refused for one that is not published or is past its last day.
    """
    image, there = _at(asked, site, (), "replicate")
    return {
        "image": image.name,
        "version": version,
        **there.publish(image.name, version, regions, again=True),
    }


def deprecate_image(
    asked: Asked, version: str, last: date, site: Path | None, regions: Sequence[str]
) -> dict[str, Any]:
    """Tell users that ``last`` is the last day of a published version; where it is.

    Raises InvalidInput for a day that is over and for an image of no cloud, Refused for a version
    that is not published.
    """
    if last < datetime.now(UTC).date():
        raise InvalidInput("that day is over", "--last", found=str(last))
    image, there = _at(asked, site, regions, "deprecate")
    where = there.deprecate(image.name, version, last)
    for one in store.versions(asked.folder(), image=image.name):
        if one.version == version:
            one.set(last_day=last.isoformat())
    return {"image": image.name, "version": version, "end_of_life": last.isoformat(), **where}


def delete_image(
    asked: Asked, version: str, site: Path | None, regions: Sequence[str]
) -> dict[str, Any]:
    """Delete a version whose last day is over; where it was. Raises Refused before."""
    image, there = _at(asked, site, regions, "delete")
    return {"image": image.name, "version": version, **there.delete(image.name, version)}


def _at(
    asked: Asked, site: Path | None, regions: Sequence[str], what: str
) -> tuple[ImagePlan, Cloud]:
    _, image = asked.plan(what)
    if image.cloud == "qemu":
        raise InvalidInput(
            f"{image.name} is published to a folder, not to a cloud",
            todo="remove the folder of the version",
        )
    known = read_site(site)
    copied = [*(known.get("aws_copy_regions") or []), *regions]
    return image, cloud(image.cloud, {**known, "aws_copy_regions": copied})
