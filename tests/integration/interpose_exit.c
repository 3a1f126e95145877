/* Wrong on purpose: an error in MPI_Send ends this rank alone. Nothing sleeps, so that the test is short. */
#include <mpi.h>
#include <unistd.h>

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    int size;

    MPI_Comm_size(comm, &size);
    if (to >= size)
        _exit(6);
    return PMPI_Send(data, count, type, to, tag, comm);
}

unsigned sleep(unsigned seconds)
{
    return 0 * seconds;
}
