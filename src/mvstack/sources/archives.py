"""What others carry of upstream's: Debian's source archive, and PyPI by pip.

Debian's .orig tarballs are often upstream's own bytes, which the hash proves. Asked are the
archives that MVSTACK_DEBIAN_ARCHIVE names, else those that this machine's apt uses. pip honours a
site's own index, proxy and certificates.
"""

import os
import re
import sys
from pathlib import Path

from mvstack.sources.download import SILENT, NotHere
from mvstack.sources.spec import Debian, SourceSpec
from mvstack.support.processes import english, run

PYPI = "PyPI"
SECONDS = 1800.0  # that pip may take
SETTING = "MVSTACK_DEBIAN_ARCHIVE"
UNKNOWN = f"Debian source archive: apt names none here, and {SETTING} is not set"
# Releases and the names that move along them: suites of security fixes, updates or backports are
# in other archives or lack the .orig of a release.
SUITES = (
    *("bullseye", "bookworm", "trixie", "forky", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
)


def debian_archives() -> list[str]:
    """The Debian archives to ask, in order, as URLs or folders; [] when none is known."""
    if named := os.environ.get(SETTING, "").split():
        return [uri.rstrip("/") for uri in named]
    try:
        done = run(["apt-get", "update", "--print-uris"], limit=30)
    except OSError:
        return []
    return named_by_apt(done.text)


def named_by_apt(uris: str) -> list[str]:
    """The Debian archives among what `apt-get update --print-uris` prints."""
    found = re.findall(r"^'((?:https?|file):\S+?)/+dists/([^/\s]+)/InRelease'", uris, re.MULTILINE)
    debian = dict.fromkeys(uri for uri, suite in found if suite in SUITES)
    return [re.sub(r"^file:/+", "/", uri) for uri in debian]


def place_in(archive: str, wanted: Debian) -> str:
    """Where ``archive`` has the file of ``wanted``."""
    prefix = wanted.package[: 4 if wanted.package.startswith("lib") else 1]
    return f"{archive}/pool/main/{prefix}/{wanted.package}/{wanted.file}"


def by_pip(spec: SourceSpec, folder: Path) -> Path:
    """The file of ``spec.known.pypi`` (``impi-rt==2021.19.0``), loaded into ``folder``.

    pip itself refuses other bytes than those listed. A wheel for another machine than this one can
    be loaded too: its platform is read from its name. Raises NotHere with pip's last words.
    """
    if PYPI in SILENT:
        raise NotHere(f"{PYPI}: {SILENT[PYPI]} (not asked again)")
    listed, brought = folder / "requirements.txt", folder / "brought"
    hashes = " ".join(f"--hash=sha256:{one}" for one in spec.hashes)
    listed.write_text(f"{spec.known.pypi} {hashes}\n")
    command = [
        sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input",
        "--no-deps", "--no-cache-dir", "--timeout=15", "--retries=1", "--require-hashes",
        f"--dest={brought}", *_platform(spec.filename, spec.known.pypi), f"--requirement={listed}",
    ]  # fmt: skip
    done = run(command, env=english(), limit=SECONDS)
    if done.timed_out:
        raise NotHere(f"{PYPI}: {spec.known.pypi}: pip took more than {SECONDS:.0f} s")
    path = brought / spec.filename
    if done.ok and path.is_file():
        return path
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    if "hashes" in done.said.lower():
        raise NotHere(f"{PYPI}: {spec.known.pypi} has other bytes than the recipe lists")
    errors = [line for line in lines if line.startswith("ERROR:")]
    why = (errors or lines or [f"pip brought no {spec.filename}"])[0].removeprefix("ERROR:").strip()
    if "connection" in done.said.lower() or "resolv" in done.said.lower():
        why = "the index does not answer"
        SILENT[PYPI] = why
    raise NotHere(f"{PYPI}: {spec.known.pypi}: {why}")


def _platform(filename: str, requirement: str) -> list[str]:
    """pip's options for a wheel or a source distribution of that name.

    pip builds what a source distribution needs to say its own name: the distribution alone is
    asked for as source, or NumPy would be compiled before h5py is brought.
    """
    if not filename.endswith(".whl"):
        return [f"--no-binary={requirement.partition('==')[0]}"]
    tags = filename.removesuffix(".whl").split("-")[-3:]
    options = ["--only-binary=:all:"]
    if len(tags) == 3 and tags[2] != "any":
        options += [f"--platform={one}" for one in tags[2].split(".")]
        python = tags[0].split(".")[-1]
        if python.startswith("cp"):
            options += ["--implementation=cp", f"--abi={tags[1]}"]
            if tags[1] != "abi3":  # that of any Python from the named one on: this one will do
                options += [f"--python-version={python[2:]}"]
    return options
