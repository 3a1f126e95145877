"""What of a tree can be an entry of a cache, by the tree's own records; and making the entry."""

import contextlib
import gzip
import json
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from mvstack.cache import elf
from mvstack.cache.manifest import Archive, Manifest, Needed
from mvstack.cache.prefix import Move, Where
from mvstack.plan.easybuild import build_order
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan, plan_of
from mvstack.support import hashes
from mvstack.support.errors import Missing, Refused
from mvstack.support.files import sha256_of
from mvstack.tree.records import Records

# EasyBuild's log and report hold the whole environment of who built: that stays at home.
PRIVATE = ("*.log", "*_test_report.md", "*.log.gz", "*.log.bz2")
# What a row of builds.jsonl tells those who install.
TOLD = ("started", "host", "cores", "seconds", "sources")

# The modules that a module loads.
_ASKS = re.compile(r'^\s*(?:depends_on|load|always_load)\("([^"]+)"\)', re.M)


@dataclass(frozen=True)
class Installed:
    """One package that is installed: its content hash, its paths, and the row of its build.

    ``requires`` are contents of packages that no plan names and that it needs.
    """

    node: Node
    content: str
    module_file: Path
    software: Path
    build: dict[str, Any]
    requires: tuple[str, ...] = ()


def installed(data: dict[str, Any]) -> tuple[Plan, list[Installed]]:
    """The plan of a tree and its packages that are whole, in build order.

    ``data`` is its plan.json. Whole is what has its module and is recorded with its hash. What
    EasyBuild brought along by itself comes first.
    """
    plan = plan_of(data)
    tree = Path(plan.tree)
    known, rows = Records(tree).hashes(), builds(tree)
    found = []
    for node in build_order(plan):
        file = tree / "modules" / node.file
        if node.key in known and file.is_file():
            folder = node.key.removesuffix(".eb").removeprefix(f"{node.name}-")
            software = tree / "software" / node.name / folder
            row = rows.get(node.key, {})
            found.append(Installed(node, known[node.key], file, software, row))
    return plan, _with_companions(plan, found)


def _with_companions(plan: Plan, found: list[Installed]) -> list[Installed]:
    """``found`` with what they require, and before them the packages that are required."""
    companions = list(_companions(plan, {item.module_file for item in found}))

    def below(item: Installed, seen: dict[str, None]) -> dict[str, None]:
        for name in _ASKS.findall(item.module_file.read_text()):
            for one in companions:
                if str(one.module_file).endswith(f"/{name}.lua") and one.content not in seen:
                    below(one, seen)
                    seen[one.content] = None
        return seen

    whole = [replace(item, requires=tuple(below(item, {}))) for item in found]
    used = {content for item in whole for content in item.requires}
    return [*(one for one in companions if one.content in used), *whole]


def _companions(plan: Plan, planned: set[Path]) -> Iterator[Installed]:
    """What EasyBuild installed beyond the plan (``--robot``)."""
    tree = Path(plan.tree)
    root = re.compile(rf'"{re.escape(plan.tree)}/software/([^/"]+)/([^/"]+)"')
    for file in sorted((tree / "modules").rglob("*.lua")):
        if file in planned or file.parent == tree / "modules" / "Core" / "mvapich-stack":
            continue
        own = root.search(file.read_text(errors="replace"))
        name, version = own.groups() if own else ("", "")
        easyconfig = tree / "ebfiles_repo" / name / f"{name}-{version}.eb"
        if easyconfig.is_file():
            content = hashes.of("companion", hashes.normalised(easyconfig.read_text()), plan.target)
            module = f"{file.parent.name}/{file.stem}"
            told = (easyconfig.name, "companion", name, version.partition("-")[0], content)
            software = tree / "software" / name / version
            yield Installed(Node(*told, module=module), content, file, software, {})


def builds(tree: Path) -> dict[str, dict[str, Any]]:
    """The last row of builds.jsonl that tells of a build, by easyconfig."""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError):
        for line in (tree / "records" / "builds.jsonl").read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):  # cut short by a power cut
                row = json.loads(line)
                if isinstance(row, dict) and row.get("result") == "built":
                    found[str(row.get("easyconfig"))] = row
    return found


