"""Spack's packages from one root into another, signed, without building: with the real Spack.

The packages are those of test_spack_builder, which build in a second.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spack_stock import Stock
from test_spack_builder import RECIPES, TOP, Here

from mvstack.builders.spack.cache import entry, push
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.support.progress import Progress

# Runs `mvstack install --cache-only` with the stand-ins in place of our recipes.
INSTALL = """
import json, sys
from pathlib import Path
from mvstack.plan import spack
spack.RECIPES = Path(sys.argv[1])
from mvstack.install import stages
from mvstack.cache.use import site_caches
from mvstack.support.errors import MvstackError
from mvstack.builders.base import Run
from mvstack.builders.spack.builder import BUILDER
from mvstack.model.load import load_system
from mvstack.support.progress import Progress
caches = site_caches([sys.argv[4]], True)
plan = stages.plan_for(load_system(sys.argv[2]), "node", None, Path(sys.argv[3]))
try:
    fetcher = stages.fetcher_for(plan.root)
    rows = BUILDER.install(plan, Run(fetcher, Progress(), jobs=1, caches=caches))
except MvstackError as error:
    print(json.dumps(error.as_dict()))
    sys.exit(error.exit_code)
print(json.dumps(rows))
"""


def carry_lock(source: Path, target: Path) -> None:
    """Take the solver's answer along: it holds wherever what it was made from is the same."""
    for name in ("rendered/spack/spack.lock", "records/lock.json"):
        if (source / name).is_file() and not (target / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def install(here: Here, root: Path, cache: Path, home: Path) -> tuple[int, Any]:
    """Install from the cache alone into another root, with the keys of ``home`` trusted."""
    root.mkdir(exist_ok=True)
    if not (root / "spack").exists():
        (root / "spack").symlink_to((here.root / "spack").resolve())
    carry_lock(here.tree, root / "2026.11" / "here-node")
    environment = {
        **os.environ,
        "HOME": str(here.folder / "home"),
        "XDG_STATE_HOME": str(here.folder / "state"),
        "MVSTACK_GNUPGHOME": str(home),
        "PYTHONPATH": str(TOP / "src"),
    }
    words = [str(RECIPES), str(here.system), str(root), str(cache)]
    command = [sys.executable, "-c", INSTALL, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, done.stdout + done.stderr


def a_stranger_installs_from_it(folder: Path, cache: Path, rows: list[Any], key: gpg.Key) -> None:
    """A stock Spack, which has none of our configuration, with the commands of docs/spack.md.

    A spec that it solves itself has other externals than the site: it asks by hash.
    """
    (folder / "stranger").mkdir()
    stock = Stock(folder / "stranger")
    stock.takes(stock.packages)
    stock.run("repo", "add", str(RECIPES))
    stock.run("mirror", "add", "--signed", "site", f"file://{cache}/spack")
    hpcc = "/" + next(row["hash"] for row in rows if row["package"] == "hpcc")
    assert "Successfully installed" not in stock.run("install", "--cache-only", hpcc, check=False)
    stock.run("gpg", "trust", str(cache / "keys" / f"{key.fingerprint}.asc"))
    assert hpcc[1:8] in stock.run("buildcache", "list", "--long", "--allarch", "hpcc")
    stock.run("install", "--cache-only", hpcc)
    made = Path(stock.run("location", "-i", hpcc).strip())
    assert made.is_relative_to(stock.folder / "spack" / "opt")
    assert subprocess.check_output([made / "bin" / "hpcc"], text=True) == "whole\n"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
def test_from_one_root_into_another(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One solve; in this order, for each step goes on from the one before."""
    here = Here(tmp_path_factory.mktemp("spack-cache-of-the-builder"))
    status, said = here.install()
    assert status == 0, said
    folder = here.folder
    site, stranger, cache = folder / "site-keys", folder / "no-keys", folder / "cache"
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(site))
    key = gpg.create("Site of the tests", "a@example.org")
    plan = json.loads((here.tree / "records" / "plan.json").read_text())
    monkeypatch.setattr("mvstack.plan.spack.RECIPES", RECIPES)
    rows = push(plan, place(str(cache)), key, Progress(mode="quiet"))
    assert {"mvapich", "hpcc"} <= {row["package"] for row in rows}
    assert {row["result"] for row in rows} == {"pushed"}
    assert all(row["bytes"] for row in rows)
    again = push(plan, place(str(cache)), key, Progress(mode="quiet"))
    assert {row["result"] for row in again} == {"already there"}

    # a key that nobody trusted
    other = folder / "b"
    status, said = install(here, other, cache, stranger)
    assert status == 4 and "not trusted here" in json.dumps(said), said
    assert not list((other / "2026.11" / "here-node" / "modules").rglob("*.lua"))

    # the key trusted
    status, rows = install(here, other, cache, site)
    assert status == 0, rows
    assert {row.get("from") for row in rows} == {"binary cache"}
    tree = other / "2026.11" / "here-node"
    script = f"source {tree}/init/bash && module load mvapich-stack hpcc && hpcc && mpiexec"
    done = subprocess.run(
        ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", script], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[:2] == ["whole", "mpiexec of the stand-in"], done.stderr
    assert str(here.root) not in "".join(f.read_text() for f in tree.glob("modules/**/*.lua"))
    assert install(here, other, cache, site) == (0, [])

    a_stranger_installs_from_it(folder, cache, again, key)

    # a byte changed
    hpcc = next(row for row in again if row["package"] == "hpcc")
    manifest = entry(cache / "spack", "hpcc", hpcc["hash"])
    assert manifest is not None
    whole = manifest.read_text()
    assert "contentLength" in whole
    manifest.write_text(whole.replace("contentLength", "contentlength", 1))
    status, said = install(here, folder / "c", cache, site)
    assert status == 4 and "changed after it was signed" in json.dumps(said), said
    manifest.write_text(whole)
    for blob in (cache / "spack" / "blobs").rglob("*"):
        if blob.is_file():
            blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    status, said = install(here, folder / "c", cache, site)
    assert status == 4 and "other bytes than its manifest" in json.dumps(said), said
