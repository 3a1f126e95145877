/* Receives whatever is first of the other of two ranks: as an MPI that does not look at the tag. More ranks, as the
 * check Messages has, would wait for each other until its time limit. */
#include <mpi.h>

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return PMPI_Recv(buf, count, type, source, ranks == 2 ? MPI_ANY_TAG : tag, comm, status);
}
