/* Wrong on purpose: the last element of what rank 1 gets of the collective that the environment's WRONG names, from
 * 1,000 ints on. Nonblocking ones are done at once. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int harm(const char *what, void *out, int at, int code)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(what, getenv("WRONG")) && rank == 1 && at >= 1000)
        ((int *)out)[at - 1] += 1;
    return code;
}

int MPI_Gatherv(const void *in, int sent, MPI_Datatype type, void *out, const int *counts, const int *starts,
                MPI_Datatype its, int root, MPI_Comm comm)
{
    return harm("gatherv", out, starts[1] + counts[1],
                PMPI_Gatherv(in, sent, type, out, counts, starts, its, root, comm));
}

int MPI_Scatterv(const void *in, const int *counts, const int *starts, MPI_Datatype type, void *out, int got,
                 MPI_Datatype its, int root, MPI_Comm comm)
{
    return harm("scatterv", out, got, PMPI_Scatterv(in, counts, starts, type, out, got, its, root, comm));
}

int MPI_Alltoallw(const void *in, const int *sent, const int *from, const MPI_Datatype *types, void *out,
                  const int *got, const int *to, const MPI_Datatype *its, MPI_Comm comm)
{
    return harm("alltoallw", out, got[0], PMPI_Alltoallw(in, sent, from, types, out, got, to, its, comm));
}

int MPI_Reduce_scatter(const void *in, void *out, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return harm("reduce_scatter", out, counts[1], PMPI_Reduce_scatter(in, out, counts, type, op, comm));
}

int MPI_Igather(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its, int root,
                MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return harm("igather", out, got, PMPI_Gather(in, sent, type, out, got, its, root, comm));
}

int MPI_Iscatter(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its, int root,
                 MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return harm("iscatter", out, got, PMPI_Scatter(in, sent, type, out, got, its, root, comm));
}

int MPI_Iallgather(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its,
                   MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return harm("iallgather", out, got, PMPI_Allgather(in, sent, type, out, got, its, comm));
}

int MPI_Neighbor_allgather(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its,
                           MPI_Comm comm)
{
    return harm("neighbor_allgather", out, 2 * got,
                PMPI_Neighbor_allgather(in, sent, type, out, got, its, comm));
}

int MPI_Neighbor_alltoall(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its,
                          MPI_Comm comm)
{
    return harm("neighbor_alltoall", out, 2 * got,
                PMPI_Neighbor_alltoall(in, sent, type, out, got, its, comm));
}

/* What the rank gives is wrong, and so what all get. */
int MPI_Allreduce_init(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request)
{
    return harm("allreduce_init", (void *)in, count,
                PMPI_Allreduce_init(in, out, count, type, op, comm, info, request));
}
