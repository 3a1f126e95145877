"""This package and ReFrame as one archive, for a machine that has Python and nothing of ours."""

import io
import sys
import tarfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from mvstack.support.home import checkout

#: What the checks import; what these need is found.
ROOTS = (
    *("reframe-hpc", "pydantic", "ruamel.yaml", "jinja2", "archspec", "packaging", "typer", "rich"),
    "psutil",
)
#: Compares runs of ReFrame, which nobody asks for here, and is four fifths of the size.
LEFT_OUT = ("polars",)
_REFRAME = """\
#!/bin/sh
exec "${0%/*}/python3" -P -c 'import sys
from reframe.frontend.cli import main
sys.exit(main())' "$@"
"""


def python_version() -> str:
    """The version that compiled modules in the archive are for: ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def archive(path: Path) -> None:
    """Write the archive: bin/, site/ (packages), repository/ (src, tests/reframe, policy)."""
    with tarfile.open(path, "w") as tar:
        _file(tar, "bin/reframe", _REFRAME, 0o755)
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/python3"
        tar.addfile(link)
        for distribution in _closure():
            for file in distribution.files or ():
                place = Path(str(distribution.locate_file(file)))
                if ".." in file.parts or file.suffix == ".pyc" or not place.is_file():
                    continue
                tar.add(place, f"site/{file}", recursive=False)
        top = checkout("mvstack image build")
        for name in ("src/mvstack", "tests/reframe", "tests/references", "environments"):
            for place in sorted((top / name).rglob("*")):
                relative = place.relative_to(top)
                if place.is_file() and place.suffix != ".pyc" and "rendered" not in relative.parts:
                    tar.add(place, f"repository/{relative}", recursive=False)


def _closure() -> list[metadata.Distribution]:
    """The installed distributions of ROOTS and all that they need."""
    found: dict[str, metadata.Distribution] = {}
    todo = list(ROOTS)
    while todo:
        name = todo.pop().lower().replace("_", "-").replace(".", "-")
        if name in found or name in LEFT_OUT:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
        found[name] = distribution
        for text in distribution.requires or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                todo.append(wanted.name)
    return [found[name] for name in sorted(found)]


def _file(tar: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    data = text.encode()
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))
