"""The kit: one archive with all that an instance needs to become the image, by hash.

The same bytes for the same inputs: names sorted, times and owners fixed. It holds the provisioning
steps, the rendered files, two programs for the test in the image, and the release as it was built.
"""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mvstack.image import tools
from mvstack.image.packer import TEMPLATES
from mvstack.support.files import sha256_of
from mvstack.support.home import DATA

#: Of an installed tree, what is not part of a release: how it was built.
OF_RUNS = ("report.html", "records/last-test", "records/last-test.lock")
LEFT_OUT = ("logs", "build", "ebfiles_repo", "spack", *OF_RUNS)
PROGRAMS = ("world.c", "collectives.c")


def release_archive(tree: Path, archive: Path, note: Callable[[str], None], log: Path) -> str:
    """Pack the installed ``tree`` into ``archive`` (.tar.zst); its SHA-256.

    Raises BuildFailed when zstd fails (a full disk).
    """
    plain = archive.with_suffix("")
    with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in _members(tree):
            name = str(path.relative_to(tree))
            note(name)
            info = _plain(tar.gettarinfo(path, name))
            if info.isreg():
                with path.open("rb") as stream:
                    tar.addfile(info, stream)
            else:
                tar.addfile(info)
    # one thread: the bytes of several depend on how many there are
    options = ("--quiet", "--force", "--rm", "-6", "--single-thread")
    command: list[str | Path] = ["zstd", *options, plain, "-o", archive]
    tools.run(command, log, what="packing the release")
    return sha256_of(archive)


def _members(tree: Path) -> list[Path]:
    """Folders before what they hold, all in order of their names."""
    found = []
    for path in sorted(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if any(name == out or name.startswith(f"{out}/") for out in LEFT_OUT):
            continue
        if "/easybuild/" in f"/{name}" and name.endswith((".log", ".bz2", ".gz")):
            continue  # EasyBuild's own logs
        if path.is_symlink() or path.is_file() or path.is_dir():
            found.append(path)
    return found


def programs() -> list[Path]:
    """The sources of the programs that the test in the instance compiles."""
    return [DATA / "tests" / "reframe" / "src" / name for name in PROGRAMS]


def make_kit(
    kit: Path,
    image: dict[str, str],
    facts: dict[str, Any],
    archive: Path,
    packages: str = "",
    provision: Path = TEMPLATES,
) -> str:
    """Write ``kit`` and return its SHA-256.

    ``image`` are the rendered files below ``image/``, ``facts`` becomes the image's own
    /etc/mvapich-stack/image.json, ``archive`` is the release, ``packages`` a list of exact
    versions of an earlier build, ``provision`` the folder with provision/ and files/.
    """
    texts = _texts(image, provision)
    texts["image.json"] = ((json.dumps(facts, indent=1) + "\n").encode(), 0o644)
    texts["release.sha256"] = (f"{sha256_of(archive)}  release.tar.zst\n".encode(), 0o644)
    if packages:
        texts["packages.txt"] = (packages.encode(), 0o644)
    part = kit.with_suffix(".part")
    with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, texts)
        info = _plain(tar.gettarinfo(archive, "release.tar.zst"))
        info.mode = 0o644
        with archive.open("rb") as stream:
            tar.addfile(info, stream)
    part.replace(kit)
    return sha256_of(kit)


def smoke_archive(image: dict[str, str], more: Mapping[str, bytes]) -> bytes:
    """A tar of the kit without release and facts, and with ``more``: what provision/smoke needs."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, _texts(image, TEMPLATES) | {name: (data, 0o600) for name, data in more.items()})
    return stream.getvalue()


def _texts(image: dict[str, str], provision: Path) -> dict[str, tuple[bytes, int]]:
    """Name, content and mode of every small file of a kit."""
    texts: dict[str, tuple[bytes, int]] = {}
    for top in ("provision", "files"):
        for path in sorted((provision / top).rglob("*")):
            if path.is_file():
                mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                texts[str(path.relative_to(provision))] = (path.read_bytes(), mode)
    for name, text in image.items():
        texts[name] = (text.encode(), 0o644)
    for source in programs():
        texts[f"tests/{source.name}"] = (source.read_bytes(), 0o644)
    return texts


def _add(tar: tarfile.TarFile, texts: dict[str, tuple[bytes, int]]) -> None:
    for name, (data, mode) in sorted(texts.items()):
        info = _plain(tarfile.TarInfo(name))
        info.size, info.mode = len(data), mode
        tar.addfile(info, io.BytesIO(data))


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from machine to machine."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = 0
    info.mode &= 0o7755
    return info
