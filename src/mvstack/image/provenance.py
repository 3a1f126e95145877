"""Where an image comes from: an in-toto Statement v1 with SLSA's provenance v1.

The formats: github.com/in-toto/attestation (spec/v1) and slsa.dev/spec/v1.0/provenance.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack.image.artefacts import NOT_SIGNED, artefacts
from mvstack.image.components import Component
from mvstack.support.errors import Refused, relative
from mvstack.support.files import write_atomically

FILE = "provenance.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:mvapich-stack:image-build:1"
Document = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """One thing that went into an image: its name, its SHA-256, where it was had, a remark.

    ``sha256`` is "" where nobody gives one (a cloud's own image); ``uri`` when it was made here and
    has no address; ``remark`` as *not upstream's bytes*.
    """

    name: str
    sha256: str
    uri: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Build:
    """One build of one image.

    ``builder`` is a URI that names who built (a site's runner, a person's machine) and ``versions``
    its tools (``packer``: ``1.6.6``). ``commit`` is of ``repository`` ("" where the checkout was
    cloned from nowhere), and ``modified`` when the working tree had changes that no commit holds.
    ``parameters`` say what was asked for, ``ours`` and ``others`` what went in: what every build
    has, in that order, and the rest, sorted. Times are aware of their zone.
    """

    id: str
    builder: str
    versions: Mapping[str, str]
    parameters: Mapping[str, str]
    repository: str
    commit: str
    modified: bool
    ours: Sequence[Input]
    others: Sequence[Input]
    started: datetime
    finished: datetime


def inputs_of(stack: Iterable[Component]) -> list[Input]:
    """The sources of the release's components."""
    return [
        Input(
            f"{component.name} {component.version}: {source.file}",
            source.sha256,
            source.url if source.upstream else "",
            "" if source.upstream else f"not upstream's bytes; {source.place}",
        )
        for component in stack
        for source in component.sources
    ]


def provenance(folder: Path, build: Build) -> Document:
    """The statement over every artefact of the build's folder but itself.

    Raises Refused when the folder holds none.
    """
    subjects = artefacts(folder, {*NOT_SIGNED, FILE})
    if not subjects:
        raise Refused("there is no artefact to tell the origin of", relative(folder))
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha}} for name, sha in subjects.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": dict(build.parameters),
                "resolvedDependencies": _dependencies(build),
            },
            "runDetails": {
                "builder": {"id": build.builder, "version": dict(sorted(build.versions.items()))},
                "metadata": {
                    "invocationId": build.id,
                    "startedOn": _time(build.started),
                    "finishedOn": _time(build.finished),
                },
            },
        },
    }


def write(document: Document, folder: Path) -> None:
    """Write provenance.json."""
    write_atomically(folder / FILE, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _dependencies(build: Build) -> list[Document]:
    code: Document = {"name": "mvapich-stack"}
    if build.repository:
        code["uri"] = build.repository
    if build.commit:
        code["digest"] = {"gitCommit": build.commit}
    if build.modified:
        code["annotations"] = {"modified": "the working tree had changes that no commit holds"}
    others = sorted({*build.others}, key=lambda one: (one.name, one.sha256))
    return [code, *(_dependency(one) for one in (*build.ours, *others))]


def _dependency(one: Input) -> Document:
    row: Document = {"name": one.name}
    if one.sha256:
        row["digest"] = {"sha256": one.sha256}
    if one.uri:
        row["uri"] = one.uri
    if one.remark:
        row["annotations"] = {"remark": one.remark}
    return row


def _time(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
