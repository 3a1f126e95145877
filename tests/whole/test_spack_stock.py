"""A Spack as anybody has it, with `spack repo add` of this repository and nothing else of ours.

Adding the repository and reading its recipes takes seconds. The installation of MVAPICH takes many
minutes and runs only where ``MVSTACK_TEST_MVAPICH_TARBALL`` names a tarball of mvapich 4.0. Bytes
that are not upstream's are taken with Spack's own `--no-checksum`, and the test says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from spack_here import spack_here

TOP = Path(__file__).resolve().parents[2]
INSIDE = TOP / "spack-repo" / "spack_repo" / "mvapich_stack"
TARBALL = "MVSTACK_TEST_MVAPICH_TARBALL"
UPSTREAM = "c532f7bdd5cca71f78c12e0885c492f6e276e283711806c84d0b0f80bb3e3b74"
# What a site has written into its packages.yaml long ago: where its libraries and tools are.
MACHINE = {
    "libfabric": "libfabric@1.17.0 fabrics=shm,tcp,udp,sockets,rxm,rxd",
    "hwloc": "hwloc@2.9.0",
    "libpciaccess": "libpciaccess@0.17",
    "libxml2": "libxml2@2.9.14",
    "zlib": "zlib@1.2.13",
    "python": "python@3.11.2",
}

# Each rank names an edge of its own, from itself to the next one.
OWN_EDGE = """\
#include <mpi.h>
int main(int argc, char **argv)
{
    int from, to, ranks, degree = 1;
    MPI_Comm graph;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &from);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    to = (from + 1) % ranks;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &graph);
    MPI_Comm_free(&graph);
    return MPI_Finalize();
}
"""


class Stock:
    """A clone of Spack with a home of its own, configured by its own commands."""

    def __init__(self, folder: Path) -> None:
        pinned = spack_here(folder / "state")
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()
        if (config := Path.home() / ".gitconfig").is_file():
            shutil.copy2(config, self.home)  # a site's proxies and mirrors of git
        clone = ["git", "clone", "--quiet", "--depth=1", f"file://{pinned.clones.spack}"]
        subprocess.run([*clone, str(folder / "spack")], check=True, capture_output=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPACK_", "PYTHON"))}
        self.environment = {**kept, "HOME": str(self.home), "SPACK_PYTHON": str(pinned.python)}
        # the one repository that it would clone: the pinned one is here already
        self.packages = pinned.clones.packages

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


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    found = Stock(tmp_path)
    found.run("repo", "set", "--destination", str(found.packages), "builtin")
    return found


@pytest.mark.parametrize("what", [f"file://{TOP}", str(INSIDE)], ids=["git-url", "path"])
def test_one_command_brings_our_recipes(stock: Stock, what: str) -> None:
    stock.run("repo", "add", what)
    listed = stock.run("repo", "list")
    assert "mvapich_stack" in listed.split()
    assert stock.run("list", "--repo", "mvapich_stack", "mvapich").split()[0] == "mvapich"
    told = stock.run("info", "mvapich")
    for words in ("fabrics", "netmod", "process_managers", "pmi"):
        assert words in told
    # ours goes before builtin's of the same name
    assert "packages/mvapich" in stock.run("location", "--package-dir", "mvapich")
    assert str(stock.packages) not in stock.run("location", "--package-dir", "mvapich")


@pytest.mark.timeout(3600)
def test_our_mvapich_installs_from_a_tarball_in_a_mirror(stock: Stock) -> None:
    given = os.environ.get(TARBALL)
    if not given:
        pytest.skip(f"skipped: {TARBALL} names no tarball of mvapich 4.0")
    tarball = Path(given)
    found = hashlib.sha256(tarball.read_bytes()).hexdigest()
    # in a mirror a file stands where its recipe's hash says
    target = stock.folder / "mirror" / "_source-cache" / "archive" / UPSTREAM[:2]
    target.mkdir(parents=True)
    shutil.copy2(tarball, target / f"{UPSTREAM}.tar.gz")
    stock.run("repo", "add", f"file://{TOP}")
    stock.run("mirror", "add", "--type", "source", "tarballs", f"file://{stock.folder}/mirror")
    stock.run("compiler", "find")
    if shutil.which("ccache"):
        stock.run("config", "add", "config:ccache:true")
    # what a site has written down before it heard of us
    lines = ["packages:"]
    for name, spec in MACHINE.items():
        lines += [f"  {name}:", "    buildable: false", "    externals:"]
        lines += [f"    - {{spec: {json.dumps(spec)}, prefix: /usr}}"]
    (stock.home / ".spack" / "packages.yaml").write_text("\n".join([*lines, ""]))
    tools = ("perl", "findutils", "gmake", "m4", "autoconf", "automake", "libtool", "pkgconf")
    stock.run("external", "find", *tools, "diffutils", "gawk")
    checks = ["--no-checksum"] if found != UPSTREAM else []
    spec = "mvapich@=4.0 netmod=ofi fabrics=shm pmi=simple process_managers=hydra ^libfabric@1.17"
    stock.run("install", *checks, "-j", str(os.cpu_count() or 1), *spec.split())
    prefix = stock.run("location", "-i", "mvapich").split()[-1]
    said = subprocess.run([f"{prefix}/bin/mpichversion"], capture_output=True, text=True).stdout
    assert "4.0" in said and "ch4:ofi" in said
    ranks = [f"{prefix}/bin/mpiexec", "-n", "2", "hostname"]
    assert len(subprocess.run(ranks, capture_output=True, text=True).stdout.split()) == 2
    # what 4.0 as released never ends
    source, graph = stock.folder / "graph.c", stock.folder / "graph"
    source.write_text(OWN_EDGE)
    subprocess.run([f"{prefix}/bin/mpicc", str(source), "-o", str(graph)], check=True)
    subprocess.run([*ranks[:-1], str(graph)], check=True, timeout=60)
