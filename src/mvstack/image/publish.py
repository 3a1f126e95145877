"""`mvstack image publish`: a version once, and only one that may be."""

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.image import papers, sign, store
from mvstack.image.artefacts import SUMS
from mvstack.image.clouds import not_over
from mvstack.image.flow import Asked
from mvstack.image.plan import ImagePlan
from mvstack.image.site import cloud, read_site
from mvstack.image.store import Version
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.files import full
from mvstack.support.progress import Progress


@dataclass(frozen=True)
class Target:
    """Where a version is published to: a folder, or regions and accounts of a site's cloud."""

    to: Path | None = None
    site: Path | None = None
    regions: Sequence[str] = ()
    share: Sequence[str] = ()


def publish_image(
    asked: Asked, number: str | None, target: Target, unknown_is_fine: bool, progress: Progress
) -> dict[str, Any]:
    """`mvstack image publish`: a tested version, once; where it is now.

    Raises Refused for a version that was not tested, not signed, published already, or whose
    vulnerabilities are in the way.
    """
    plan, image = asked.plan("publish")
    _fits_cloud(image, target)
    site = read_site(target.site)
    there = cloud(image.cloud, site, target.share) if image.cloud != "qemu" else None
    version = store.find(asked.folder(plan.root), image.name, number, store.STATES[1:])
    with store.locked(version):
        _may_be_published(version, image, unknown_is_fine)
        with progress.step("publish", version.title):
            if there is None:
                assert target.to is not None
                where = _to_folder(version, target.to)
            else:
                where = there.publish(image.name, version.version, list(target.regions))
        version.set(
            state="published", published={"at": time.strftime("%FT%TZ", time.gmtime()), **where}
        )
    return {"image": image.name, "version": version.version, **where}


def _fits_cloud(image: ImagePlan, target: Target) -> None:
    """Refuse options of another cloud than the image's, which would do nothing without a word."""
    given = {
        "--to": (target.to is not None, ("qemu",)),
        "--settings": (target.site is not None, ("aws", "azure")),
        "--region": (bool(target.regions), ("aws", "azure")),
        "--share": (bool(target.share), ("aws",)),
    }
    problems = [
        Problem(
            f"{option} says nothing of an image of {image.cloud}",
            option,
            allowed=f"for {' and '.join(clouds)}",
            todo="leave it out",
        )
        for option, (there, clouds) in given.items()
        if there and image.cloud not in clouds
    ]
    if image.cloud == "qemu" and target.to is None:
        problems.append(
            Problem("an image for QEMU is published to a folder", todo="name it: --to FOLDER")
        )
    problems += [
        Problem("is no AWS account", "--share", found=one, allowed="12 digits")
        for one in target.share
        if not re.fullmatch(r"[0-9]{12}", one)
    ]
    if problems:
        raise InvalidInput(*problems, outcome="Nothing was published.")


def _may_be_published(version: Version, image: ImagePlan, unknown_is_fine: bool) -> None:
    problems = []
    if version.state == "published":
        raise Refused(
            f"{version.title} is published already",
            str(version.folder),
            because="a published version never changes",
            todo=f"mvstack image build {image.system}/{image.partition}   (the next version)",
            outcome="Nothing was changed.",
        )
    if version.state != "tested":
        host = "" if image.cloud == "qemu" else " --host NAME"
        problems.append(
            Problem(
                f"{version.title} was not tested",
                str(version.folder),
                found=version.state,
                because="only a machine that was started from it shows that it starts",
                todo=f"mvstack image test {image.system}/{image.partition}{host}",
            )
        )
    elif not version.data.get("signed"):
        problems.append(
            Problem(
                f"{version.title} is not signed",
                str(version.folder),
                found=version.data.get("why_unsigned", ""),
                todo='mvstack cache keys create "Name of the site", once; then '
                f"mvstack image test {image.system}/{image.partition}, which signs",
            )
        )
    not_over(version.title, version.data.get("last_day", ""), str(version.folder))
    if version.data.get("signed"):
        sign.verify(version.folder)
    known = version.data.get("vulnerabilities") or {"state": "unknown", "why": "nobody looked"}
    if known["state"] == "failed" or (known["state"] == "unknown" and not unknown_is_fine):
        problems.append(
            Problem(
                f"the vulnerabilities of {version.title} are {known['state']}",
                str(version.folder / papers.VULNERABILITIES),
                found=known["why"],
                todo="MVSTACK_OSV=FOLDER mvstack image build … (osv.dev's database); what is in "
                "the way is mended, or accepted in images/vulnerabilities-accepted.yaml; where no "
                "database can be obtained: --vulnerabilities-unknown",
            )
        )
    if problems:
        raise Refused(*problems, outcome="Nothing was published.")


def _to_folder(version: Version, to: Path) -> dict[str, str]:
    """Copy a version to a folder of images: whole or not at all, never over one that is there."""
    target = full(to) / version.data["image"] / version.version
    if target.exists():
        sums = target / SUMS
        if sums.is_file() and sums.read_bytes() == (version.folder / SUMS).read_bytes():
            sign.verify(target)  # it was cut off after the copy, and before that was kept
            return {"folder": str(target)}
        raise Refused(
            f"{version.title} is there already",
            str(target),
            because="a published version never changes",
            todo="build the next version",
            outcome="Nothing was changed.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.parent / f".incoming-{version.data['build_id']}"
    shutil.rmtree(part, ignore_errors=True)  # of this version, which we hold: it was cut off
    part.mkdir()
    try:
        names = [*sign.verify(version.folder).files, SUMS, sign.signature(version.folder).name]
        for one in names:
            (part / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(version.folder / one, part / one)
        sign.verify(part)
        part.chmod(0o755)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"folder": str(target)}
