/* Five million MPI_Put of 8 bytes in a window of MPI_Win_allocate, without a flush between them.
 *
 *     mpicc many_puts.c -o many_puts && mpiexec -n 2 ./many_puts
 *
 * Right: a line says that about 0 KiB more are in use. Wrong: an entry of a list for each. */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>

#define PUTS 5000000

int main(int argc, char **argv)
{
    int rank;
    long *base, one = 1;
    MPI_Win win;
    struct rusage before, after;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    getrusage(RUSAGE_SELF, &before);
    double began = MPI_Wtime();
    for (int i = 0; rank == 0 && i < PUTS; i++)
        MPI_Put(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
    double each = (MPI_Wtime() - began) / PUTS * 1e9;
    getrusage(RUSAGE_SELF, &after);
    if (rank == 0)
        printf("%ld KiB more in use, %.0f ns for each\n", after.ru_maxrss - before.ru_maxrss, each);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
