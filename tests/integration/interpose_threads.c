/* MPI_Init_thread gives one level less than MPI_THREAD_MULTIPLE; with LOSES=1 it gives that, and the last element of
 * what a second thread receives is wrong. */
#include <mpi.h>
#include <stdlib.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (required == MPI_THREAD_MULTIPLE && !getenv("LOSES"))
        *provided = MPI_THREAD_SERIALIZED;
    return code;
}

int MPI_Sendrecv(const void *out, int sent, MPI_Datatype type, int to, int tag, void *in, int taken,
                 MPI_Datatype into, int from, int its_tag, MPI_Comm comm, MPI_Status *status)
{
    int code = PMPI_Sendrecv(out, sent, type, to, tag, in, taken, into, from, its_tag, comm, status);
    if (tag == 1 && taken > 1000)
        ((int *)in)[taken - 1] += 1;
    return code;
}
