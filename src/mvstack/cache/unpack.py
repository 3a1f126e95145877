"""Put one entry into a tree: every byte checked, every path rewritten, the module last.

The files go into a hidden folder beside their place, are rewritten there, brought to the disk, and
then get their name in one step. The module comes after them, whole. What is killed in between
leaves a hidden folder, which the next run removes, and nothing that can be loaded.
"""

import hashlib
import os
import shutil
import tarfile
from pathlib import Path

from mvstack.cache.manifest import Item, Manifest
from mvstack.cache.place import NotBelieved
from mvstack.cache.prefix import Move
from mvstack.support.files import sha256_of, sync

INCOMING = ".incoming-from-cache"


class NotWhole(NotBelieved):
    """An archive is not what its manifest says; the text names the first difference."""


def immovable(manifest: Manifest, tree: Path) -> str:
    """Why the entry cannot be installed into ``tree``; "" when it can."""
    move = Move(manifest.tree, str(tree))
    if not move.needed:
        return ""
    if packed := [item.path for item in manifest.items if item.prefix == "packed"]:
        return f"{packed[0]} is compressed and holds the path of the tree where it was built"
    fixed = [item.path for item in manifest.items if item.prefix == "binary"]
    if fixed and not move.fits_binaries:
        return (
            f"its programs hold the path {move.old} ({len(move.old.encode())} characters), and "
            f"{move.new} is longer ({len(move.new.encode())})"
        )
    return ""


def check(manifest: Manifest, archive: Path) -> None:
    """Compare an archive with its manifest. Raises NotWhole."""
    hashed(manifest, archive)
    with tarfile.open(archive, "r:gz") as tar:
        for item, entry in _members(manifest, tar):
            if item.kind == "file":
                _content(item, tar, entry)


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
        _unpack(manifest, archive, incoming, Move(manifest.tree, str(tree)))
        # The programs and libraries first: after a power cut, a module on the disk means that what
        # it points to is there too.
        os.sync()
        _take(incoming / manifest.software, tree / manifest.software)
        for item in manifest.items:
            if item.kind == "file" and item.path.startswith("ebfiles_repo/"):
                _take(incoming / item.path, tree / item.path)
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


def _members(manifest: Manifest, tar: tarfile.TarFile) -> list[tuple[Item, tarfile.TarInfo]]:
    """The manifest's items with their entries of the archive: the same, and in the same order."""
    kinds = {tarfile.REGTYPE: "file", tarfile.SYMTYPE: "link", tarfile.DIRTYPE: "folder"}
    entries = tar.getmembers()
    wanted = [(item.path, item.kind, item.target) for item in manifest.items]
    found = [(one.name, kinds.get(one.type, "other"), one.linkname) for one in entries]
    if found != wanted:
        name, kind, _ = next(iter(sorted(set(found) ^ set(wanted))), ("", "their order", ""))
        raise NotWhole(f"its archive and its manifest differ in {kind} {name}".rstrip())
    return list(zip(manifest.items, entries, strict=True))


def _content(item: Item, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(entry)
    content = stream.read() if stream else b""
    if hashlib.sha256(content).hexdigest() != item.sha256:
        raise NotWhole(f"{item.path} has other bytes than its manifest says")
    return content


def _unpack(manifest: Manifest, archive: Path, incoming: Path, move: Move) -> None:
    """Write every item below ``incoming``. Modes follow the umask, as for what is built here."""
    links: list[Item] = []
    with tarfile.open(archive, "r:gz") as tar:
        for item, entry in _members(manifest, tar):
            path = incoming / item.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if item.kind == "folder":
                path.mkdir(exist_ok=True)
            elif item.kind == "link":
                links.append(item)  # last: nothing is written through one
            else:
                content = _content(item, tar, entry)
                if move.needed and item.prefix:
                    content = (move.binary if item.prefix == "binary" else move.text)(content)
                mode = 0o777 if item.executable else 0o666
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                os.utime(path, (entry.mtime, entry.mtime))
    for item in links:
        target = move.text(item.target.encode()).decode() if move.needed else item.target
        (incoming / item.path).symlink_to(target)


def _take(source: Path, target: Path) -> None:
    """Give ``source`` its name; what a killed run or an older build left there goes first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        away = source.with_name(f"{source.name}.before")
        target.rename(away)  # in one step, so that a kill leaves a whole folder or none
    source.replace(target)
    sync(target.parent)
