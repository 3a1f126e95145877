/* MPI_Allgather, MPI_Alltoall and MPI_Ibcast of no data, said by a count of 0 on rank 0 and by an empty type elsewhere.
 *
 *     mpicc empty_allgather.c -o empty_allgather && mpiexec -n 3 ./empty_allgather
 *
 * Right: "ended". Wrong: it ends itself after 20 s, as ranks wait for one that has left. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, from[64] = {0}, to[64];
    MPI_Datatype type = MPI_INT, empty;
    MPI_Request request;
    alarm(20);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    int count = rank ? 1 : 0;
    if (rank)
        type = empty;
    MPI_Allgather(from, count, type, to, count, type, MPI_COMM_WORLD);
    MPI_Alltoall(from, count, type, to, count, type, MPI_COMM_WORLD);
    MPI_Ibcast(from, count, type, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ended\n");
    MPI_Type_free(&empty);
    MPI_Finalize();
    return 0;
}
