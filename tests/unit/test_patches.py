"""The patches of the easyconfigs: there, of the bytes that are named, and the same for Spack."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import pytest
from recipes.reading import RECIPES

from mvstack.plan.easyconfigs import FOLDER

PATCHED = sorted(
    path for path in FOLDER.rglob("*.eb") if re.search(r"^patches = ", path.read_text(), re.M)
)
STOCK = Path(sys.prefix) / "easybuild" / "easyconfigs"
# easyconfig's patch: that of the Spack recipe, which mends the same
BOTH = {
    f"m/MVAPICH/MVAPICH-4.0_{name}.patch": f"mvapich/{name}.patch"
    for name in (
        "abort-ends-all-ranks",
        "allgather-by-pieces",
        "allreduce-by-shares",
        "bcast-by-pieces",
        "bcast-of-no-data",
        "both-ways-at-once",
        "cells-in-turn",
        "copied-by-both",
        "copied-in-steps",
        "derived-types-of-gpus",
        "dist-graph-to-itself",
        "error-in-a-part",
        "few-ranks-without-tree",
        "fewer-steps",
        "finalize-waits-for-all",
        "gaps-between-messages",
        "large-cells",
        "large-collectives-by-messages",
        "large-messages-in-turn",
        "lost-host",
        "matched-receive-in-parts",
        "messages-at-once",
        "acks-by-rank",
        "acks-in-turn",
        "matched-probe-of-segments",
        "messages-in-a-ring",
        "mpit-finalize-within-mpi",
        "one-node-without-network",
        "one-sided-by-memory",
        "pieces-ahead",
        "port-by-socket",
        "proxy-that-does-not-start",
        "reduce-of-odd-types",
        "reductions-by-pieces",
        "rows-for-fewer-ranks",
        "sees-the-next-message",
        "shared-memory-collectives",
        "short-messages",
        "stream-to-far-cores",
        "truncated-from-any-source",
        "window-without-memory",
        "yield-to-other-ranks",
    )
}


@pytest.mark.parametrize("path", PATCHED, ids=lambda path: path.name)
def test_its_patch_has_the_hash_that_it_names(path: Path) -> None:
    text = path.read_text()
    version = re.search(r"^version = '(.+)'", text, re.M)
    assert version is not None
    named = re.findall(r"'([^']+\.patch)'", text)
    assert named
    for name in named:
        name = name.replace("%(version)s", version[1])
        found = [*FOLDER.rglob(name), *STOCK.glob(f"?/*/{name}")]
        assert found, f"{name}: neither ours nor EasyBuild's"
        # stock EasyBuild has one name in two folders, with other bytes
        hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in found]
        assert any(f"'{one}'" in text for one in hashes), (name, hashes)


@pytest.mark.parametrize("name", BOTH)
def test_spack_applies_the_same(name: str) -> None:
    spack = RECIPES / BOTH[name]
    assert spack.read_bytes() == (FOLDER / name).read_bytes()
    assert f'patch("{spack.name}"' in (spack.parent / "package.py").read_text()
