/* The last rank receives less than was sent ("error"), or calls MPI_Abort ("abort"), or receives too little in a
 * communicator of every second rank while the others compute ("part"). Each way must end all ranks. Every rank prints
 * its process and host, so that the check can look for it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, mine, data[1000] = {0};
    char host[256] = "";
    MPI_Comm part;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof(host) - 1);
    printf("rank %d process %d on %s\n", rank, (int)getpid(), host);
    fflush(stdout);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_rank(part, &mine);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(1); /* until all of this is written */
    const char *how = argc > 1 ? argv[1] : "error";
    int aborts = strcmp(how, "abort") == 0, in_part = strcmp(how, "part") == 0;
    if (rank == 0 && !aborts && !in_part)
        MPI_Send(data, 1000, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
    if (rank == size - 1) {
        if (aborts)
            MPI_Abort(MPI_COMM_WORLD, 3);
        else if (in_part)
            MPI_Sendrecv(data, 900, MPI_INT, mine, 0, data + 999, 1, MPI_INT, mine, 0, part, MPI_STATUS_IGNORE);
        else
            MPI_Recv(data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fopen("went-on", "w"); /* the launcher may pass on no more output */
    }
    if (in_part) {
        sleep(8);
        fopen("computed-on", "w");
        _exit(0);
    }
    while (1)
        MPI_Barrier(MPI_COMM_WORLD);
}
