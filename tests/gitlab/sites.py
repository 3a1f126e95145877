"""A site's project over a copy of this repository, with a cache that holds the MPI already.

The MPI is that of the release which images are made of (tests/images/release.py): it was built by
EasyBuild here, once, and is pushed into the site's cache with the site's key. What a pipeline then
builds are the small packages over it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from one_writer import one_writer

from gitlab.project import HOST, Project, Server
from images import release
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.cache.push import push
from mvstack.support.home import DATA
from mvstack.support.progress import Progress
from mvstack.tree.records import kept_plan

STACK = "hpc/mvapich-stack"
SYSTEM = """\
name: mini
title: A cluster of two nodes on loopback
site: tests
builder: easybuild
os: debian12
scheduler: slurm
source: tests/slurm/loopback
partitions:
  cpu:
    title: two nodes
    nodes: 2
    cores: 2
    memory_gb: 1
    target: x86_64_v3
    fabric: shm
    launcher: srun
    compiler: {name: gcc, version: 12.2.0}
    mpi: {product: mpich, version: 4.0.2, why: its source is in Debian's archive}
    without:
      OSU-Micro-Benchmarks: its tarball is not in Debian's archive
"""
INCLUDE = f"""\
include:
  - project: {STACK}
    ref: &stack {{commit}}
    file: /ci/site.yml
    inputs:
      stack_url: https://{HOST}/{STACK}.git
      stack_commit: *stack
"""
SETTINGS = """\
systems:
  - system: systems/mini.yaml
    staging: {shared}/s
    root: {shared}/apps
caches: [{shared}/cache]
push: {shared}/cache
trust: [keys/site.asc]
tree_length: {length}
"""


@dataclass
class World:
    """A server with both projects, and what a site has beside them. Paths are short on purpose:
    what was built at one path is moved to paths that are no longer."""

    server: Server
    stack: Project
    site: Project
    shared: Path
    secret: str = field(repr=False)
    length: int

    def variables(self) -> dict[str, str]:
        """The project's variables."""
        return {"MVSTACK_CLONES": str(self.shared / "clones")}

    def settings(self, **more: str) -> str:
        """The settings file, with lines added."""
        text = SETTINGS.format(shared=self.shared, length=self.length)
        return text + "".join(f"{name}: {value}\n" for name, value in more.items())

    def including(self, commit: str) -> str:
        """The site's .gitlab-ci.yml for a commit of mvapich-stack."""
        return INCLUDE.format(commit=commit)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Both projects, made below ``folder``; skips where the MPI cannot be built."""
    tree = release.installed()
    shared = Path(tempfile.mkdtemp(prefix="", dir="/tmp"))
    before = os.environ.get("MVSTACK_GNUPGHOME")
    os.environ["MVSTACK_GNUPGHOME"] = str(shared / "gnupg")
    try:
        key = gpg.create("A site of tests", f"hpc@{HOST}")
        plan = kept_plan(tree)
        chain = [
            *(f"{name}-{plan['compiler']['version']}.eb" for name in ("GCCcore", "GCC")),
            # those of packages are there too, and are for the pipeline to build
            *(path.name for path in (tree / "rendered" / "easyconfigs").glob("MPICH-[0-9]*.eb")),
            *(path.name for path in (tree / "rendered" / "easyconfigs").glob("gmpich-*.eb")),
        ]
        with one_writer():  # it would refuse others' installations meanwhile
            cache = place(str(shared / "cache"))
            push(plan, cache, key, Progress(mode="quiet"), only=frozenset(chain))
        server = Server(folder / "server")
        stack = Project(folder / "stack", {".": DATA}, name=STACK, server=server)
        made = World(server, stack, None, shared, _secret(key), len(str(tree)))  # type: ignore[arg-type]
        made.site = Project(
            folder / "site",
            {
                ".gitlab-ci.yml": made.including(stack.head),
                "mvstack-ci.yaml": made.settings(),
                "systems/mini.yaml": SYSTEM,
                "keys/site.asc": gpg.export(key.fingerprint),
            },
            server=server,
        )
        yield made
    finally:
        if before is None:
            del os.environ["MVSTACK_GNUPGHOME"]
        else:
            os.environ["MVSTACK_GNUPGHOME"] = before
        shutil.rmtree(shared, ignore_errors=True)


def _secret(key: gpg.Key) -> str:
    home = os.environ["MVSTACK_GNUPGHOME"]
    words = ["gpg", "--homedir", home, "--batch", "--quiet", "--armor"]
    done = subprocess.run(
        [*words, "--export-secret-keys", key.fingerprint],
        capture_output=True,
        text=True,
        check=True,
    )
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return done.stdout


def edited(project: Project, edits: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Files of ``project`` with texts replaced, which must be there."""
    found = {}
    for name, changes in edits.items():
        text = (project.folder / name).read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new, 1)
        found[name] = text
    return found
