"""Build an image: the installed release, a kit, an instance that Packer makes into it, its papers.

Each step is kept in image.json when it is done, so that the same command goes on where it was.
Packer's own step is one: an instance that was interrupted is gone, and begun anew.
"""

import re
import shutil
import time
from pathlib import Path
from typing import Any

from mvstack.image import base, kit, packed, packer, papers, store, tools, vm
from mvstack.image.artefacts import SUMS
from mvstack.image.checkout import by, commit
from mvstack.image.clouds import Cloud
from mvstack.image.job import Job, Wanted
from mvstack.image.plan import ImagePlan
from mvstack.image.render import image_files
from mvstack.plan.types import Plan
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, relative
from mvstack.support.files import sha256_of
from mvstack.support.progress import Progress


def inputs(plan: Plan, image: ImagePlan, wanted: Wanted, packages: str) -> str:
    """A hash of all that decides an image, packages of the distribution aside."""
    texts = {
        str(path.relative_to(packer.TEMPLATES)): path.read_text(errors="replace")
        for folder in ("provision", "files")
        for path in sorted((packer.TEMPLATES / folder).rglob("*"))
        if path.is_file()
    }
    texts |= {one.name: one.read_text() for one in kit.programs()}
    nodes = Path(plan.tree) / "records" / "nodes.json"
    if wanted.packed:
        nodes = wanted.packed / SUMS
    site = wanted.site.read_text() if wanted.site else ""
    return hashes.of(
        image.as_dict(),
        texts,
        packer.templates(),
        nodes.read_text() if nodes.is_file() else "",
        packages,
        site,
        str(wanted.last),
    )


def check_tools(image: ImagePlan) -> None:
    """Raise Missing when a program that this build needs is not here, or too old."""
    if image.cloud == "qemu":
        names = (*tools.FOR_ALL, *tools.FOR_QEMU)
        tools.need(names, "making an image for QEMU", root=True)
    else:
        tools.need((*tools.FOR_ALL, *tools.FOR_AUDIT), f"making an image for {image.cloud}", True)
        packer.check(image.cloud)


def begin(plan: Plan, image: ImagePlan, wanted: Wanted, folder: Path, progress: Progress) -> Job:
    """The job of a build: a new version, or the unfinished one of the same inputs."""
    packages = read_packages(wanted.packages)
    name, changed, _ = commit()
    facts = {
        "system": image.system,
        "partition": image.partition,
        "cloud": image.cloud,
        "commit": name + ("+changes" if changed else ""),
        "tree": plan.tree,
        "last_day": wanted.last.isoformat() if wanted.last else "",
    }
    digest = inputs(plan, image, wanted, packages)
    version = store.begin(folder, plan.release, image.name, digest, wanted.version, facts)
    work = store.work_folder(version)
    work.mkdir(parents=True, exist_ok=True)
    files = image_files(plan, image)
    return Job(plan, image, wanted, version, work, files, packages, progress)


