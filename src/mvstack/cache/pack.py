"""Make one entry: look at every file of a node, write its archive, and say what it holds."""

from __future__ import annotations

import gzip
import hashlib
import stat
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from mvstack.cache import elf
from mvstack.cache.manifest import Archive, Item, Manifest, Needed
from mvstack.cache.prefix import Move
from mvstack.cache.tree import Installed
from mvstack.plan.types import Plan
from mvstack.sources.files import sha256_of
from mvstack.support.errors import Missing, Refused

# EasyBuild's log and report hold the whole environment of who built: that stays at home.
PRIVATE = ("*.log", "*_test_report.md", "*.log.gz", "*.log.bz2")
# What a row of builds.jsonl tells those who install.
TOLD = ("started", "host", "cores", "seconds", "sources")


def pack(plan: Plan, node: Installed, archive: Path, needs: list[Needed]) -> Manifest:
    """Write the archive of ``node`` and return its manifest.

    Raises Refused for files that cannot be in an archive, Missing when the tree is not whole.
    """
    tree, easyconfig = Path(plan.tree), node.node.key
    if not node.software.is_dir():
        what = f"the files of {easyconfig} are not where its module says"
        todo = f"mvstack install {plan.system}/{plan.partition}"
        raise Missing(what, str(node.software), todo=todo)
    same = Move(plan.tree, plan.tree)
    items: list[Item] = []
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in [*_walk(node.software), *_beside(tree, node)]:
            items.append(_add(tar, path, str(path.relative_to(tree)), same))
    return Manifest(
        format=1,
        builder="easybuild",
        content=node.content,
        os=plan.os,
        target=plan.target,
        easyconfig=easyconfig,
        package=node.node.name,
        version=node.node.version,
        module=node.node.module,
        mpi=node.node.mpi,
        accepted=next(
            (one.accepted_sha256 for one in plan.mpi if one.easyconfig == easyconfig), ""
        ),
        tree=plan.tree,
        module_file=str(node.module_file.relative_to(tree)),
        software=str(node.software.relative_to(tree)),
        requires=list(node.requires),
        archive=Archive(sha256=sha256_of(archive), size=archive.stat().st_size),
        needs=needs,
        build={name: node.build[name] for name in TOLD if name in node.build},
        items=items,
    )


def _walk(folder: Path) -> Iterator[Path]:
    """``folder`` and all below it, parents first; links are not followed."""
    yield folder
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        elif not (path.parent.name == "easybuild" and any(path.match(one) for one in PRIVATE)):
            yield path


def _beside(tree: Path, node: Installed) -> list[Path]:
    """The module, and EasyBuild's copy of the easyconfig."""
    kept = tree / "ebfiles_repo" / node.node.name / node.node.key
    return [*([kept] if kept.is_file() else []), node.module_file]


def _add(tar: tarfile.TarFile, path: Path, name: str, same: Move) -> Item:
    about = path.lstat()
    entry = tarfile.TarInfo(name)
    entry.mtime = int(about.st_mtime)
    if stat.S_ISLNK(about.st_mode):
        target = str(path.readlink())
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        tar.addfile(entry)
        return Item(path=name, kind="link", target=target, prefix=same.where(target.encode()))
    if stat.S_ISDIR(about.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        return Item(path=name, kind="folder")
    if not stat.S_ISREG(about.st_mode):
        raise Refused("neither a file, a link nor a folder: it cannot be in a cache", str(path))
    content = path.read_bytes()
    executable = bool(about.st_mode & 0o111)
    entry.size, entry.mode = len(content), 0o755 if executable else 0o644
    tar.addfile(entry, BytesIO(content))
    return Item(
        path=name,
        kind="file",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        executable=executable,
        prefix=same.where(content),
    )


class Libraries:
    """Which libraries of the machine a tree's programs need: those that no node of it brings."""

    def __init__(self, nodes: list[Installed]) -> None:
        self._linked: dict[Path, dict[Path, elf.Linked]] = {}
        for node in nodes:
            found = {path: _linked(path) for path in _walk(node.software)}
            self._linked[node.software] = {path: one for path, one in found.items() if one}
        files = [path for own in self._linked.values() for path in own]
        self._brought = {path.name for path in files} | {
            one.soname for own in self._linked.values() for one in own.values() if one.soname
        }

    def of(self, node: Installed) -> list[Needed]:
        """What ``node`` needs of the machine, each with where the machine that built it had it."""
        wanted: dict[str, str] = {}
        for path, one in self._linked[node.software].items():
            for soname in one.needed:
                if soname not in self._brought:
                    wanted[soname] = wanted.get(soname) or _in(one.folders, path, soname)
        return [Needed(soname=name, found=wanted[name]) for name in sorted(wanted)]


def _linked(path: Path) -> elf.Linked | None:
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return None
    return elf.linked(path.read_bytes())


def _in(folders: tuple[str, ...], path: Path, soname: str) -> str:
    """Where a run path has the library; "" when it is one of the system's own folders."""
    for folder in folders:
        file = Path(folder.replace("$ORIGIN", str(path.parent))) / soname
        if file.is_file():
            return str(file)
    return ""
