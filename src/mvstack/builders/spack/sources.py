"""Bring what Spack will unpack into the shared source mirror, before anything is built."""

from __future__ import annotations

from typing import Any

from mvstack.sources.fetch import Fetcher
from mvstack.sources.files import extension
from mvstack.sources.spec import SourceSpec, known_sources
from mvstack.support.errors import InvalidInput, MvstackError, SourceError, together
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

# Spack's own public mirror has what its builtin recipes name, by hash as ours has.
PUBLIC = "https://mirror.spack.io"
Row = dict[str, Any]


def fetch(
    rows: list[Row], others: list[str], fetcher: Fetcher, records: Records, progress: Progress
) -> dict[str, list[Row]]:
    """Every file of ``rows`` into the mirror; hash of a package → what records keep of its files.

    ``others`` are sources without a SHA-256 (clones of git): Spack fetches them when it builds.
    Raises one SourceError with every file that cannot be obtained.
    """
    found: dict[str, list[Row]] = {}
    errors: list[MvstackError] = []
    done: dict[str, Row] = {}
    with progress.step("sources", f"{len({row['sha256'] for row in rows})} files") as step:
        for other in others:
            step.note(f"left to Spack: {other}")
        for row in rows:
            if row["sha256"] not in done:
                step.note(f"{row['package']} {row['version']}: {row['file']}")
                spec = source_of(row)
                if spec is None:
                    continue  # Spack packs it in a way that the mirror has no name for
                try:
                    done[row["sha256"]] = fetcher.fetch(spec).as_dict()
                except SourceError as error:
                    errors.append(error)
                    continue
                records.append("sources", {"package": row["package"], **done[row["sha256"]]})
            found.setdefault(row["hash"], []).append(done[row["sha256"]])
    if errors:
        raise together(errors, outcome="Nothing was built.")
    return found


def source_of(row: Row) -> SourceSpec | None:
    """One source as the mirror knows it; None when the mirror has no name that Spack looks for.

    The file's name is such that its ending is the one that Spack looks for.
    """
    ending = row["path"].rpartition("/")[2].removeprefix(row["sha256"]).removeprefix(".")
    name = row["file"]
    if extension(name) != ending:
        name = f"{row['package']}-{row['version']}" + (f".{ending}" if ending else "")
    if extension(name) != ending:
        return None
    known = known_sources().get(name)
    page = (known.licence_page if known else "") or row["page"]
    try:
        return SourceSpec(
            row["package"],
            row["version"],
            name,
            (row["sha256"],),
            () if page else (*row["urls"], f"{PUBLIC}/{row['path']}"),
            known.debian if known else None,
            known.pypi if known else "",
            page,
            dict(known.hashes) if known else {},
            dict(known.refused) if known else {},
            f"Spack's recipe of {row['package']}",
        )
    except InvalidInput:
        return None
