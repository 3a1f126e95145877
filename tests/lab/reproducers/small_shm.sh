#!/usr/bin/env bash
# A program of many communicators, each with collectives, where /dev/shm has 64 MiB, as in a container: needs root.
#
#     ./small_shm.sh MPI_PREFIX [RANKS [RANKS_OF_A_COMMUNICATOR]]
#
# 4 and 4 if not given. With 24 and 4 six communicators ask for memory at the same time.
# Right: "right". Wrong: a rank ends by signal 7, as it touches shared memory that is not there.
set -euo pipefail
[[ ${1-} && ${2-4} =~ ^[1-9][0-9]*$ && ${3-4} =~ ^[1-9][0-9]*$ ]] || { echo "usage: $0 MPI_PREFIX [RANKS [RANKS_OF_A_COMMUNICATOR]]" >&2 && exit 2; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cat > "$work/many.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMMUNICATORS = 400, COUNT = 32768 };

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, group = atoi(argv[1]);
    double *from = calloc(COUNT, sizeof *from), *sums = calloc(COUNT, sizeof *sums);
    static MPI_Comm comm[COMMUNICATORS];
    MPI_Init(&argc, &argv);
    MPI_Comm all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / group, rank, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int i = 0; i < COUNT; i++)
        from[i] = rank + i;
    for (int n = 0; n < COMMUNICATORS; n++) {
        MPI_Comm_dup(all, comm + n);
        for (int turn = 0; turn < 6; turn++) {
            MPI_Allreduce(from, sums, COUNT, MPI_DOUBLE, MPI_SUM, comm[n]);
            MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, comm[n]);
            wrong += sums[COUNT - 1] != size * (COUNT - 1.0) + size * (size - 1) / 2.0;
        }
    }
    for (int n = 0; n < COMMUNICATORS; n++)
        MPI_Comm_free(comm + n);
    MPI_Comm_free(&all);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        puts(wrong ? "wrong" : "right");
    MPI_Finalize();
    return 0;
}
C
"$1/bin/mpicc" -O2 "$work/many.c" -o "$work/many"
cd "$work" # where MPI leaves the call stack of what ended
unshare -m sh -c "mount -t tmpfs -o size=64m none /dev/shm && \"$1/bin/mpiexec\" -n ${2-4} \"$work/many\" ${3-4}"
