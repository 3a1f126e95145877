/* MPI_Ssend of two integers, from rank 0 to rank 1.
 *
 *     mpicc ssend.c -o ssend && mpiexec -n 2 ./ssend
 *
 * Right: rank 1 says what it got. MVAPICH2 over ch3:sock ends in MPI_Ssend. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, numbers[2] = {1, 2};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Ssend(numbers, 2, MPI_INT, 1, 10, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(numbers, 2, MPI_INT, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("got %d and %d\n", numbers[0], numbers[1]);
    }
    MPI_Finalize();
    return 0;
}
