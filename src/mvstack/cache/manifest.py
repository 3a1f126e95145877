"""The manifest of one entry: which archive it has, and what that was built as.

The manifest alone is signed. It names the archive by size and hash, so the signature covers both.
"""

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from mvstack.model.base import EMPTY_LIST, Strict, first_error

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# Names that become files of a cache: nothing that could leave its folder.
Word = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._+-]*$", max_length=200)]


def inside(path: str) -> str:
    """``path`` if it is a plain relative path that stays below its folder; ValueError if not."""
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts or "/".join(parts) != path:
        raise ValueError(f"{path!r} is not a plain path below the tree")
    return path


Inside = Annotated[str, AfterValidator(inside)]
Size = Annotated[int, Field(ge=0)]


class Archive(Strict):
    """The archive's size in bytes and its hash."""

    sha256: Sha256
    size: Size


class Needed(Strict):
    """A library of the machine that the entry's programs link, and where the builder had it."""

    soname: str
    found: str = ""


class Manifest(Strict):
    """One entry. ``tree`` is where it was built; ``content`` the hash of all that decided it.

    ``accepted`` is the hash of an MPI's source when it is not upstream's. ``requires`` are the
    contents of entries that EasyBuild brought along for it and that no plan names (a compiler's
    binutils, say). ``in_binary`` and ``in_packed`` name a file of each kind that holds the path of
    ``tree``, "" for none.
    """

    format: Literal[1]
    builder: Literal["easybuild"]
    content: Sha256
    os: Word
    target: Word
    easyconfig: Word
    package: str
    version: str
    module: str
    mpi: str
    accepted: str = ""
    tree: Annotated[str, StringConstraints(pattern=r"^/[^\x00]*[^/\x00]$")]
    module_file: Inside
    software: Inside
    requires: list[Sha256] = EMPTY_LIST
    archive: Archive
    needs: list[Needed]
    build: dict[str, Any]
    in_binary: str = ""
    in_packed: str = ""

    def text(self) -> str:
        """The manifest as it is signed."""
        return self.model_dump_json(indent=1) + "\n"


def parse(text: str) -> Manifest:
    """The manifest in ``text``. Raises ValueError with what is wrong in one line."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(first_error(error)) from None
