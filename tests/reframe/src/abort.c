/* The last rank receives less than was sent ("error"), which MPI ends the program for, or calls MPI_Abort
 * ("abort"). Either ends all ranks. Each says where it runs, so that one can look whether it is still there. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, data[1000] = {0};
    char host[256] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof(host) - 1);
    printf("rank %d process %d on %s\n", rank, (int)getpid(), host);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(1); /* until all of this is written */
    int aborts = argc > 1 && strcmp(argv[1], "abort") == 0;
    if (rank == 0 && !aborts)
        MPI_Send(data, 1000, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
    if (rank == size - 1) {
        if (aborts)
            MPI_Abort(MPI_COMM_WORLD, 3);
        else
            MPI_Recv(data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fopen("went-on", "w"); /* the launcher may pass on no more output */
    }
    while (1)
        MPI_Barrier(MPI_COMM_WORLD);
}
