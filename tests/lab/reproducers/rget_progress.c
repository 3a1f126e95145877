/* Rank 0 gets a flag again and again, by MPI_Rget and MPI_Wait, until rank 1 has set it. Rank 1 begins later,
 * and its MPI_Win_lock_all needs an answer of rank 0.
 *
 *     mpicc rget_progress.c -o rget_progress && mpiexec -n 2 ./rget_progress
 *
 * Right: a line says after how many turns, within two seconds. Wrong: ended by SIGALRM after 20. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, *flag, one = 1, seen = 0, any;
    long turns = 0;
    MPI_Win win;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &win);
    *flag = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    alarm(20);
    double began = MPI_Wtime();
    while (rank == 1 && MPI_Wtime() < began + 1) /* rank 0 gets its own lock meanwhile */
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    if (rank == 1)
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    for (; rank == 0 && !seen; turns++) {
        MPI_Rget(&seen, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    if (rank == 0)
        printf("seen after %ld turns\n", turns);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
