"""Whole commands of `mvstack image`: build, test, publish, list, clean, validate."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack import stages
from mvstack.errors import (
    CheckFailed,
    InvalidInput,
    MvstackError,
    Problem,
    Refused,
    relative,
    together,
)
from mvstack.image import build as building
from mvstack.image import packer, papers, sign, store, testing
from mvstack.image.artefacts import SIGNATURE, SUMS
from mvstack.image.build import Job, Wanted
from mvstack.image.clouds import Cloud
from mvstack.image.kit import sha256
from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.render import packer_variables
from mvstack.image.store import Version
from mvstack.model.image_policy import image_policy
from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan import Plan, make_plan, partitions_of, split_name
from mvstack.progress import Progress


def planned(
    name: str, command: str, release: str | None = None, root: Path | None = None
) -> tuple[Plan, ImagePlan]:
    """The plan of the partition that ``name`` means, and of its image.

    Raises InvalidInput when it has several partitions and none is named, Refused without an image.
    """
    system, partitions = stages.load(name)
    partition = stages.only_one(name, partitions, f"image {command}")
    plan = stages.plan_for(system, partition, release, root)
    return plan, make_image(system, plan, image_policy())


def build_image(
    name: str,
    wanted: Wanted,
    *,
    release: str | None,
    root: Path | None,
    images: Path | None,
    jobs: int | None,
    yes: bool,
    key: str,
    with_test: bool,
    progress: Progress,
) -> Version:
    """`mvstack image build`: install the release here, build the image, test it, sign it."""
    from mvstack.flow import install_system

    plan, image = planned(name, "build", release, root)
    building.check_tools(image)
    _site(wanted.site)
    where = f"{image.system}/{image.partition}"
    install_system(where, release, root, jobs, yes, False, True, False, progress)
    folder = images or store.images_folder(plan.root)
    job = building.begin(plan, image, wanted, folder, progress)
    version = job.version
    with store.locked(version):
        if version.state == "building":
            building.build(job)
            if image.cloud != "qemu":
                cloud(image.cloud, _site(wanted.site)).accept(image.name, version.version)
        if with_test and image.cloud == "qemu" and version.state == "candidate":
            _test(job, key)
    return version


def test_image(
    name: str,
    asked: str | None,
    *,
    release: str | None,
    root: Path | None,
    images: Path | None,
    key: str,
    progress: Progress,
) -> Version:
    """`mvstack image test`: start a built image and run every test; a passed one is signed."""
    plan, image = planned(name, "test", release, root)
    folder = images or store.images_folder(plan.root)
    version = store.find(folder, image.name, asked, ("candidate", "tested", "published"))
    wanted = Wanted()
    work = store.work_folder(version)
    work.mkdir(parents=True, exist_ok=True)
    from mvstack.image.render import image_files

    job = Job(plan, image, wanted, version, work, image_files(plan, image), "", progress)
    with store.locked(version):
        _test(job, key)
    return version


def _test(job: Job, key: str) -> None:
    version = job.version
    published = version.state == "published"
    try:
        testing.test(job)
    except CheckFailed:
        if not published:
            version.set(state="candidate")
        raise
    version.set(tests=testing.passed(version))
    if published:
        return
    with job.step("provenance", "provenance and signature"):
        papers.origin(version, job.plan, job.image, job.image.downloads)
        try:
            version.set(signed=sign.sign(version.folder, key).signer)
        except Refused as error:
            # unsigned, it can be looked at and not published
            version.set(signed="", why_unsigned=str(error).splitlines()[0])
    version.set(state="tested")


def publish_image(
    name: str,
    asked: str | None,
    *,
    to: Path | None,
    site: Path | None,
    regions: Sequence[str],
    share: Sequence[str],
    root: Path | None,
    images: Path | None,
    unknown_is_fine: bool,
    progress: Progress,
) -> dict[str, Any]:
    """`mvstack image publish`: a tested version, once; where it is now.

    Raises Refused for a version that was not tested, not signed, published already, or whose
    vulnerabilities are in the way.
    """
    plan, image = planned(name, "publish", None, root)
    folder = images or store.images_folder(plan.root)
    states = ("candidate", "tested", "published") if image.cloud != "qemu" else store.STATES[1:]
    version = store.find(folder, image.name, asked, states)
    with store.locked(version):
        _may_be_published(version, image, unknown_is_fine)
        with progress.step("publish", version.title):
            if image.cloud == "qemu":
                where = _to_folder(version, to)
            else:
                done = cloud(image.cloud, _site(site), share).publish(
                    image.name, version.version, list(regions)
                )
                where = {region: str(one) for region, one in done.regions.items()}
        version.set(
            state="published", published={"at": time.strftime("%FT%TZ", time.gmtime()), **where}
        )
    return {"image": image.name, "version": version.version, **where}


def _may_be_published(version: Version, image: ImagePlan, unknown_is_fine: bool) -> None:
    problems = []
    if version.state == "published":
        raise Refused(
            Problem(
                f"{version.title} is published already",
                str(version.folder),
                because="a published version never changes",
                todo=f"mvstack image build {image.system}/{image.partition}   (the next version)",
            ),
            outcome="Nothing was changed.",
        )
    if image.cloud == "qemu":
        if version.state != "tested":
            problems.append(
                Problem(
                    f"{version.title} was not tested",
                    str(version.folder),
                    found=version.state,
                    todo=f"mvstack image test {image.system}/{image.partition}",
                )
            )
        else:
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
                "database can be had: --vulnerabilities-unknown",
            )
        )
    if problems:
        raise Refused(*problems, outcome="Nothing was published.")


def _to_folder(version: Version, to: Path | None) -> dict[str, str]:
    """Copy a version to a folder of images: whole or not at all, never over one that is there."""
    if to is None:
        raise InvalidInput(
            Problem("an image for QEMU is published to a folder", todo="name it: --to FOLDER")
        )
    target = to.absolute() / version.data["image"] / version.version
    if target.exists():
        raise Refused(
            Problem(
                f"{version.title} is there already",
                str(target),
                because="a published version never changes",
                todo="build the next version",
            ),
            outcome="Nothing was changed.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=".incoming-"))
    try:
        names = [*sign.verify(version.folder).files, SUMS, SIGNATURE]
        for one in names:
            (part / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(version.folder / one, part / one)
        sign.verify(part)
        part.chmod(0o755)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"folder": str(target)}


def list_images(
    root: Path | None, images: Path | None, where: str | None, site: Path | None
) -> list[dict[str, Any]]:
    """`mvstack image list`: what was built here, or what a cloud holds."""
    if where in ("aws", "azure"):
        return [dict(one.__dict__) for one in cloud(where, _site(site)).images()]
    folder = images or store.images_folder(str(root) if root else stages.default_root())
    rows = []
    for one in store.versions(folder):
        counts = one.data.get("tests") or {}
        rows.append(
            {
                "image": one.data["image"],
                "version": one.version,
                "state": one.state + (" (under way)" if store.busy(one) else ""),
                "tests": ", ".join(f"{n} {word}" for word, n in counts.items() if n) or "none",
                "vulnerabilities": (one.data.get("vulnerabilities") or {}).get("state", "unknown"),
                "signed": one.data.get("signed", ""),
                "folder": str(one.folder),
            }
        )
    return rows


def clean_images(
    root: Path | None,
    images: Path | None,
    where: str | None,
    site: Path | None,
    remove: bool,
    older: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    """`mvstack image clean`: what builds left behind; removed when ``remove``.

    Here: versions that were never whole and that nobody works on, and working folders. In a cloud:
    what carries our tags, is no image, and whose build began more than ``older`` hours ago: one
    that goes on on another machine cannot be seen from here. One that goes on here is left alone.
    """
    folder = images or store.images_folder(str(root) if root else stages.default_root())
    if where in ("aws", "azure"):
        return _clean_cloud(where, folder, site, remove, older, progress)
    rows = []
    for one in store.versions(folder):
        if store.busy(one):
            continue
        places = [store.work_folder(one)] if one.state != "building" else []
        if one.state == "building":
            places = [one.folder, store.work_folder(one)]
        for place in places:
            if not place.exists() or not any(p.name != ".lock" for p in place.iterdir()):
                continue
            what = "unfinished version" if place == one.folder else "working folder"
            size = sum(p.lstat().st_size for p in place.rglob("*") if p.is_file())
            rows.append({"kind": what, "id": str(place), "image": one.title, "bytes": size})
            if remove:
                with progress.step("remove", f"{what} of {one.title}"):
                    shutil.rmtree(place)
    return rows


def _clean_cloud(
    where: str,
    folder: Path,
    site: Path | None,
    remove: bool,
    older: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    running = {one.data["build_id"] for one in store.versions(folder) if store.busy(one)}
    asked = cloud(where, _site(site))
    rows = []
    for leftover in asked.leftovers():
        if leftover.build in running or _age(leftover.created) < older:
            continue
        rows.append(dict(leftover.__dict__))
        if remove:
            with progress.step("remove", f"{leftover.kind} {leftover.id}"):
                asked.remove(leftover)
    return rows


def _age(created: str) -> float:
    """Hours since then; without end where the cloud does not say when it was made."""
    if not created:
        return float("inf")
    then = datetime.fromisoformat(created)
    return (datetime.now(UTC) - then).total_seconds() / 3600


def validate_images(names: Sequence[str], progress: Progress) -> dict[str, list[str]]:
    """`mvstack image validate`: the templates with every image's variables, by Packer and our lint.

    The image → what Packer could not be shown, being older. Raises InvalidInput with all errors.
    """
    from mvstack.image.lint import lint

    release, policy = load_release(), load_policy()
    errors: list[MvstackError] = []
    done: dict[str, list[str]] = {}
    if problems := lint():
        errors.append(InvalidInput(*problems))
    with tempfile.TemporaryDirectory(prefix="mvstack-packer-") as scratch:
        left_out = packer.prepare(Path(scratch) / "templates")
        for name in names or [one for one in system_names() if one != "local"]:
            try:
                system_name, wanted = split_name(name)
                system = load_system(system_name)
                for partition in partitions_of(system, wanted):
                    if system.partitions[partition].image is None:
                        continue
                    plan = make_plan(system, partition, release, policy)
                    image = make_image(system, plan, image_policy())
                    with progress.step("validate", f"{image.name}, {image.source}"):
                        _validate(Path(scratch), image)
                    done[f"{system.name}/{partition}"] = left_out
            except MvstackError as error:
                errors.append(error)
    if errors:
        raise together(errors)
    return done


#: Enough for Packer to see whether the templates fit together; nothing of it is asked for anywhere.
_MADE_UP: dict[str, dict[str, Any]] = {
    "azure": {
        "azure_subscription": "00000000-0000-0000-0000-000000000000",
        "azure_tenant": "00000000-0000-0000-0000-000000000000",
        "azure_client_id": "00000000-0000-0000-0000-000000000000",
        "azure_client_secret": "made-up",
        "azure_gallery": "gallery",
        "azure_gallery_resource_group": "group",
    },
    "aws": {"aws_access_key": "made-up", "aws_secret_key": "made-up", "aws_offline": True},
    "qemu": {"qemu_output": "output"},
}


def _validate(scratch: Path, image: ImagePlan) -> None:
    variables_file = scratch / "variables.pkrvars.json"
    variables_file.write_text(json.dumps(packer_variables(image)))
    kit = scratch / "kit.tar"
    kit.write_bytes(b"kit")
    digest = sha256(kit)
    variables: dict[str, Any] = {
        "version": f"{image.release}.0",
        "build_id": "validate",
        "commit": "none",
        "kit": str(kit),
        "kit_sha256": digest,
        "manifest": str(scratch / "manifest.json"),
        "inventory": str(scratch / "inventory.tar"),
        **_MADE_UP[image.cloud],
    }
    if image.cloud == "qemu":
        variables |= {"qemu_disk": str(kit), "qemu_disk_sha256": digest, "ssh_private_key_file": ""}
    if image.cloud == "azure" and packer.version() <= packer.OLD:
        variables["azure_managed_image_resource_group"] = "group"
    packer.validate(scratch / "templates", image.source, [variables_file], variables)


def cloud(name: str, site: dict[str, Any], share: Sequence[str] = ()) -> Cloud:
    """The cloud of that name, as the site's file of Packer variables describes it.

    Raises InvalidInput when the file lacks what is needed.
    """
    if name == "aws":
        from mvstack.image.clouds.aws import Aws

        region = str(site.get("aws_region") or "us-east-2")
        return Aws(region, [str(one) for one in site.get("aws_copy_regions", [])], share)
    from mvstack.image.clouds.azure import Azure

    names = ("azure_gallery_resource_group", "azure_gallery", "azure_subscription")
    lacking = [one for one in names if not site.get(one)]
    if lacking:
        raise InvalidInput(
            Problem(
                f"the site's file says nothing of {', '.join(lacking)}",
                "--site",
                todo="a JSON file with these variables of images/variables.pkr.hcl",
            )
        )
    group, gallery, subscription = (str(site[one]) for one in names)
    return Azure(group, gallery, subscription)


def _site(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(
            Problem(f"the site's file cannot be read: {error.strerror}", str(path))
        ) from None
    except ValueError as error:
        raise InvalidInput(
            Problem(
                f"the site's file is no JSON: {error}",
                relative(path),
                todo='write {"azure_subscription": "…", …}; variables: images/variables.pkr.hcl',
            )
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput(Problem("the site's file is no JSON object", relative(path)))
    return found
