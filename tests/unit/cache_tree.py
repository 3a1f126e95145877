"""An installed tree with files to push, a key to sign with, and a second root to install into."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from install_tree import look, plan_in

from mvstack.builders.base import Run
from mvstack.builders.easybuild import command as eb
from mvstack.builders.easybuild import install as run
from mvstack.cache import gpg, store
from mvstack.cache.place import Place, place
from mvstack.cache.push import push
from mvstack.cache.use import site_caches
from mvstack.plan.types import Plan
from mvstack.sources.fetch import Fetched, Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

# What stands for EasyBuild: notes what it was asked to build, and writes its module.
PROGRAM = """\
#!/bin/bash
file="${{!#}}"
echo "$file" >> {top}/built
module=$(awk -F '\\t' -v f="$file" '$1 == f {{ print $2 }}' {top}/modules)
mkdir -p "$(dirname "$module")"; echo "-- $file" > "$module"
"""


class Stocked(Fetcher):
    """A mirror that has every source."""

    def fetch(self, spec: SourceSpec) -> Fetched:
        return Fetched(self.store.root / "x", spec.filename, spec.hashes[0], "mirror", True)

    def link_easybuild(self, spec: SourceSpec, fetched: Fetched) -> Path:
        return fetched.path


class Site:
    """Two install roots (``builder``, ``other``), a cache and a key, all below ``top``."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch, key_home: Path) -> None:
        self.top, self.cache = top, top / "cache"
        self.monkeypatch = monkeypatch
        monkeypatch.delenv("MVSTACK_CACHES", raising=False)
        monkeypatch.setenv("XDG_STATE_HOME", str(top / "state"))
        monkeypatch.setenv("MVSTACK_GNUPGHOME", str(key_home))
        program = top / "easybuild"
        program.write_text(PROGRAM.format(top=top))
        program.chmod(0o755)
        lmod = top / "lmod" / "libexec" / "lmod"
        lmod.parent.mkdir(parents=True)
        lmod.touch()
        monkeypatch.setenv("LMOD_CMD", str(lmod))
        monkeypatch.setattr(eb, "_program", lambda: [str(program)])
        # a power cut is not tried here, and on a busy machine each would take a second
        monkeypatch.setattr(os, "sync", lambda: None)
        self.builder = plan_in(top / "the-root-of-the-builder")
        self.other = plan_in(top / "other")

    @property
    def place(self) -> Place:
        return place(str(self.cache))

    def fill(self) -> None:
        """Leave the builder's tree as EasyBuild would, with a path in text, program and link."""
        plan = self.builder
        records = Records(Path(plan.tree))
        records.plan(plan.as_dict())
        for item in look(plan):
            stem = item.node.key.removesuffix(".eb").removeprefix(f"{item.node.name}-")
            own = Path(plan.tree) / "software" / item.node.name / stem
            make_software(own, plan.tree)
            kept = Path(plan.tree) / "ebfiles_repo" / item.node.name / item.node.key
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(f"name = {item.node.name!r}\n")
            item.module_file.parent.mkdir(parents=True, exist_ok=True)
            item.module_file.write_text(f'local root = "{own}"\nprepend_path("PATH", root)\n')
            records.built(item.node.key, item.node.content)
            records.append(
                "builds",
                {"easyconfig": item.node.key, "result": "built", "host": "node1",
                 "sources": [{"file": "x.tar.gz", "sha256": "0" * 64, "upstream": True}]},
            )  # fmt: skip

    def push(self, **more: Any) -> list[dict[str, Any]]:
        plan = json.loads((Path(self.builder.tree) / "records" / "plan.json").read_text())
        return push(plan, self.place, gpg.own_key(), Progress(mode="quiet"), **more)

    def install(self, plan: Plan | None = None, **more: Any) -> list[dict[str, Any]]:
        """Install from the cache into the other root."""
        plan = plan or self.other
        rows = [f"{item.node.key}\t{item.module_file}\n" for item in look(plan)]
        (self.top / "modules").write_text("".join(rows))
        fetcher = Stocked(Store(self.top / "sources"), [], self.top / "state")
        caches = site_caches([str(self.cache)], **more)
        umask = os.umask(0o022)
        try:
            return run.install(plan, Run(fetcher, Progress(mode="quiet"), caches=caches))
        finally:
            os.umask(umask)

    def built(self) -> list[str]:
        """What EasyBuild was asked for."""
        file = self.top / "built"
        return file.read_text().split() if file.is_file() else []

    def files_of(self, software: str) -> tuple[Path, Path]:
        """The manifest and the archive of one software in the cache."""
        for os_name, content in store.names(self.place):
            entry = store.find(self.place, os_name, content)
            if entry and entry.manifest.package == software:
                return self.cache / store.manifest_name(
                    os_name, content
                ), self.cache / store.archive_name(entry.manifest)
        raise LookupError(software)


def make_software(own: Path, tree: str) -> None:
    """Some files of a package: text, a program, links, an empty folder, and a private log."""
    (own / "bin").mkdir(parents=True)
    (own / "lib" / "empty").mkdir(parents=True)
    (own / "easybuild").mkdir()
    (own / "bin" / "tool").write_bytes(
        b"\x7fELF\0" + f"{tree}/software/x/lib".encode() + b"\0\1end"
    )
    (own / "bin" / "tool").chmod(0o755)
    (own / "bin" / "wrapper").write_text(f"#!/bin/sh\nexec {own}/bin/tool\n")
    (own / "lib" / "near").symlink_to("../bin/tool")
    (own / "lib" / "far").symlink_to(f"{own}/bin/tool")
    (own / "easybuild" / "build.log").write_text("TOKEN=secret\n")
