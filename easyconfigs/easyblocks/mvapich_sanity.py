"""The commands that prove a freshly installed MPI: compiled, launched, and seen to be as asked.

`write_programs` puts three sources into a folder; `commands` returns shell commands over them, each
of which fails when one thing is not as asked. EasyBuild runs them with the new module loaded.
"""

import re
import shlex
from pathlib import Path

C_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* argv[1]: how many ranks the world must have. A rank started on its own sees a world of one. */
int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, rank = -1, size = 0, sum = 0;
    int wanted = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != wanted) {
        fprintf(stderr, "world of %d ranks, asked for %d\n", size, wanted);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) {
        fprintf(stderr, "sum of ranks is %d\n", sum);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    if (rank == 0) {
        MPI_Get_library_version(text, &length);
        printf("world of %d\n%s\n", size, text);
    }
    MPI_Finalize();
    return 0;
}
"""

CXX_PROGRAM = r"""
#include <mpi.h>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> ones(size, 0);
    int one = 1;
    MPI_Allgather(&one, 1, MPI_INT, ones.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int sum = 0;
    for (int value : ones) sum += value;
    MPI_Finalize();
    return sum == size ? 0 : 5;
}
"""

FORTRAN_PROGRAM = """
program world
  use mpi_f08
  implicit none
  integer :: rank, ranks, total
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= ranks * (ranks + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 6)
  if (rank == 0) print '(a,i0)', 'fortran world of ', ranks
  call MPI_Finalize()
end program world
"""

# Seconds after which a launch that has not ended counts as hung (a wrong provider does not return).
LAUNCH_LIMIT = 120


def write_programs(folder):
    """Write the three sources into `folder`."""
    for name, text in (
        ("world.c", C_PROGRAM),
        ("worldxx.cpp", CXX_PROGRAM),
        ("worldf.f90", FORTRAN_PROGRAM),
    ):
        (Path(folder) / name).write_text(text.lstrip("\n"), encoding="utf-8")


def version_pattern(name, version):
    """Extended regular expression for the version line of MPI_Get_library_version.

    MVAPICH2's says the version without the re-release number: 2.3.7-2 reports 2.3.7.
    """
    if name == "MVAPICH2":
        version = version.split("-")[0]
    return rf"^{name} Version *:[[:space:]]*{re.escape(version)}([^0-9.]|$)"


def device_pattern(device):
    """Extended regular expression for the device line; ch4 lists its netmods in the order asked.

    Several netmods are asked for with a comma, and 4.0 names them with a blank.
    """
    named = re.escape(device).replace(",", "[, ]")
    return rf"Device *:[[:space:]]*{named}([^[:alnum:]]|$)"


def launch_line(launcher, given):
    """How two ranks are started here: `given` when the easyconfig says, else by the launcher.

    None when the launcher is the resource manager's: outside a job there is nothing to run with.
    """
    if given:
        return given
    if launcher == "mpirun_rsh":
        # Seen with 2.3.7: it leaves ssh out for the host's own name, not for localhost.
        return 'mpirun_rsh -np 2 "$(uname -n)" "$(uname -n)"'
    if launcher in ("slurm", "jsm", "flux", "none"):
        return None
    return "mpiexec -n 2"


def commands(folder, name, version, params, soname=None):
    """Shell commands, in order; each fails with a message of its own."""
    quoted = shlex.quote(folder)
    found = [
        f"cd {quoted} && mpicc -O1 world.c -o world",
        f"cd {quoted} && mpicxx -O1 worldxx.cpp -o worldxx",
        f"cd {quoted} && mpifort -O1 worldf.f90 -o worldf",
    ]
    wanted = f' && test "$name" = {shlex.quote(soname)}' if soname else ""
    found.append(
        "name=$(readelf -d \"$MPI_HOME/lib/libmpi.so\" | sed -n 's/.*SONAME.*\\[\\(.*\\)\\]/\\1/p')"
        f' && echo "soname $name" > {quoted}/soname.out && test -n "$name"{wanted}'
    )
    launch = launch_line(params["launcher"], params["sanity_launch"])
    if launch is None:
        return found
    run = f"cd {quoted} && timeout {LAUNCH_LIMIT} {launch}"
    found += [
        f"{run} ./world 2 > world.out && grep -q '^world of 2$' world.out",
        f"grep -Eq {shlex.quote(version_pattern(name, version))} {quoted}/world.out"
        f" || {{ cat {quoted}/world.out; false; }}",
        f"grep -Eq {shlex.quote(device_pattern(params['device']))} {quoted}/world.out"
        f" || {{ cat {quoted}/world.out; false; }}",
        f"{run} ./worldxx",
        f"{run} ./worldf > worldf.out && grep -q '^fortran world of 2$' worldf.out",
    ]
    return found
