"""Put one entry into a tree: every byte checked, every path rewritten, the module last.

The files go into a hidden folder beside their place, are rewritten there, brought to the disk, and
then get their name in one step. The module comes after them, whole. What is killed in between
leaves a hidden folder, which the next run removes, and nothing that can be loaded.
"""

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from mvstack.cache.manifest import Manifest, inside
from mvstack.cache.place import NotBelieved
from mvstack.cache.prefix import Move
from mvstack.support.files import sha256_of, sync

INCOMING = ".incoming-from-cache"


class NotWhole(NotBelieved):
    """An archive is not what its manifest says, or holds what no package may."""


def immovable(manifest: Manifest, tree: Path) -> str:
    """Why the entry cannot be installed into ``tree``; "" when it can."""
    move = Move(manifest.tree, str(tree))
    if not move.needed:
        return ""
    if manifest.in_packed:
        return f"{manifest.in_packed} is compressed and holds the path of the tree it was built in"
    if manifest.in_binary and not move.fits_binaries:
        return (
            f"its programs hold the path {move.old} ({len(move.old.encode())} characters), and "
            f"{move.new} is longer ({len(move.new.encode())})"
        )
    return ""


def check(manifest: Manifest, archive: Path) -> None:
    """Compare an archive with its manifest, and look at its paths. Raises NotWhole."""
    hashed(manifest, archive)
    with tarfile.open(archive, "r:gz") as tar:
        _members(manifest, tar)


def install(manifest: Manifest, archive: Path, tree: Path) -> None:
    """Install a checked entry into ``tree``, which nobody else may write to meanwhile.

    Raises NotWhole, before anything of the tree is changed. The caller has seen to it that the
    entry is movable.
    """
    hashed(manifest, archive)
    incoming = tree / INCOMING
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir(parents=True)
    try:
        try:
            _unpack(manifest, archive, incoming, Move(manifest.tree, str(tree)))
        except ValueError as error:  # a program holds a path of which the manifest says nothing
            raise NotWhole(str(error)) from None
        # The programs and libraries first: after a power cut, a module on the disk means that what
        # it points to is there too.
        os.sync()
        _take(incoming / manifest.software, tree / manifest.software)
        for kept in (incoming / "ebfiles_repo").glob("*/*"):
            _take(kept, tree / kept.relative_to(incoming))
        _take(incoming / manifest.module_file, tree / manifest.module_file)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def hashed(manifest: Manifest, archive: Path) -> None:
    """Compare an archive's size and hash with its manifest. Raises NotWhole."""
    size = archive.stat().st_size
    if size != manifest.archive.size:
        raise NotWhole(f"its archive has {size:,} bytes instead of {manifest.archive.size:,}")
    if (found := sha256_of(archive)) != manifest.archive.sha256:
        raise NotWhole(f"its archive has sha256 {found} instead of {manifest.archive.sha256}")


def _members(manifest: Manifest, tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The entries of an archive. Raises NotWhole for one that is none of this package's files."""
    entries, links, seen = tar.getmembers(), set[str](), set[str]()
    for one in entries:
        try:
            inside(one.name)
        except ValueError as error:
            raise NotWhole(str(error)) from None
        if not f"{one.name}/".startswith((f"{manifest.software}/", "modules/", "ebfiles_repo/")):
            raise NotWhole(f"{one.name} is not one of this package's files")
        if not (one.isreg() or one.issym() or one.isdir()):
            raise NotWhole(f"{one.name} is neither a file, a link nor a folder")
        if one.name in seen:
            raise NotWhole(f"{one.name} occurs twice")
        seen.add(one.name)
        links |= {one.name} if one.issym() else set()
    for name in seen:
        if any(str(above) in links for above in PurePosixPath(name).parents):
            raise NotWhole(f"{name} would be written through a link")
    if manifest.module_file not in {one.name for one in entries if one.isreg()}:
        raise NotWhole(f"its own module {manifest.module_file} is not among its files")
    return entries


def _unpack(manifest: Manifest, archive: Path, incoming: Path, move: Move) -> None:
    """Write every entry below ``incoming``. Modes follow the umask, as for what is built here."""
    with tarfile.open(archive, "r:gz") as tar:
        entries = _members(manifest, tar)
        for entry in entries:
            path = incoming / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.isdir():
                path.mkdir(exist_ok=True)
            elif stream := tar.extractfile(entry) if entry.isreg() else None:
                _write(path, move.moved(stream.read()), entry)
    for entry in entries:  # links last: nothing is written through one
        if entry.issym():
            target = move.text(entry.linkname.encode()).decode()
            (incoming / entry.name).symlink_to(target)


def _write(path: Path, content: bytes, entry: tarfile.TarInfo) -> None:
    mode = 0o777 if entry.mode & 0o111 else 0o666
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.utime(path, (entry.mtime, entry.mtime))


def _take(source: Path, target: Path) -> None:
    """Give ``source`` its name; what a killed run or an older build left there goes first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        away = source.with_name(f"{source.name}.before")
        target.rename(away)  # in one step, so that a kill leaves a whole folder or none
    source.replace(target)
    sync(target.parent)
