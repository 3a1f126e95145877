"""The manifest of one entry: what its archive holds, byte by byte, and what it was built as.

The manifest alone is signed. It names the archive by size and hash, so the signature covers both.
"""

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from mvstack.cache.prefix import Where
from mvstack.model.base import Strict, first_error

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


class Item(Strict):
    """One file, link or folder, with its path below the tree.

    ``executable`` of a file; ``target`` of a link; ``prefix`` says how the tree's path is in it.
    """

    path: Inside
    kind: Literal["file", "link", "folder"]
    size: Size = 0
    sha256: Sha256 | Literal[""] = ""
    executable: bool = False
    target: str = ""
    prefix: Where = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "file" and not self.sha256:
            raise ValueError(f"{self.path}: a file needs its sha256")
        if self.kind == "link" and not self.target:
            raise ValueError(f"{self.path}: a link needs its target")
        return self


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
    binutils, say).
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
    requires: list[Sha256] = Field(default_factory=list)
    archive: Archive
    needs: list[Needed]
    build: dict[str, Any]
    items: list[Item]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        kinds = {item.path: item.kind for item in self.items}
        if len(kinds) != len(self.items):
            raise ValueError("a path occurs twice")
        if kinds.get(self.module_file) != "file":
            raise ValueError(f"its own module {self.module_file} is not among its files")
        for item in self.items:
            if any(kinds.get(str(one)) == "link" for one in PurePosixPath(item.path).parents):
                raise ValueError(f"{item.path} would be written through a link")
            own = item.path == self.software or item.path.startswith(f"{self.software}/")
            if not (own or item.path.startswith(("modules/", "ebfiles_repo/"))):
                raise ValueError(f"{item.path} is not one of this package's files")
        return self

    def text(self) -> str:
        """The manifest as it is signed."""
        return self.model_dump_json(indent=1) + "\n"


def parse(text: str) -> Manifest:
    """The manifest in ``text``. Raises ValueError with what is wrong in one line."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(first_error(error)) from None
