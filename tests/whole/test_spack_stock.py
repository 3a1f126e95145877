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
from spack_stock import STACK, TOP, Stock

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


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    found = Stock(tmp_path)
    found.takes(found.packages)
    return found


@pytest.mark.parametrize("what", [f"file://{TOP}", str(STACK)], ids=["git-url", "path"])
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


def test_an_environment_of_ones_own_goes_through_the_gate(stock: Stock) -> None:
    """Also where Spack has found the C library by itself; and without a lock nothing passes."""
    stock.run("repo", "add", str(STACK))
    folder = stock.folder / "environment"
    folder.mkdir()
    (folder / "spack.yaml").write_text("spack: {specs: [mvapich fabrics=tcp], view: false}")
    verify = ["-e", str(folder), "python", str(TOP / "spack-repo" / "verify.py")]
    with pytest.raises(AssertionError, match="nothing is concretized"):
        stock.run(*verify)
    stock.run("-e", str(folder), "concretize")
    assert "0 differences" in stock.run(*verify)
    lock = folder / "spack.lock"
    lock.write_text(lock.read_text().replace('"netmod":"ucx"', '"netmod":"ofi"'))
    with pytest.raises(AssertionError, match="variant"):
        stock.run(*verify)


def test_a_rendered_environment_is_solved_by_hand(stock: Stock) -> None:
    """By the commands of its first lines, on the operating system that it is for."""
    rendered = TOP / "environments" / "rendered" / "qemu-debian12" / "mvapich" / "spack"
    folder = stock.folder / "environment"
    shutil.copytree(rendered, folder)
    commands = [
        line[1:].split()
        for line in (folder / "spack.yaml").read_text().splitlines()
        if line.startswith("#   spack ")
    ]
    assert [words[1:3] for words in commands] == [["repo", "add"], ["repo", "add"], ["-e", "<this"]]
    for repository in commands[:2]:
        stock.run("repo", "add", repository[3].replace("<checkout>", str(TOP)))
    store = ["-c", f"config:install_tree:root:{stock.folder}/store", "-e", str(folder)]
    # Somebody's own compiler, found before the environment came: it may not be taken unsaid.
    own = {"spec": "gcc@14.3.0 languages='c,c++,fortran'", "prefix": "/opt/gcc"}
    own |= {"extra_attributes": {"compilers": {"c": "/opt/gcc/bin/gcc", "cxx": "/opt/gcc/bin/g++"}}}
    (stock.home / ".spack").mkdir(exist_ok=True)
    text = json.dumps({"packages": {"gcc": {"externals": [own]}}})
    (stock.home / ".spack" / "packages.yaml").write_text(text)
    stock.run(*store, "concretize")
    nodes = json.loads((folder / "spack.lock").read_text())["concrete_specs"].values()
    assert {node["arch"]["platform_os"] for node in nodes} == {"debian12"}
    assert {node["version"] for node in nodes if node["name"] == "gcc"} == {"12.2.0"}
    assert [node["namespace"] for node in nodes if node["name"] == "mvapich"] == ["mvapich_stack"]
