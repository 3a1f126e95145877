/* Hangs on purpose: the last rank never comes to an MPI_Gather of 129 doubles. */
#include <mpi.h>
#include <unistd.h>

int MPI_Gather(const void *in, int sent, MPI_Datatype from, void *out, int got, MPI_Datatype to, int root,
               MPI_Comm comm)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    while (rank == size - 1 && from == MPI_DOUBLE && sent == 129)
        pause();
    return PMPI_Gather(in, sent, from, out, got, to, root, comm);
}