def pack(plan: Plan, node: Installed, archive: Path, needs: list[Needed]) -> Manifest:
    """Write the archive of ``node`` and return its manifest.

    Raises Refused for files that cannot be in an archive, Missing when the tree is not whole.
    """
    tree = Path(plan.tree)
    if not node.software.is_dir():
        what = f"the files of {node.node.key} are not where its module says"
        todo = f"mvstack install {plan.system}/{plan.partition}"
        raise Missing(what, str(node.software), todo=todo)
    kept = tree / "ebfiles_repo" / node.node.name / node.node.key  # EasyBuild's copy
    beside = [path for path in (kept, node.module_file) if path.is_file()]
    same, holding = Move(plan.tree, plan.tree), dict[Where, str]()
    with packed(archive) as tar:
        for path in [*_walk(node.software), *beside]:
            name = str(path.relative_to(tree))
            holding.setdefault(same.where(_add(tar, path, name)), name)
    built = node.node
    accepted = {one.easyconfig: "".join(one.accepted_sha256) for one in plan.mpi}
    return Manifest(
        format=1,
        builder="easybuild",
        content=node.content,
        os=plan.os,
        target=plan.target,
        easyconfig=built.key,
        package=built.name,
        version=built.version,
        module=built.module,
        mpi=built.mpi,
        accepted=accepted.get(built.key, ""),
        tree=plan.tree,
        module_file=str(node.module_file.relative_to(tree)),
        software=str(node.software.relative_to(tree)),
        requires=list(node.requires),
        archive=Archive(sha256=sha256_of(archive), size=archive.stat().st_size),
        needs=needs,
        build={name: node.build[name] for name in TOLD if name in node.build},
        in_binary=holding.get("binary", ""),
        in_packed=holding.get("packed", ""),
    )


@contextlib.contextmanager
def packed(file: Path) -> Iterator[tarfile.TarFile]:
    """A new .tar.gz in ``file``: the same bytes for the same entries."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield tar


def _walk(folder: Path) -> Iterator[Path]:
    """``folder`` and all below it, parents first; links are not followed."""
    yield folder
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        elif not (path.parent.name == "easybuild" and any(path.match(one) for one in PRIVATE)):
            yield path


def _add(tar: tarfile.TarFile, path: Path, name: str) -> bytes:
    """Add ``path`` under ``name``, for no user and no umask; the content of a file."""
    about, content = path.lstat(), b""
    entry = tarfile.TarInfo(name)
    entry.mtime = int(about.st_mtime)
    if stat.S_ISLNK(about.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
    elif stat.S_ISDIR(about.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISREG(about.st_mode):
        content = path.read_bytes()
        entry.size, entry.mode = len(content), 0o755 if about.st_mode & 0o111 else 0o644
    else:
        raise Refused("neither a file, a link nor a folder: it cannot be in a cache", str(path))
    tar.addfile(entry, BytesIO(content))
    return content


def libraries(nodes: list[Installed]) -> dict[str, list[Needed]]:
    """By content hash the libraries that a package needs and no node brings, and their places."""
    linked = {
        node.content: {path: one for path in _walk(node.software) if (one := _linked(path))}
        for node in nodes
    }
    files = [pair for own in linked.values() for pair in own.items()]
    brought = {path.name for path, _ in files} | {one.soname for _, one in files}
    found = {}
    for content, own in linked.items():
        wanted: dict[str, str] = {}
        for path, one in own.items():
            for soname in set(one.needed) - brought:
                wanted[soname] = wanted.get(soname) or _in(one.folders, path, soname)
        found[content] = [Needed(soname=name, found=wanted[name]) for name in sorted(wanted)]
    return found


def _linked(path: Path) -> elf.Linked | None:
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as stream:
        return elf.linked(path.read_bytes()) if stream.read(4) == b"\x7fELF" else None


def _in(folders: tuple[str, ...], path: Path, soname: str) -> str:
    """Where a run path has the library; "" when it is one of the system's own folders."""
    files = [Path(one.replace("$ORIGIN", str(path.parent))) / soname for one in folders]
    return next((str(file) for file in files if file.is_file()), "")
