"""Put a file that a person has into the mirror, with the care that this takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mvstack.errors import InvalidInput, Problem, SourceError, relative
from mvstack.sources.accepted import accept
from mvstack.sources.spec import SHA256, SourceSpec
from mvstack.sources.store import Entry, Store, sha256_of


def add_source(
    store: Store, spec: SourceSpec, file: Path, accept_hash: str | None, reason: str | None
) -> dict[str, Any]:
    """Store ``file`` as the source of ``spec``; other bytes than upstream's only when accepted.

    Raises SourceError when the bytes are not those listed and were not accepted, InvalidInput
    when the acceptance is not one (no reason, no SHA-256, another file's).
    """
    found = sha256_of(file)
    note = ""
    if accept_hash is not None:
        note = _acceptance(file, found, accept_hash.strip().lower(), reason)
    elif found not in spec.hashes:
        why = spec.refused.get(found, "")
        raise SourceError(
            Problem(
                f"the file is not the {spec.filename} that the recipe lists",
                relative(file),
                found=f"sha256 {found}" + (f" ({why})" if why else ""),
                allowed="sha256 " + " or ".join(spec.hashes),
                todo="get upstream's file; or, for other bytes on purpose, add "
                f"--accept-hash {found} --reason TEXT",
            ),
            outcome="Nothing was added.",
        )
    if found in spec.hashes:
        note = ""  # upstream's after all: nothing to accept
    entry = Entry(
        found, spec.filename, spec.name, file.stat().st_size, f"added from {file.name}", note
    )
    store.add(file, entry)
    store.link_easybuild(spec.software, spec.filename, found)
    if note:
        accept(spec.software, spec.version, found, reason or "", spec.filename)
    return {"source": spec.name, "file": spec.filename, "sha256": found, "note": note}


def _acceptance(file: Path, found: str, wanted: str, reason: str | None) -> str:
    if not SHA256.fullmatch(wanted):
        raise InvalidInput(
            Problem(
                "--accept-hash takes a SHA-256, 64 hexadecimal digits",
                found=wanted,
                allowed=f"the file's is {found}",
            )
        )
    if wanted != found:
        raise SourceError(
            Problem(
                "the file does not have the hash that was accepted",
                relative(file),
                found=f"sha256 {found}",
                allowed=f"sha256 {wanted}",
                todo="make sure which file is meant",
            ),
            outcome="Nothing was added.",
        )
    if not (reason or "").strip():
        raise InvalidInput(
            Problem("--accept-hash needs --reason TEXT: module help and report show it")
        )
    return f"not upstream's bytes: {' '.join((reason or '').split())}"
