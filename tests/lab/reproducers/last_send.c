/* Rank 1's last act is a message to rank 0, on another host: both say how long MPI_Finalize takes.
 *
 *     mpicc last_send.c -o last_send && UCX_TLS=^tcp mpiexec -hosts A,B -ppn 1 -n 2 ./last_send
 *
 * Right: well below a second for both. Wrong: rank 1 says nothing for minutes, for rank 0 has gone before it acknowledged
 * what rank 1 sends as it closes its connection. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank;
    double value = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double began = now();
    MPI_Finalize();
    printf("rank %d: MPI_Finalize took %.1f s\n", rank, now() - began);
    return 0;
}