def build(job: Job, there: Cloud | None) -> None:
    """Make the image of ``job``: a candidate, whole and with its papers, that nobody has tested.

    ``there`` is its cloud, None for QEMU, and is told so; while that fails the version is not
    whole, and is gone on with.
    Raises BuildFailed, InvalidInput (Packer refuses the templates), Refused (the name is taken).
    """
    version = job.version
    if not version.done("packer"):  # else its inputs are what they were, whatever became of them
        with job.step("templates", "templates, validated"):
            packer.prepare(job.work / "templates")
        version.set(by=by())
        if not version.done("kit") or not (job.work / "kit.tar").is_file():
            _kit(job)
        if job.image.cloud == "qemu":
            _base(job)
        _packer(job)
    papers.write(job, there)
    version.set(ended=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    if there:
        there.accept(job.image.name, version.version)
    version.set(state="candidate")


def _kit(job: Job) -> None:
    archive = job.work / packed.ARCHIVE
    with job.step("release", f"the release in {job.plan.tree}, packed") as step:
        if job.wanted.packed:
            shutil.copyfile(packed.archive_of(job.wanted.packed, job.plan), archive)
            digest = sha256_of(archive)
        else:
            digest = kit.release_archive(Path(job.plan.tree), archive, step.note, job.log)
    with job.step("kit", "the kit for the instance"):
        known = job.version.data
        # nothing that differs from build to build: that stands in the papers beside the image
        facts = {
            "image": job.image.name,
            "version": known["version"],
            "release": job.image.release,
            "commit": known["commit"],
            "machine": job.image.machine,
            "serves": list(job.image.serves),
            "tree": job.image.tree,
            "release_sha256": digest,
            "last_day": known["last_day"],
        }
        found = kit.make_kit(job.work / "kit.tar", job.files, facts, archive, job.packages)
        job.version.set(release_sha256=digest, kit_sha256=found)
    archive.unlink(missing_ok=True)  # the kit holds it


def _base(job: Job) -> None:
    image = job.image
    of = base.Base(image.base["suite"], image.disk_gb, image.early, job.packages, commit()[2])
    disk = job.version.folder.parents[2] / "base" / f"{of.suite}-{of.key}.qcow2"
    if not disk.is_file():
        with job.step("base", f"the base disk, from the packages of {of.suite}") as step:
            base.make_base(disk, of, job.log, step.note)
    job.version.set(base=disk.name, base_sha256=sha256_of(disk))


def _packer(job: Job) -> None:
    files = [_variables_file(job)]
    if job.wanted.site:
        files.append(job.wanted.site)
    variables = _variables(job)
    log = job.work / "packer.log"
    source = job.image.source
    packer.validate(job.work / "templates", source, files, variables)
    with job.step("packer", f"an instance made into the image ({source})", log) as step:
        shutil.rmtree(job.work / "disk", ignore_errors=True)
        made = packer.build(job.work / "templates", source, files, variables, log, step.note)
        # all of it before the step counts as done: what is done is not looked at again
        job.version.set(made=[_made(row) for row in made])
        shutil.copyfile(log, job.version.folder / "packer.log")
        if job.image.cloud == "qemu":
            (job.work / "disk" / "disk.qcow2").replace(job.version.folder / "disk.qcow2")


def _made(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in ("builder_type", "artifact_id", "build_time")}


def _variables_file(job: Job) -> Path:
    path = job.work / "variables.pkrvars.json"
    path.write_text(job.files["image/variables.pkrvars.json"])
    return path


def _variables(job: Job) -> dict[str, Any]:
    known = job.version.data
    variables: dict[str, Any] = {
        "version": known["version"],
        "build_id": known["build_id"],
        "commit": known["commit"],
        "last_day": known["last_day"],
        "kit": str(job.work / "kit.tar"),
        "kit_sha256": known["kit_sha256"],
        "manifest": str(job.work / "manifest.json"),
    }
    (job.work / "manifest.json").unlink(missing_ok=True)
    if job.image.cloud == "qemu":
        key = vm.make_key(job.work)
        seed = vm.make_seed(job.work, key, known["build_id"], root=True)
        part = job.image.hardware
        variables |= {
            "qemu_disk": str(job.version.folder.parents[2] / "base" / known["base"]),
            "qemu_disk_sha256": known["base_sha256"],
            "qemu_output": str(job.work / "disk"),
            "qemu_accelerator": vm.accelerator(),
            "qemu_machine": vm.arguments(seed, "{{ .SSHHostPort }}"),
            "qemu_cpus": int(part["cores"]),
            "qemu_memory_mb": int(part["memory_gb"]) * 1024,
            "ssh_private_key_file": str(key),
        }
    return variables


def read_packages(path: Path | None) -> str:
    """A list of exact versions, "" when none is given.

    Raises InvalidInput when it cannot be read or is no such list.
    """
    if path is None:
        return ""
    todo = "give packages.txt of an earlier build of the same system"
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(
            f"the list of packages cannot be read: {why}", relative(path), todo=todo
        ) from None
    for number, line in enumerate(text.splitlines() or [""], start=1):
        if not re.fullmatch(r"[\w.+-]+[:.]\w+=\S+", line):
            raise InvalidInput(
                "is no line of a list of packages",
                f"{relative(path)}:{number}",
                found=line[:80] or "an empty line",
                allowed="name:architecture=version",
                todo=todo,
            )
    return text
