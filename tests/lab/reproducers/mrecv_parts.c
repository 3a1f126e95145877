/* MPI_Mrecv of complex doubles, 16 bytes each, into every second one of an array, where a part of the message
 * ends in the middle of one: UCX's first part here is of 8,232 bytes.
 *
 *     mpicc mrecv_parts.c -o mrecv_parts && UCX_TLS=posix,self mpiexec -n 2 ./mrecv_parts
 *
 * Right: "received, 0 of 4096 elements wrong". Wrong: MPI_ERR_TRUNCATE, and the rest is not there. */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 4096 };

int main(int argc, char **argv)
{
    static double complex out[COUNT], in[2 * COUNT];
    int rank, wrong = 0, error, kind = MPI_SUCCESS;
    MPI_Datatype second;
    MPI_Message message;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector(COUNT, 1, 2, MPI_C_DOUBLE_COMPLEX, &second);
    MPI_Type_commit(&second);
    for (int i = 0; i < COUNT; i++)
        out[i] = i + 1 + i * I;
    if (rank == 1)
        MPI_Send(out, COUNT, MPI_C_DOUBLE_COMPLEX, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Mprobe(1, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        error = MPI_Mrecv(in, 1, second, &message, MPI_STATUS_IGNORE);
        if (error)
            MPI_Error_class(error, &kind);
        for (int i = 0; i < COUNT; i++)
            wrong += in[2 * i] != out[i];
        printf("%s, %d of %d elements wrong\n",
               kind == MPI_SUCCESS ? "received" : kind == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "error",
               wrong, COUNT);
    }
    MPI_Type_free(&second);
    MPI_Finalize();
    return wrong != 0 || kind != MPI_SUCCESS;
}
