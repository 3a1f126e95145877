/* The last rank receives less than was sent, which MPI takes for an error of the whole program: it ends all
 * ranks. Each says where it runs, so that somebody can look whether it is still there. */
#include <mpi.h>
#include <stdio.h>
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
    if (rank == 0)
        MPI_Send(data, 1000, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Recv(data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("went on\n");
        fflush(stdout);
    }
    while (1)
        MPI_Barrier(MPI_COMM_WORLD);
}
