"""Python packages: by pip, so that a site's own index, proxy and certificates are honoured."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mvstack.sources.download import Advance, NotHere
from mvstack.sources.hosts import SilentHosts
from mvstack.sources.process import run

PLACE = "PyPI"
LIMIT = 1800.0  # seconds


def fetch(
    requirement: str,
    filename: str,
    hashes: Sequence[str],
    folder: Path,
    hosts: SilentHosts,
    advance: Advance,
) -> Path:
    """The file of ``requirement`` (``impi-rt==2021.19.0``), loaded into ``folder``.

    pip itself refuses other bytes than ``hashes``. A wheel for another machine than this one can
    be loaded too: its platform is read from its name. Raises NotHere with pip's last words.
    """
    if silent := hosts.why(PLACE):
        raise NotHere(silent)
    listed = folder / "requirements.txt"
    listed.write_text(f"{requirement} {' '.join(f'--hash=sha256:{one}' for one in hashes)}\n")
    brought = folder / "brought"
    brought.mkdir()
    command = [
        *_pip(), "download", "--no-deps", "--no-input", "--disable-pip-version-check",
        "--progress-bar=off", "--no-cache-dir", "--timeout=15", "--retries=1", "--require-hashes",
        f"--dest={brought}", *_platform(filename, requirement), f"--requirement={listed}",
    ]  # fmt: skip
    code, said = run(command, folder, LIMIT)
    path = brought / filename
    if code == 0 and path.is_file():
        hosts.answered(PLACE)
        advance(path.stat().st_size, path.stat().st_size)
        return path
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any("HASHES" in line or "hashes" in line for line in lines):
        raise NotHere(f"{PLACE}: {requirement} has other bytes than the recipe lists")
    errors = [line for line in lines if line.startswith("ERROR:")]
    why = (errors or lines or [f"pip brought no {filename}"])[0].removeprefix("ERROR:").strip()
    if "connection" in said.lower() or "resolv" in said.lower():
        why = "the index does not answer"
        hosts.silent(PLACE, why)
    raise NotHere(f"{PLACE}: {requirement}: {why}")


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip3"):
        return [found]
    raise NotHere(f"{PLACE}: there is no pip here")


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
