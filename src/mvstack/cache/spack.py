"""Spack's own build cache in the same folder and with the same key."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mvstack.cache import gpg
from mvstack.cache.place import Place
from mvstack.cache.tree import plan_of
from mvstack.errors import Problem, Refused
from mvstack.progress import Progress
from mvstack.spack.builder import prepared, store_of
from mvstack.spack.graph import installed, read_graph
from mvstack.spack.pins import load_pins
from mvstack.spack.runner import Spack

FOLDER = "spack"  # below the cache


def push(
    plan: dict[str, Any], place: Place, key: gpg.Key, progress: Progress, replace: bool = False
) -> list[dict[str, Any]]:
    """Push what Spack installed for ``plan`` (its plan.json); a row for each package.

    Spack itself packs, signs and skips what is there. Raises Refused when nothing is installed
    there, BuildFailed with Spack's words when it will not push.
    """
    made = plan_of(plan)
    tree, cache = Path(made.tree), place.writable() / FOLDER
    there = installed(store_of(tree))
    rows = []
    for folder in (tree / "rendered" / "spack" / "compiler", tree / "rendered" / "spack"):
        if not (folder / "spack.lock").is_file():
            continue
        nodes = [node for node in read_graph(folder / "spack.lock").built if node.hash in there]
        before = {node.hash for node in nodes if entry(cache, node.name, node.hash)}
        if not nodes:
            continue
        what = f"{len(nodes)} packages of {made.system}/{made.partition}"
        with progress.step("push", what) as step:
            _run(made.root, tree, folder, cache, key, replace, progress, step.note)
        rows += [
            {
                "result": "already there" if node.hash in before and not replace else "pushed",
                "package": node.name,
                "version": node.version,
                "module": "",
                "hash": node.hash,
                "os": made.os,
                "target": made.target,
                "bytes": 0,
            }
            for node in nodes
            if entry(cache, node.name, node.hash)
        ]
    if not rows:
        raise Refused(
            Problem(
                "nothing of this tree is installed",
                str(tree),
                todo=f"mvstack install {made.system}/{made.partition}",
            )
        )
    public = cache.parent / "keys" / f"{key.fingerprint}.asc"
    public.parent.mkdir(exist_ok=True)
    public.write_text(gpg.export(key.fingerprint))
    return rows


def entry(cache: Path, name: str, content: str) -> Path | None:
    """The signed manifest of one package in a build cache of layout 3; None when there is none."""
    found = (cache / "v3" / "manifests" / "spec" / name).glob(f"*-{content}.spec.manifest.json")
    return next(found, None)


def _run(
    root: str,
    tree: Path,
    folder: Path,
    cache: Path,
    key: gpg.Key,
    replace: bool,
    progress: Progress,
    note: Any,
) -> None:
    words = ["buildcache", "push", "--key", key.fingerprint, "--update-index"]
    words += ["--force"] if replace else []
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mvstack-") as state, gpg.agent_home():
        isolated = prepared(
            Path(root), load_pins(), progress, Path(state), store_of(tree), None, tree
        )
        spack = Spack(isolated, Path(state) / "logs")
        spack.run("push", "-e", str(folder), *words, cache.as_uri(), note=note)
