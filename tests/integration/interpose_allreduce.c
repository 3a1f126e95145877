/* Wrong on purpose: the last element of every large enough MPI_Allreduce of ints on rank 1. */
#include <mpi.h>

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int rank, code = PMPI_Allreduce(in, out, count, type, op, comm);

    MPI_Comm_rank(comm, &rank);
    if (rank == 1 && type == MPI_INT && count >= 1024)
        ((int *)out)[count - 1] += 1;
    return code;
}
