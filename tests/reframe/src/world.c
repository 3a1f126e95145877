/* Who is in MPI_COMM_WORLD: one line a rank, and who sees the others.
 * The sum of all ranks travels through MPI, so that N separate worlds cannot print it. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, length, sum = -1;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d sum %d on %s\n", rank, size, sum, host);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
