"""A wheel in an empty environment brings up this machine with a site's own fabric and application.

Only the application's source is made up: the MPI is built, the application installed over it by its
easyconfig and loaded by its module, and its check judges what it printed.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?:yaml|python)\n# (our-site/\S+)\n(.*?)^```$", re.M | re.S)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

CONFIGURE = """\
#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
printf 'all: zeta\\nzeta: zeta.c\\n\\t%s -O2 -o zeta zeta.c -lm\\n' "$CC" >Makefile
printf 'install: zeta\\n\\tmkdir -p %s/bin && cp zeta %s/bin/zeta\\n' "$prefix" "$prefix" >>Makefile
"""
PROGRAM = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* A standing wave by leapfrog: what swaps between height and speed adds up to the same. */
int main(int argc, char **argv)
{
    int rank, ranks, steps = 0;
    double height, speed = 0, mine, all, begin;
    FILE *input = argc > 1 ? fopen(argv[1], "r") : NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!input || fscanf(input, "steps %d", &steps) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    height = 1 + rank;
    mine = height * height;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("energy at start %.12e\n", all);
    begin = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        double next = height * cos(1e-3) + speed * sin(1e-3);
        speed = speed * cos(1e-3) - height * sin(1e-3);
        height = next;
    }
    mine = height * height + speed * speed;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("energy at end %.12e\n", all);
        printf("steps per second %.6e\n", steps / (MPI_Wtime() - begin + 1e-9));
    }
    MPI_Finalize();
    return 0;
}
"""


def source(path: Path) -> str:
    """Write Zeta's source; its SHA-256."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text, mode in (("configure", CONFIGURE, 0o755), ("zeta.c", PROGRAM, 0o644)):
            member = tarfile.TarInfo(f"zeta-1.2.0/{name}")
            member.size, member.mode = len(text), mode
            archive.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def follow(guide: str, there: Path) -> None:
    """Write the files that a guide shows."""
    for name, text in BLOCK.findall((TOP / "docs" / "adding" / guide).read_text()):
        path = there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_site_builds_loads_and_checks_what_it_adds(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(TOP)]
    subprocess.run(pip, check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    bin = tmp_path / "venv" / "bin"
    wheel = next(tmp_path.glob("*.whl"))
    subprocess.run([bin / "pip", "install", "-q", f"{wheel}"], check=True)

    keep = ("PYTHONPATH", "MVSTACK_SITE", "MODULEPATH", "LOADEDMODULES", "_LMFILES_")
    outside = {k: v for k, v in os.environ.items() if k not in keep}
    outside |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}

    def mvstack(*words: str) -> str:
        command = [str(bin / "mvstack"), "--site", "our-site", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout + done.stderr

    subprocess.run([bin / "mvstack", "new", "site", "our-site"], cwd=tmp_path, check=True)
    for guide in ("fabric.md", "application.md", "check.md"):
        follow(guide, tmp_path)
    sha256 = source(tmp_path / "zeta-1.2.0.tar.gz")
    site = tmp_path / "our-site"
    easyconfig = next(site.rglob("Zeta-1.2.0-*.eb"))
    easyconfig.write_text(re.sub(r"[0-9a-f]{64}", sha256, easyconfig.read_text()))
    mvstack("check")
    root = ("--root", str(tmp_path / "root"))
    mvstack("sources", "add", "zeta-1.2.0.tar.gz", "--as", "Zeta@1.2.0", *root)

    built = mvstack("install", "local", "zeta", "--yes", *root)
    tested = mvstack("test", "local", "--tag", "zeta", *root)

    assert "Zeta" in built
    assert "3 of 3 checks passed" in tested, tested[-2000:]
    (tmp_path / "basin.in").write_text("steps 10\n")
    script = (
        "source root/2026.11/local/init/bash && module load mvapich-stack zeta && zeta basin.in"
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "energy at end 1.0000" in done.stdout, done.stdout + done.stderr
