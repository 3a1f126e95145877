"""Inside Spack (`spack -e DIR python look.py REQUEST ANSWER`): what a plan's parts have become.

REQUEST  {"parts": [{"key", "spec", "over"}], "sources": [hash, …]}
ANSWER   {"roots": {key: hash}, "sources": [{"hash", "package", "version", "file", "sha256",
          "path", "urls", "page"}], "others": ["name@version: why"]}

``over`` is the key of the MPI that a package must stand on, "" for none. ``path`` is where Spack's
mirror has the file. ``page`` is set where the licence forbids a download.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spack.environment
import spack.spec


def main(request_file: str, answer_file: str) -> None:
    """Answer one request."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    environment = spack.environment.active_environment()
    roots = [concrete for _, concrete in environment.concretized_specs()]
    by_hash = {spec.dag_hash(): spec for spec in environment.all_specs()}
    answer: dict[str, Any] = {"roots": choose(request["parts"], roots), "sources": [], "others": []}
    for key in request["sources"]:
        for row in sources(by_hash[key], answer["others"]):
            answer["sources"].append({"hash": key, **row})
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def choose(parts: list[dict[str, str]], roots: list[Any]) -> dict[str, str]:
    """Key of each part → hash of the root that is it; parts that no root is are left out."""
    found: dict[str, str] = {}
    for part in parts:
        wanted = spack.spec.Spec(part["spec"])
        below = found.get(part["over"])
        for root in roots:
            if root.satisfies(wanted) and (
                not part["over"]
                or any(spec.dag_hash() == below for spec in root.traverse(root=False))
            ):
                found.setdefault(part["key"], root.dag_hash())
    return found


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
