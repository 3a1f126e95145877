"""The CycloneDX half of the SBOM (cyclonedx.org/docs/1.6/json)."""

from collections.abc import Sequence
from typing import Any

from mvstack.image import purl
from mvstack.image.components import Component, Source
from mvstack.image.packages import Distribution

VERSION = "1.6"
_OURS = "mvapich-stack"
Document = dict[str, Any]


def add(document: Document, stack: Sequence[Component], of: Distribution, tool: str) -> None:
    """Add the release's components, and us as a tool; everything in a fixed order."""
    subject = document["metadata"]["component"]
    subject["type"] = "operating-system"
    subject["properties"] = _properties({"distribution": of.name})
    ours = {"bom-ref": f"CDXRef-{_OURS}-{tool}", "name": _OURS, "version": tool}
    document["metadata"]["tools"]["components"].append({**ours, "type": "application"})
    rows = [_component(one) for one in stack]
    document["components"] = sorted(
        [*document["components"], *rows], key=lambda row: str(row["bom-ref"])
    )
    edges = {row["ref"]: set(row.get("dependsOn", [])) for row in document["dependencies"]}
    edges.setdefault(subject["bom-ref"], set()).update(row["bom-ref"] for row in rows)
    for row in rows:
        edges.setdefault(row["bom-ref"], set())
    document["dependencies"] = [
        {"ref": ref, **({"dependsOn": sorted(edges[ref])} if edges[ref] else {})}
        for ref in sorted(edges)
    ]


def _component(one: Component) -> Document:
    row: Document = {
        "bom-ref": f"{_OURS}:{one.module or one.name}@{one.version}",
        "type": "application",
        "group": _OURS,
        "name": one.name,
        "version": one.version,
        "purl": purl.of_component(one),
        "properties": [
            *_properties({"module": one.module}),
            *(prop for source in one.sources for prop in _source(source)),
        ],
    }
    if one.title:
        row["description"] = one.title
    if one.licence:
        row["licenses"] = [{"expression": one.licence}]
    if links := [_reference(source) for source in one.sources if source.url]:
        row["externalReferences"] = links
    return row


def _reference(source: Source) -> Document:
    """Where upstream has the source, with the hash where those are the bytes that were built."""
    return {
        "type": "source-distribution",
        "url": source.url,
        **({"hashes": [{"alg": "SHA-256", "content": source.sha256}]} if source.upstream else {}),
    }


def _source(source: Source) -> list[Document]:
    return _properties(
        {
            "source": f"{source.file} sha256:{source.sha256}",
            "source-place": source.place,
            "remark": "" if source.upstream else _remark(source),
        }
    )


def _remark(source: Source) -> str:
    return f"{source.file}: not upstream's bytes" + (f" ({source.note})" if source.note else "")


def _properties(values: dict[str, str]) -> list[Document]:
    return [{"name": f"{_OURS}:{key}", "value": value} for key, value in values.items() if value]
