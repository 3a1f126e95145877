"""A Spack as anybody has it, for tests: a home of its own, and package repositories as asked for.

The clone of Spack is the pinned one or its branch develop; the packages are the pinned ones,
spack-packages' newest release, or its develop. A clone is made once for all tests, and kept by its
commit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from spack_here import spack_here

from mvstack.builders.spack.clone import URLS
from mvstack.model.spack import spack_pins

TOP = Path(__file__).resolve().parents[2]
REPOSITORIES = TOP / "spack-repo" / "spack_repo"
STACK, MENDS = REPOSITORIES / "mvapich_stack", REPOSITORIES / "mvapich_stack_mends"


class Stock:
    """A clone of Spack with a home of its own, configured by its own commands."""

    def __init__(self, folder: Path, newest: bool = False) -> None:
        pinned = spack_here(folder / "state")
        self.folder, self.home, self.newest = folder, folder / "home", newest
        self.home.mkdir()
        if (config := Path.home() / ".gitconfig").is_file():
            shutil.copy2(config, self.home)  # a site's proxies and mirrors of git
        self.kept = pinned.clones.home.parent  # of clones that all tests use
        self.name, spack = "the pinned Spack", pinned.clones.spack
        if newest:
            self.name, spack = clone_of(self.kept, "develop", "spack")
        clone = ["git", "clone", "--quiet", "--depth=1", f"file://{spack}"]
        subprocess.run([*clone, str(folder / "spack")], check=True, capture_output=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPACK_", "PYTHON"))}
        self.environment = {**kept, "HOME": str(self.home), "SPACK_PYTHON": str(pinned.python)}
        # the one repository that it would clone: the pinned one is here already
        self.packages = pinned.clones.packages

    def takes(self, packages: Path) -> None:
        """Let builtin be that of a clone of spack-packages."""
        self.packages = packages
        # Its indexes of builtin take minutes, and are kept; those of ours change with any edit.
        cache = self.kept / "stock" / f"{packages.name}{'-newest' * self.newest}"
        for index in cache.glob("cache/*/mvapich_stack*"):
            index.unlink()
        self.environment["SPACK_USER_CACHE_PATH"] = str(cache)
        self.run("repo", "set", "--destination", str(packages), "builtin")

    def run(self, *words: str, check: bool = True) -> str:
        """One spack command; both its outputs."""
        done = subprocess.run(
            [str(self.folder / "spack" / "bin" / "spack"), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        text = done.stdout + done.stderr
        assert done.returncode == 0 or not check, text[-3000:]
        return text


def clone_of(kept: Path, which: str, what: str = "packages") -> tuple[str, Path]:
    """spack-packages' newest `release`, or `develop`: what it is called, and a clone of it.

    Spack's own develop where ``what`` is "spack". Skips where the repository cannot be reached.
    """
    url = os.environ.get(URLS[what]) or spack_pins().repositories[what].url
    listed = subprocess.run(["git", "ls-remote", "--refs", url], capture_output=True, text=True)
    if listed.returncode:
        pytest.skip(f"skipped: unreachable: {url}: {listed.stderr.strip()}")
    found = dict(line.split()[::-1] for line in listed.stdout.splitlines())
    refs = ["refs/heads/develop"]
    if which == "release":
        # a tag where there are tags; a copy may have them as branches
        refs = sorted(
            (ref for ref in found if re.search(r"/v20\d\d\.\d+\.\d+$", ref)),
            key=lambda ref: [int(number) for number in re.findall(r"\d+", ref)],
        )
    assert refs and refs[-1] in found, f"{url} has no {which}"
    name = refs[-1].rpartition("/")[2]
    target = kept / what / found[refs[-1]]
    if not target.is_dir():
        incoming = target.with_name(f".incoming-{os.getpid()}")
        incoming.parent.mkdir(exist_ok=True)
        take = ["git", "clone", "--quiet", "--depth=1", "--branch", name, url, str(incoming)]
        subprocess.run(take, check=True, capture_output=True)
        incoming.rename(target)
    return f"{name} ({found[refs[-1]][:10]})", target
