/* Rank 0 asks for MPI_THREAD_MULTIPLE, the others for less, as MPI allows; then small collectives.
 *
 *     mpicc thread_levels.c -o thread_levels && mpiexec -n 4 ./thread_levels
 *
 * Right: "0 sums wrong". Wrong: ranks that wait for each other for ever; the program ends itself after 20 s. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int provided, rank, size, wrong = 0, all[64];
    /* before MPI_Init, by what the launcher says */
    const char *names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}, *own = NULL;
    for (int i = 0; i < 4 && !own; i++)
        own = getenv(names[i]);
    alarm(20);
    MPI_Init_thread(&argc, &argv, own && !strcmp(own, "0") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < 20 && size <= 64; turn++) {
        int sum, expected = size * turn + size * (size - 1) / 2, mine = rank + turn;
        MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++)
            wrong += all[i] != i + turn;
        wrong += sum != expected;
    }
    if (rank == 0)
        printf("%d sums wrong\n", wrong);
    MPI_Finalize();
    return 0;
}
