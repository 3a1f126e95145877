"""Two build jobs, a stage, a signature and a plain installation from the site's cache, in earnest.

EasyBuild really builds HPCC and IMB over the MPICH of QEMU's image, each in a tree of its own. That
MPICH was built below the default install root, so the roots that are made here must not be longer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from one_writer import one_writer

from images import release
from mvstack.builders.base import graph_of
from mvstack.cache import gpg, store
from mvstack.cache.place import place
from mvstack.cache.push import push
from mvstack.ci.handover import Given
from mvstack.ci.sign import sign
from mvstack.ci.steps import below, build, padded, stage
from mvstack.install import stages
from mvstack.plan.types import Plan
from mvstack.support.errors import Refused
from mvstack.support.progress import Progress
from mvstack.tree.records import Work, kept_plan, work

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed"),
]
NAME = f"{release.SYSTEM}/{release.PARTITION}"
QUIET = Progress(mode="quiet")


class Site:
    """A site with its key and its cache, and the roots of its jobs, all with short paths."""

    def __init__(self, top: Path, patch: pytest.MonkeyPatch) -> None:
        tree = release.installed()
        self.top, self.cache, self.handover = top, top / "cache", top / "handover"
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.home = top / "keys"
        patch.setenv("MVSTACK_GNUPGHOME", str(self.home))
        patch.setenv("MVSTACK_MIRRORS", str(release.ROOT / "sources"))
        patch.delenv("MVSTACK_CACHES", raising=False)
        self.key = gpg.create("A site of tests", "a@example.org")
        self.public = top / "site.asc"
        self.public.write_text(gpg.export(self.key.fingerprint))
        names = {item.node.key: item.node.name for item in self.items(self.plan("a"))}
        self.hpcc, self.imb = (
            next(file for file, name in names.items() if name == wanted)
            for wanted in ("HPCC", "IMB")
        )
        self.below = frozenset(names) - {self.hpcc, self.imb}
        with one_writer():  # it would refuse others' installations meanwhile
            push(kept_plan(tree), place(str(self.cache)), self.key, QUIET, only=self.below)

    def plan(self, root: str) -> Plan:
        system, _ = stages.load(NAME)
        return stages.plan_for(system, release.PARTITION, root=self.top / root)

    def items(self, plan: Plan) -> list[Work]:
        return work(graph_of(plan), Path(plan.tree))

    def build(self, root: str, node: str, *take: Path) -> list[dict[str, Any]]:
        given = Given(take, [str(self.cache)], [self.public])
        return build(self.plan(root), [node], self.handover / root, given, QUIET, 2)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Both build jobs have run: HPCC in root a, IMB in root b."""
    with (
        tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as top,
        pytest.MonkeyPatch.context() as patch,
    ):
        if len(f"{top}/a") > len(str(release.ROOT)):
            pytest.skip(f"{release.ROOT} is shorter than {top}/a: its MPICH cannot be moved there")
        umask = os.umask(0o022)
        made = Site(Path(top), patch)
        made.rows = {
            root: made.build(root, node) for root, node in (("a", made.hpcc), ("b", made.imb))
        }
        yield made
        os.umask(umask)


def test_each_job_builds_its_own_and_hands_on_no_more(site: Site) -> None:
    for root, node in (("a", site.hpcc), ("b", site.imb)):
        results = {row["easyconfig"]: row["result"] for row in site.rows[root]}
        assert results == {**dict.fromkeys(site.below, "cached"), node: "built"}
        assert site.rows[root][-1]["handed"] > 0
        cache = place(str(site.handover / root))
        assert [row.easyconfig for row in store.rows(cache)] == [node]
        tree = Path(site.plan(root).tree)
        assert not list((tree / "modules" / "Core").glob("mvapich-stack*"))  # not a whole tree
    keys = {file.name for file in site.handover.glob("*/keys/*.asc")}
    assert len(keys) == 2 and f"{site.key.fingerprint}.asc" not in keys  # a key a job
    assert [key.fingerprint for key in gpg.trusted()] == [site.key.fingerprint]


def test_staged_signed_and_installed_as_any_site_does_it(site: Site) -> None:
    plan = site.plan("s")
    rows = stage(plan, Given([site.handover], [str(site.cache)], [site.public]), QUIET)
    assert {row["result"] for row in rows} == {"cached"} and len(rows) == len(site.below) + 2
    core = Path(plan.tree) / "modules" / "Core" / "mvapich-stack" / f"{plan.release}.lua"
    assert core.is_file()

    signed = sign(plan, [site.handover], str(site.cache), site.key, QUIET)
    assert sorted((row["easyconfig"], row["result"]) for row in signed) == [
        (site.hpcc, "signed"),
        (site.imb, "signed"),
    ]
    again = sign(plan, [site.handover], str(site.cache), site.key, QUIET)
    assert {row["result"] for row in again} == {"already there"}
    assert [key.fingerprint for key in gpg.trusted()] == [site.key.fingerprint]

    words = ("install", NAME, "--root", str(site.top / "d"), "--cache", str(site.cache))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mvstack", *words, "--cache-only", "--anyway", "--json"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    installed = json.loads(done.stdout)
    assert {row["signed_by"] for row in installed} == {site.key.fingerprint}
    ran = subprocess.run(
        ["bash", "-c", _RUN.format(tree=site.plan("d").tree)], capture_output=True, text=True
    )
    assert ran.returncode == 0 and "PingPong" in ran.stdout, ran.stdout + ran.stderr


_RUN = """
source {tree}/init/bash; module load mvapich-stack mpich imb && cd /tmp &&
mpiexec -n 2 IMB-MPI1 PingPong -msglog 3:4
"""


def test_the_next_job_takes_what_was_handed_over(site: Site) -> None:
    """HPCC is wanted and a handover has it: nothing is built, and nothing handed on again."""
    rows = site.build("c", site.hpcc, site.handover)
    assert {row["result"] for row in rows} == {"cached"}
    assert not (site.handover / "c").exists()


def test_what_nobody_handed_over_is_named(site: Site) -> None:
    with pytest.raises(Refused, match="nobody handed it over") as caught:
        build(site.plan("e"), [site.imb], site.top / "x", Given([site.handover]), QUIET, 2)
    assert len(caught.value.problems) == len(site.below)
    assert str(site.handover / "a") in caught.value.problems[0].found
    assert not (Path(site.plan("e").tree) / "software").exists()


def test_the_tree_of_a_job_has_the_length_that_all_have(site: Site) -> None:
    plan = site.plan("a")
    root = padded(site.top, below(plan))
    system, _ = stages.load(NAME)
    assert len(stages.plan_for(system, release.PARTITION, root=root).tree) == 96
