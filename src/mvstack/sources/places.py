"""The places outside the mirror: site mirrors and upstream by HTTP, Debian's archive, PyPI."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import requests

from mvstack.sources.hosts import SilentHosts
from mvstack.sources.store import CHUNK

CONNECT, READ = 5.0, 30.0  # seconds to wait for a connection, and between two pieces
KEYRINGS = Path("/usr/share/keyrings")
Advance = Callable[[int, int], None]


class NotHere(Exception):
    """A place does not have a source; the text says why."""


def download(url: str, stream: BinaryIO, hosts: SilentHosts, advance: Advance) -> str:
    """Load ``url`` into ``stream``; its SHA-256. ``advance`` gets bytes so far and bytes in all.

    Raises NotHere when the host does not answer, has no such file, or stops in the middle.
    """
    host = urlsplit(url).hostname or url
    if silent := hosts.why(host):
        raise NotHere(silent)
    digest, got = hashlib.sha256(), 0
    try:
        with requests.get(
            url, stream=True, timeout=(CONNECT, READ), headers={"Accept-Encoding": "identity"}
        ) as answer:
            hosts.answered(host)
            if answer.status_code != 200:
                raise NotHere(f"{url}: HTTP {answer.status_code}")
            size = int(answer.headers.get("Content-Length") or 0)
            for chunk in answer.iter_content(CHUNK):
                stream.write(chunk)
                digest.update(chunk)
                got += len(chunk)
                advance(got, size)
    except (requests.ConnectionError, requests.Timeout) as error:
        if got:
            raise NotHere(f"{url}: broke off after {got} bytes") from None
        why = "does not answer" if isinstance(error, requests.Timeout) else _reason(error)
        hosts.silent(host, why)
        raise NotHere(f"{host}: {why}") from None
    except requests.RequestException as error:
        raise NotHere(f"{url}: {error}") from None
    if size and got != size:
        raise NotHere(f"{url}: truncated, {got} of {size} bytes")
    return digest.hexdigest()


def answers(url: str, hosts: SilentHosts) -> bool:
    """Whether ``url`` can be had, asked in at most a few seconds."""
    host = urlsplit(url).hostname or url
    if hosts.why(host):
        return False
    try:
        with requests.get(url, stream=True, timeout=(CONNECT, CONNECT)) as answer:
            hosts.answered(host)
            return answer.status_code == 200
    except (requests.ConnectionError, requests.Timeout) as error:
        why = "does not answer" if isinstance(error, requests.Timeout) else _reason(error)
        hosts.silent(host, why)
    except requests.RequestException:
        pass
    return False


def _reason(error: Exception) -> str:
    text = str(error)
    if "NameResolution" in text or "getaddrinfo" in text or "Name or service" in text:
        return "its name is not known (DNS)"
    if "refused" in text:
        return "refuses connections"
    if "proxy" in text.lower():
        return "cannot be reached through the proxy"
    return "cannot be connected to"


def from_debian(requirement: str, folder: Path) -> Path:
    """The ``.orig`` tarball of ``package=version`` from the Debian source archive.

    Uses a private apt configuration below ``folder``: no root, nothing of the machine's changes.
    Raises NotHere with apt's last words.
    """
    if not shutil.which("apt-get"):
        raise NotHere("Debian source archive: there is no apt-get on this machine")
    state = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial", "state"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text("\n".join(_deb_src()) + "\n")
    options = [
        f"-oDir::Etc::SourceList={state}/sources.list",
        "-oDir::Etc::SourceParts=-",
        f"-oDir::State={state}/state",
        f"-oDir::State::Lists={state}/lists",
        f"-oDir::State::status={state}/status",
        f"-oDir::Cache={state}/cache",
        "-oAPT::Sandbox::User=root",
        "-oAcquire::http::Timeout=10",
        "-oAcquire::Retries=1",
        "-oAcquire::Languages=none",
    ]
    _apt(["apt-get", *options, "update"], folder)
    _apt(["apt-get", *options, "source", "--tar-only", "--download-only", requirement], folder)
    found = [path for path in folder.glob("*.orig.*") if not path.name.endswith(".asc")]
    if len(found) != 1:
        raise NotHere(f"Debian source archive: {requirement} has {len(found)} .orig files")
    return found[0]


def _apt(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("E:")][-1:]
        raise NotHere(f"Debian source archive: {' '.join(said) or 'apt-get failed'}")


def _deb_src() -> list[str]:
    """deb-src lines for bookworm from the mirrors that this machine's apt uses."""
    keyring = KEYRINGS / "debian-archive-keyring.gpg"
    signed = f"[signed-by={keyring}] " if keyring.is_file() else ""
    uris = [uri for uri in _apt_uris() if uri.rstrip("/").endswith("/debian")]
    uris = uris[:1] or ["http://deb.debian.org/debian"]
    return [f"deb-src {signed}{uri} bookworm main" for uri in uris]


def _apt_uris(etc: Path = Path("/etc/apt")) -> list[str]:
    """The archives named in this machine's apt sources, one-line and deb822."""
    found: list[str] = []
    files = [etc / "sources.list", *sorted(etc.glob("sources.list.d/*"))]
    for path in files:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            one = re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)", line.strip())
            many = re.match(r"URIs:\s*(.+)", line.strip(), re.IGNORECASE)
            found += [one[1]] if one else many[1].split() if many else []
    return list(dict.fromkeys(found))


def from_pypi(requirement: str, filename: str, folder: Path) -> Path:
    """The wheel of ``requirement``, from the index that this user's pip is set up with."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-input",
            "--only-binary=:all:",
            "--disable-pip-version-check",
            "--dest",
            str(folder),
            requirement,
        ],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=900,
    )
    path = folder / filename
    if done.returncode or not path.is_file():
        said = (done.stderr.strip().splitlines() or [f"pip brought no {filename}"])[-1]
        raise NotHere(f"PyPI: {said}")
    return path


def scratch(near: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for what apt and pip bring, beside the mirror; gone afterwards."""
    near.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=near, prefix=".incoming-")
