"""Inside Spack (`spack -e DIR python sources.py REQUEST ANSWER`): what builds unpack.

REQUEST  {"packages": [hash, …]}
ANSWER   {"sources": [{"hash", "package", "version", "file", "sha256", "path", "urls", "page"}],
          "others": ["name@version: why"]}

``path`` is where Spack's mirror has the file. ``page`` is set where the licence forbids a download.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spack.environment


def main(request_file: str, answer_file: str) -> None:
    """Answer one request."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    environment = spack.environment.active_environment()
    by_hash = {spec.dag_hash(): spec for spec in environment.all_specs()}
    answer: dict[str, Any] = {"sources": [], "others": []}
    for key in request["packages"]:
        for row in sources(by_hash[key], answer["others"]):
            answer["sources"].append({"hash": key, **row})
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def sources(spec: Any, others: list[str]) -> Iterator[dict[str, Any]]:
    """Every file that a build of ``spec`` unpacks or patches with, known by its SHA-256."""
    package = spec.package
    if not package.has_code:
        return
    page = package.homepage if getattr(package, "manual_download", False) else ""
    for stage in package.stage:
        fetcher = getattr(stage, "default_fetcher", None)
        if fetcher is None:
            continue
        digest = getattr(fetcher, "digest", None)
        layout = getattr(stage, "mirror_layout", None)
        if not digest or len(digest) != 64 or layout is None:
            others.append(f"{spec.name}@{spec.version}: {fetcher}")
            continue
        urls = [url for url in getattr(fetcher, "candidate_urls", None) or [fetcher.url] if url]
        yield {
            "package": spec.name,
            "version": str(spec.version),
            "file": urls[0].split("?")[0].rstrip("/").rpartition("/")[2],
            "sha256": digest,
            "path": layout.path,
            "urls": urls,
            "page": page or "",
        }


if __name__ == "__main__":
    main(*sys.argv[1:3])
