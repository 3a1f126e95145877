/* A message that is longer than its receive, between two hosts over TCP, and one that is not.
 *
 *     mpicc truncated_over_tcp.c -o truncated && mpiexec -ppn 1 -n 2 ./truncated
 *
 * Right: "right". Wrong: "the next message: …" (libfabric 1.17.0, FI_PROVIDER=tcp: the connection is gone), or
 * the program waits or ends. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char bytes[1008] = {0}, text[MPI_MAX_ERROR_STRING];
    int rank, error, class, length;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Send(bytes, 1008, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Send(bytes, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
        error = MPI_Recv(bytes, 1000, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(error, &class);
        if (class != MPI_ERR_TRUNCATE)
            printf("the message that is too long: error class %d\n", class);
        error = MPI_Recv(bytes, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS)
            MPI_Error_string(error, text, &length);
        printf(error == MPI_SUCCESS ? "right\n" : "the next message: %s\n", text);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
