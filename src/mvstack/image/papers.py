"""The papers of an image: manifest, audit, list of packages, SBOM, vulnerabilities, provenance.

They are read off the finished disk, mounted read-only; a cloud's disk is brought here for that.
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack.image import manifest, provenance, tools, vulnerabilities
from mvstack.image.audit import audit
from mvstack.image.checkout import by, commit, repository
from mvstack.image.clouds import Cloud
from mvstack.image.components import Component, components, known_facts
from mvstack.image.disks import mounted
from mvstack.image.finding import Finding
from mvstack.image.job import Job
from mvstack.image.packages import installed, manager
from mvstack.image.provenance import Input
from mvstack.image.sbom import Subject, sbom
from mvstack.plan import easyconfigs
from mvstack.support.errors import CheckFailed, Problem
from mvstack.support.files import sha256_of, write_atomically

MANIFEST, PACKAGES, AUDIT = "manifest.txt", "packages.txt", "audit.json"
VULNERABILITIES = "vulnerabilities.json"


def write(job: Job, there: Cloud | None) -> None:
    """Write the papers of a finished build into its folder; ``there`` has its disk, or QEMU has.

    Raises CheckFailed, naming each path, when the audit finds what must not be in an image, and
    when packages are not those of the list that was given.
    """
    raw = job.work / "disk.raw"
    try:
        if there is None:
            disk = job.version.folder / "disk.qcow2"
            convert: list[str | Path] = ["qemu-img", "convert", "-O", "raw", disk, raw]
            tools.run(convert, job.log, what="reading the disk")
        else:
            with job.step("disk", f"the disk, brought here from {there.name}") as step:
                there.disk(job.image.name, job.version.version, raw, step.note)
        with mounted(raw, read_only=True) as root:
            with job.step("manifest", "every file of the disk, hashed"):
                entries = manifest.collect(root)
                manifest.write(entries, job.version.folder / MANIFEST)
            with job.step("audit", "what must not be left on the disk"):
                found = audit(root)
            _of_tree(job, root)
    finally:
        raw.unlink(missing_ok=True)
    _audited(job, found)
    _same_packages(job)


def _of_tree(job: Job, root: Path) -> None:
    """What is read off the disk's file tree besides."""
    folder = job.version.folder
    with job.step("sbom", "packages and SBOM"):
        names = ":{arch}" if manager(root) == "dpkg" else ".{arch}"
        lines = [
            f"{one.name}{names.format(arch=one.arch)}={one.version}" for one in installed(root)
        ]
        write_atomically(folder / PACKAGES, "\n".join(lines) + "\n")
        subject = Subject(job.image.name, job.version.version, commit()[2])
        # as it is in the image: what is installed here may be another when it is signed
        parts = stack(root / job.plan.tree.lstrip("/"))
        sbom(root, subject, parts).write(folder)
        job.version.set(sources=[dict(one.__dict__) for one in provenance.inputs_of(parts)])
    with job.step("vulnerabilities", "known vulnerabilities"):
        database = os.environ.get("MVSTACK_OSV", "")
        gate = vulnerabilities.Gate(accepted=vulnerabilities.read_accepted())
        report = vulnerabilities.report(
            root, Path(database) if database else None, gate, datetime.now(UTC).date()
        )
        report.write(folder / VULNERABILITIES)
    job.version.set(vulnerabilities={"state": report.state, "why": report.why})


def stack(tree: Path) -> list[Component]:
    """The components of the release's tree, with what the recipes say of them."""
    return components(tree, known_facts(easyconfigs.index().values()))


def _audited(job: Job, found: Sequence[Finding]) -> None:
    rows: list[dict[str, Any]] = [dict(one.__dict__) for one in found]
    write_atomically(job.version.folder / AUDIT, json.dumps(rows, indent=1) + "\n")
    bad = [one for one in found if one.fails]
    if bad:
        raise CheckFailed(
            *(
                Problem(one.what, f"{job.image.name}:{one.path}", because=one.why)
                for one in bad[:40]
            ),
            outcome=f"{len(bad)} things are left on the disk that must not be: {job.version.title} "
            "is no candidate. images/provision/generalise removes them.",
        )


def _same_packages(job: Job) -> None:
    if not job.packages:
        return
    wanted = {line for line in job.packages.splitlines() if line}
    there = set((job.version.folder / PACKAGES).read_text().splitlines())
    if wanted != there:
        lacking, more = sorted(wanted - there), sorted(there - wanted)
        raise CheckFailed(
            "the image holds other packages than the list that it was to be built from",
            str(job.wanted.packages),
            found=", ".join(more[:20]) or "nothing more",
            allowed=", ".join(lacking[:20]) or "nothing less",
            because="the distribution's mirror has those versions no more",
            todo="build from a snapshot of the mirror, or without --packages",
        )


def origin(job: Job) -> None:
    """Write provenance.json over all that the version's folder holds now."""
    image, known, folder = job.image, job.version.data, job.version.folder
    name, _, changed = str(known["commit"]).partition("+")
    made = known.get("by") or by()
    base = " ".join(str(value) for value in image.base.values())
    asked = (image.system, image.partition, image.release, known["version"])
    build = provenance.Build(
        id=known["build_id"],
        **made,
        parameters=dict(zip(("system", "partition", "release", "version"), asked, strict=True)),
        repository=repository(),
        commit=name,
        modified=bool(changed),
        ours=[
            Input(base, known.get("base_sha256", "")),
            Input(PACKAGES, sha256_of(folder / PACKAGES)),
            Input("release.tar.zst", known["release_sha256"]),
        ],
        others=[
            *(Input(f"{o['id']} {o['version']}", o["sha256"], o["url"]) for o in image.downloads),
            *(Input(**row) for row in known.get("sources", [])),
        ],
        started=_when(known["build_id"].partition("-")[0]),
        finished=_when(known["ended"]) if "ended" in known else datetime.now(UTC),
    )
    provenance.write(provenance.provenance(folder, build), folder)


def _when(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
