"""The SBOM of an image, as CycloneDX 1.6 and as SPDX 2.3: same root and arguments, same bytes.

The distribution's packages of dpkg are described by debsbom, which reads dpkg's database offline
and knows Debian's source packages; those of RPM by us. The release's own components are added to
either. The documents' identities are made of their content.
"""

import json
import os
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack import __version__
from mvstack.image import sbom_cyclonedx, sbom_spdx
from mvstack.image.components import Component
from mvstack.image.extras import need
from mvstack.image.packages import distribution, installed, manager
from mvstack.support.errors import CheckFailed, Problem
from mvstack.support.files import write_atomically
from mvstack.support.processes import run

CYCLONEDX, SPDX = "sbom.cdx.json", "sbom.spdx.json"
_NOBODY = "00000000-0000-4000-8000-000000000000"
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

    Raises Missing when the packages cannot be read (no database, no rpm, no debsbom here) and
    CheckFailed when debsbom fails.
    """
    of = distribution(root)
    if manager(root) == "dpkg":
        cyclonedx, spdx = _debsbom(root, subject, "ubuntu" if of.id == "ubuntu" else "debian")
    else:
        packages = installed(root)
        cyclonedx = sbom_cyclonedx.of_rpm(packages, of, subject.name, subject.version, subject.time)
        spdx = sbom_spdx.of_rpm(packages, of, subject.name, subject.version, subject.time)
    tool = f"mvapich-stack-{__version__}"
    sbom_cyclonedx.add(cyclonedx, stack, of, __version__)
    sbom_spdx.add(spdx, stack, of, tool)
    cyclonedx["serialNumber"] = f"urn:uuid:{_identity(cyclonedx)}"
    spdx["documentNamespace"] = f"https://spdx.org/spdxdocs/{subject.name}-{_identity(spdx)}"
    return Sbom(_text(cyclonedx), _text(spdx))


def _identity(document: Document) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, _text(document))


def _text(document: Document) -> str:
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _debsbom(root: Path, subject: Subject, vendor: str) -> tuple[Document, Document]:
    need("debsbom")
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        out = Path(folder) / "sbom"
        command = [
            *(sys.executable, "-m", "debsbom.cli", "generate", "-t", "cdx", "-t", "spdx"),
            *("--root", str(root), "--out", str(out), "--with-licenses"),
            *("--distro-name", subject.name, "--distro-version", subject.version),
            *("--base-distro-vendor", vendor, "--timestamp", subject.time),
            *("--cdx-schema-version", sbom_cyclonedx.VERSION, "--cdx-serialnumber", _NOBODY),
            *("--spdx-namespace", f"https://spdx.org/spdxdocs/{_NOBODY}"),
        ]
        # where it is run from must not decide which modules it imports
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"}
        done = run(command, env=environment)
        if not done.ok:
            raise CheckFailed(
                Problem("debsbom cannot describe the image", str(root), found=done.errors[-500:])
            )
        texts = [out.with_suffix(f".{kind}.json").read_text("utf-8") for kind in ("cdx", "spdx")]
    cyclonedx, spdx = (json.loads(text) for text in texts)
    return cyclonedx, spdx
