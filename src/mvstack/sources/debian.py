"""The Debian source archive: a private apt that needs no root and changes nothing here.

Its configuration, lists and cache lie in the user's state. The archives are those that this
machine's apt uses already (a site's own mirror, its proxy), turned to sources. What apt brings is
chosen by hash: the index names the SHA-256 of every file, so nothing that the recipe does not list
is ever loaded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mvstack.sources.apt_sources import archives
from mvstack.sources.download import Advance, NotHere, host_of
from mvstack.sources.hosts import SilentHosts
from mvstack.sources.process import run
from mvstack.sources.spec import Debian

KEYRINGS = Path("/usr/share/keyrings")
FRESH = 24 * 3600.0  # seconds for which an index is taken as it is: suites change little
LIMIT = 600.0  # seconds for one call of apt


class DebianArchive:
    """The source archive of Debian, through a private apt below ``state``."""

    def __init__(self, state: Path, hosts: SilentHosts, uris: Sequence[str] | None = None) -> None:
        self.folder = state / "apt"
        self.hosts = hosts
        self.uris = list(uris) if uris is not None else archives()

    @staticmethod
    def lacking() -> str:
        """Why apt cannot be used on this machine; "" when it can."""
        if not shutil.which("apt-get"):
            return "this machine has no apt-get"
        if not _keyrings():
            return f"no keys in {KEYRINGS} (the package debian-archive-keyring brings them)"
        return ""

    def pool(self, wanted: Debian) -> list[str]:
        """Where the archives have the file itself, for machines that have no apt."""
        prefix = wanted.package[: 4 if wanted.package.startswith("lib") else 1]
        place = f"pool/main/{prefix}/{wanted.package}/{wanted.file}"
        return [f"{uri}/{place}" for uri in self.uris if uri.startswith("http")]

    def fetch(
        self, wanted: Debian, hashes: Sequence[str], folder: Path, advance: Advance
    ) -> tuple[Path, str]:
        """The file of ``wanted``, loaded into ``folder``, and where it is from, in words.

        Raises NotHere: no apt here, no keyring, the archive does not answer, the suite's version
        has none of ``hashes``.
        """
        if why := self.lacking():
            raise NotHere(f"Debian source archive: {why}")
        told: list[str] = []
        for uri in self.uris:
            host = host_of(uri) if uri.startswith("http") else uri
            if silent := self.hosts.why(host):
                told.append(silent)
                continue
            with self._locked():
                try:
                    return self._from(uri, host, wanted, hashes, folder, advance)
                except NotHere as why:
                    told.append(str(why))
        raise NotHere("Debian source archive: " + "; ".join(told))

    def _from(
        self,
        uri: str,
        host: str,
        wanted: Debian,
        hashes: Sequence[str],
        folder: Path,
        advance: Advance,
    ) -> tuple[Path, str]:
        changed = self._configure(uri, wanted.suite)
        if changed or not self._fresh():
            self._update(host)
        versions = self._versions(wanted, folder)
        for version, files in versions.items():
            sha256, size = files.get(wanted.file, ("", 0))
            if sha256 not in hashes:
                continue
            target = folder / wanted.file

            def look(target: Path = target, size: int = size) -> None:
                if target.is_file():
                    advance(target.stat().st_size, size)

            code, said = self._apt(
                ["apt-get", "source", "--tar-only", "--download-only", "--only-source",
                 f"{wanted.package}={version}"], folder, look,
            )  # fmt: skip
            if code or not target.is_file():
                raise NotHere(f"{wanted.package} {version}: {_last_words(said)}")
            advance(size, size)
            return target, f"Debian source archive, {wanted.suite}, {wanted.package} {version}"
        found = [
            f"{version} has {wanted.file} with sha256 {files[wanted.file][0]}"
            if wanted.file in files
            else f"{version} has {', '.join(sorted(files)) or 'no .orig file'}"
            for version, files in versions.items()
        ]
        raise NotHere(
            f"{wanted.suite} of {uri} has no {wanted.file} with a listed hash: "
            + ("; ".join(found) or f"it has no source package {wanted.package}")
        )

    def _versions(self, wanted: Debian, folder: Path) -> dict[str, dict[str, tuple[str, int]]]:
        """Version → .orig file → (SHA-256, size), newest first, as the archive's index says."""
        _, said = self._apt(["apt-cache", "showsrc", "--only-source", wanted.package], folder)
        found: dict[str, dict[str, tuple[str, int]]] = {}
        for stanza in re.split(r"\n\s*\n", said):
            version = re.search(r"^Version: (\S+)$", stanza, re.MULTILINE)
            files = re.search(r"^Checksums-Sha256:\s*\n((?: .*\n?)+)", stanza, re.MULTILINE)
            if version and files:
                rows = [line.split() for line in files[1].splitlines()]
                found[version[1]] = {
                    row[2]: (row[0], int(row[1]))
                    for row in rows
                    if len(row) == 3 and ".orig" in row[2] and not row[2].endswith(".asc")
                }
        return found

    def _update(self, host: str) -> None:
        """Load the index. apt calls a host that does not answer a warning and exits with 0."""
        for old in (self.folder / "lists").glob("*_source_Sources*"):
            old.unlink()
        _, said = self._apt(["apt-get", "update"], self.folder)
        if self._index():
            self.hosts.answered(host)
            (self.folder / "updated").touch()
            return
        why = _last_words(said)
        if re.search(r"resolv|connect|timed? out|unreachable|proxy", said, re.IGNORECASE):
            self.hosts.silent(host, why)
        raise NotHere(f"{host}: {why}")

    def _fresh(self) -> bool:
        try:
            age = time.time() - (self.folder / "updated").stat().st_mtime
        except OSError:
            return False
        return 0 <= age < FRESH and bool(self._index())

    def _index(self) -> list[Path]:
        return list((self.folder / "lists").glob("*_source_Sources*"))

    def _configure(self, uri: str, suite: str) -> bool:
        """Write the private configuration; whether it is another than before."""
        for name in ("lists/partial", "cache/archives/partial", "state", "log"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        # an option is a list where apt allows one: several keyrings, separated by commas
        signed = ",".join(str(path) for path in _keyrings())
        sources = f"deb-src [signed-by={signed}] {uri} {suite} main\n"
        # Only how to reach an archive is taken over from this machine's apt (its proxy, its
        # timeouts): its hooks and pinnings are for installing packages.
        _, acquire = run(["apt-config", "dump", "Acquire"], self.folder, 30)
        here = self.folder
        text = acquire + "".join(
            f'{key} "{value}";\n'
            for key, value in {
                "Dir::Etc::main": "/dev/null",
                "Dir::Etc::parts": "/dev/null",
                "Dir::Etc::sourcelist": here / "sources.list",
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::Etc::preferences": "/dev/null",
                "Dir::Etc::preferencesparts": "/dev/null",
                "Dir::State": here / "state",
                "Dir::State::lists": here / "lists",
                "Dir::State::status": here / "status",
                "Dir::Cache": here / "cache",
                "Dir::Log": here / "log",
                # As root apt would read and write as user _apt, who may not enter here.
                "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
                "Acquire::Languages": "none",
                "Acquire::Retries": "0",
                "Acquire::http::Timeout": "10",
                "Acquire::https::Timeout": "10",
            }.items()
        )
        (self.folder / "apt.conf").write_text(text)
        listed = self.folder / "sources.list"
        if listed.is_file() and listed.read_text() == sources:
            return False
        listed.write_text(sources)
        return True

    def _apt(
        self, command: list[str], folder: Path, look: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        environment = {"APT_CONFIG": str(self.folder / "apt.conf")}
        return run(command, folder, LIMIT, environment, look)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time: apt's own lock would make the second fail and not wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _keyrings() -> list[Path]:
    return sorted(KEYRINGS.glob("debian-archive-*.gpg"))


def _last_words(said: str) -> str:
    """Why apt failed, in its own words: its errors, else its warnings, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for mark in ("Err:", "E:", "W:"):
        rows = [line for line in lines if line.startswith(mark)]
        if mark == "Err:" and rows:
            after = lines[lines.index(rows[0]) + 1 :][:1]
            return after[0] if after else rows[0]
        if rows:
            return rows[0].removeprefix(mark).strip()
    return lines[-1] if lines else "apt said nothing"
