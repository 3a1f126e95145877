/* MPI_Bcast of one element of an empty type at its root, of no elements elsewhere; then another one. Each rank is root.
 *
 *     mpicc empty_bcast.c -o empty_bcast && mpiexec -n 4 ./empty_bcast
 *
 * Right: "0 of 16 wrong". Wrong: "message sizes do not match", or a value that was not sent. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Datatype empty;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int root = 0; root < size; root++) {
        int value = rank == root ? 100 + root : -1;
        if (rank == root)
            MPI_Bcast(&value, 1, empty, root, MPI_COMM_WORLD);
        else
            MPI_Bcast(&value, 0, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
        wrong += value != 100 + root;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d of %d wrong\n", wrong, size * size);
    MPI_Type_free(&empty);
    MPI_Finalize();
    return 0;
}
