/* A synchronous send that does not wait for its receive. */
#include <mpi.h>

int MPI_Issend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Isend(buf, count, type, to, tag, comm, request);
}
