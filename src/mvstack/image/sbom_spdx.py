"""The SPDX half of the SBOM (spdx.github.io/spdx-spec/v2.3)."""

import re
from collections.abc import Sequence
from typing import Any

from mvstack.image import purl
from mvstack.image.components import Component
from mvstack.image.packages import Distribution

VERSION = "2.3"
_UNKNOWN = "NOASSERTION"
_REFERENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
Document = dict[str, Any]


def add(document: Document, stack: Sequence[Component], of: Distribution, tool: str) -> None:
    """Add the release's components, and us as a tool; everything in a fixed order."""
    subject = _subject(document)
    row = next(row for row in document["packages"] if row["SPDXID"] == subject)
    row |= {"comment": f"distribution: {of.name}", "primaryPackagePurpose": "OPERATING_SYSTEM"}
    document["creationInfo"]["creators"].append(f"Tool: {tool}")
    rows = [_component(one) for one in stack]
    document["packages"] = sorted([*document["packages"], *rows], key=lambda row: row["SPDXID"])
    document["relationships"] = sorted(
        [
            *document["relationships"],
            *(_relation(row["SPDXID"], "PACKAGE_OF", subject) for row in rows),
        ],
        key=lambda row: (
            row["spdxElementId"],
            row["relationshipType"],
            row["relatedSpdxElement"],
            row.get("comment", ""),
        ),
    )
    names = sorted({name for one in stack for name in _REFERENCE.findall(one.licence)})
    if names:
        document.setdefault("hasExtractedLicensingInfos", []).extend(
            {"licenseId": name, "extractedText": "The text stands in the source of the package."}
            for name in names
        )


def _subject(document: Document) -> str:
    for row in document["relationships"]:
        if row["relationshipType"] == "DESCRIBES":
            return str(row["relatedSpdxElement"])
    raise ValueError("the SPDX document describes nothing")


def _component(one: Component) -> Document:
    ref = f"SPDXRef-mvapich-stack-{_id(f'{one.module or one.name}-{one.version}')}"
    row = _package(ref, one.name, one.version, purl.of_component(one))
    row["primaryPackagePurpose"] = "APPLICATION"
    if one.title:
        row["summary"] = one.title
    if one.licence:
        row["licenseDeclared"] = one.licence
    if len(one.sources) == 1:
        source = one.sources[0]
        row["downloadLocation"] = (source.url if source.upstream else "") or _UNKNOWN
        row["checksums"] = [{"algorithm": "SHA256", "checksumValue": source.sha256}]
        row["packageFileName"] = source.file
    if one.sources:
        row["sourceInfo"] = "; ".join(
            f"{source.file} sha256:{source.sha256} from {source.place}" for source in one.sources
        )
    if one.remarks:
        row["comment"] = "; ".join(one.remarks)
    return row


def _package(ref: str, name: str, version: str, url: str = "") -> Document:
    row: Document = {
        "SPDXID": ref,
        "name": name,
        "versionInfo": version,
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": _UNKNOWN,
        "copyrightText": _UNKNOWN,
    }
    if url:
        row["externalRefs"] = [
            {
                "referenceCategory": "PACKAGE_MANAGER",
                "referenceType": "purl",
                "referenceLocator": url,
            }
        ]
    return row


def _relation(one: str, kind: str, other: str) -> Document:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def _id(text: str) -> str:
    """``text`` as SPDX lets an identifier be: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)
