"""Bring what Spack will unpack into the shared source mirror, before anything is built."""

from collections.abc import Callable

from mvstack.builders.base import Row
from mvstack.sources.fetch import Fetched
from mvstack.sources.spec import Known, SourceSpec, extension, known_sources
from mvstack.support.errors import InvalidInput, MvstackError, SourceError, together
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

# Spack's own public mirror has what its builtin recipes name, by hash as ours has.
PUBLIC = "https://mirror.spack.io"


def fetch(
    answer: Row, bring: Callable[[SourceSpec], Fetched], records: Records, progress: Progress
) -> dict[str, list[Row]]:
    """``bring`` every file that inside/sources.py names; what records keep of them, by package.

    Sources without a SHA-256 (clones of git) are left out: Spack fetches them when it builds.
    Raises one SourceError with every file that cannot be obtained.
    """
    found: dict[str, list[Row]] = {}
    errors: list[MvstackError] = []
    done: dict[str, Row] = {}
    files = {row["sha256"] for row in answer["sources"]}
    with progress.step("sources", f"{len(files)} files") as step:
        for other in answer["others"]:
            step.note(f"left to Spack: {other}")
        for row in answer["sources"]:
            if row["sha256"] not in done:
                step.note(f"{row['package']} {row['version']}: {row['file']}")
                spec = source_of(row)
                if spec is None:
                    continue  # Spack packs it in a way that the mirror has no name for
                try:
                    done[row["sha256"]] = bring(spec).as_dict()
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
    known = known_sources().get(name) or Known.model_construct()
    page = known.licence_page or row["page"]
    try:
        return SourceSpec(
            row["package"],
            row["version"],
            name,
            (row["sha256"],),
            () if page else (*row["urls"], f"{PUBLIC}/{row['path']}"),
            known.model_copy(update={"licence_page": page}),
            f"Spack's recipe of {row['package']}",
        )
    except InvalidInput:
        return None
