"""What the package manager of an image says is installed, read from its database as it lies there.

dpkg's database is text. RPM's is read by the ``rpm`` program from a copy: a database that a program
opens may be written to (SQLite's journal), and an image that is looked at must not change.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mvstack.image.walk import inside
from mvstack.support.errors import CheckFailed, Missing
from mvstack.support.processes import run

Manager = Literal["dpkg", "rpm"]
DPKG_STATUS = "/var/lib/dpkg/status"
# Where RPM families keep it: RHEL 8 and 9; Fedora, and RHEL 10.
RPM_FOLDERS = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
_RPM_FILES = ("rpmdb.sqlite", "Packages", "Packages.db")
_FIELDS = ("NAME", "EPOCHNUM", "VERSION", "RELEASE", "ARCH", "SOURCERPM")
_SOURCE_RPM = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<release>[^-]+)\.(no)?src\.rpm")
_RELATION = re.compile(r"([a-z0-9][a-z0-9.+-]*) \(= ([^)\s]+)\)")
# Debian's packages own /bin/su where / and /usr are merged and the file is /usr/bin/su.
_MERGED = re.compile(r"/(bin|sbin|lib|lib32|lib64|libx32)/")


@dataclass(frozen=True, order=True)
class Package:
    """One installed package; ``version`` as its manager writes it, with the epoch unless it is 0.

    ``source`` is the source package that it was built from, by which security notices name it;
    ``within`` are source packages that it carries parts of, with their versions (Debian's
    Built-Using): a signed kernel is built from ``linux-signed-amd64`` and carries ``linux``.
    """

    name: str
    version: str
    arch: str
    source: str
    source_version: str
    within: tuple[tuple[str, str], ...] = ()

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Name and version of every source package that is in it, its own first."""
        return ((self.source, self.source_version), *self.within)


@dataclass(frozen=True)
class Distribution:
    """/etc/os-release: ``id`` and ``version`` as it says them (``debian``, ``12``) and its name."""

    id: str
    version: str
    name: str


def distribution(root: Path) -> Distribution:
    """Which distribution the image is. Raises Missing when its os-release cannot be read."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        place = inside(root, path)
        if place and place.is_file():
            rows = re.findall(r'^(\w+)=["\']?(.*?)["\']?$', place.read_text("utf-8"), re.MULTILINE)
            known: dict[str, str] = dict(rows)
            identity = known.get("ID", "linux")
            name = known.get("PRETTY_NAME", identity)
            return Distribution(identity, known.get("VERSION_ID", ""), name)
    raise Missing("there is no os-release in the image", str(root))


def manager(root: Path) -> Manager | None:
    """Which package manager's database the image has; None for neither."""
    status = inside(root, DPKG_STATUS)
    if status and status.is_file() and status.stat().st_size:
        return "dpkg"
    return "rpm" if _rpm_folder(root) else None


def installed(root: Path) -> list[Package]:
    """The installed packages, sorted.

    Raises Missing when the image has no package database, or has RPM's and there is no rpm here.
    """
    kind = manager(root)
    if kind is None:
        raise Missing(
            "there is no package database in the image",
            str(root),
            allowed=", ".join([DPKG_STATUS, *RPM_FOLDERS]),
        )
    return sorted(_dpkg(root) if kind == "dpkg" else _rpm(root))


def owned(root: Path) -> set[str]:
    """Every path that a package owns, as it is in the tree. Raises as :func:`installed`."""
    if manager(root) == "rpm":
        return {line for line in _ask_rpm(root, "-qal").splitlines() if line.startswith("/")}
    installed(root)
    folder = inside(root, "/var/lib/dpkg/info")
    lists = sorted(folder.glob("*.list")) if folder else []
    texts = [path.read_text(encoding="utf-8", errors="surrogateescape") for path in lists]
    paths = {line for text in texts for line in text.splitlines()}
    paths |= _diverted(root)
    merged = {
        name
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
        if (root / name).is_symlink()
    }
    return {_in_usr(path, merged) for path in paths}


def _in_usr(path: str, merged: set[str]) -> str:
    match = _MERGED.match(path)
    return f"/usr{path}" if match and match[1] in merged else path


def _diverted(root: Path) -> set[str]:
    """Where dpkg put files aside: rows of three lines, the second of them the new name."""
    place = inside(root, "/var/lib/dpkg/diversions")
    return set(place.read_text("utf-8").splitlines()[1::3]) if place else set()


def _dpkg(root: Path) -> Iterator[Package]:
    status = inside(root, DPKG_STATUS)
    assert status is not None
    for paragraph in status.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        rows = re.findall(r"^(\S+): *(.*)$", paragraph, re.MULTILINE)
        fields: dict[str, str] = dict(rows)
        # "install ok installed", or half of it; what was removed and left its settings is not there
        if fields.get("Status", "").split()[-1:] in ([], ["config-files"], ["not-installed"]):
            continue
        name, version = fields["Package"], fields["Version"]
        source, _, other = fields.get("Source", name).partition(" ")
        within = tuple(sorted(set(_RELATION.findall(fields.get("Built-Using", "")))))
        arch, of = fields["Architecture"], other.strip("()") or version
        yield Package(name, version, arch, source, of, within=within)


def _rpm(root: Path) -> Iterator[Package]:
    query = "\\t".join(f"%{{{field}}}" for field in _FIELDS) + "\\n"
    for line in _ask_rpm(root, "-qa", "--queryformat", query).splitlines():
        name, epoch, version, release, arch, source = line.split("\t")
        if name == "gpg-pubkey":  # a key that is trusted, kept among the packages
            continue
        prefix = f"{epoch}:" if epoch != "0" else ""
        built = _SOURCE_RPM.fullmatch(source)
        of = f"{prefix}{built['version']}-{built['release']}" if built else ""
        whole = f"{prefix}{version}-{release}"
        yield Package(name, whole, arch, built["name"] if built else name, of or whole)


def _rpm_folder(root: Path) -> Path | None:
    for path in RPM_FOLDERS:
        place = inside(root, path)
        if place and any((place / name).is_file() for name in _RPM_FILES):
            return place
    return None


def _ask_rpm(root: Path, *words: str) -> str:
    folder = _rpm_folder(root)
    program = shutil.which("rpm")
    if program is None or folder is None:
        raise Missing(
            "rpm is not installed, and the image's packages are RPM's",
            str(root),
            todo="Debian: apt-get install rpm; RHEL has it",
        )
    with tempfile.TemporaryDirectory(prefix="mvstack-") as copy:
        for path in folder.iterdir():
            if path.is_file():
                shutil.copyfile(path, Path(copy) / path.name)
        environment = {"LC_ALL": "C.UTF-8", "HOME": copy, "PATH": "/usr/bin:/bin"}
        done = run([program, "--dbpath", copy, *words], env=environment)
    if not done.ok:
        raise CheckFailed(
            "rpm cannot read the image's database", str(folder), found=done.errors[-300:]
        )
    return done.stdout.decode("utf-8", "surrogateescape")
