/* Rank 1 waits, by loads and MPI_Win_sync, for what rank 0 puts into a shared window after an MPI_Fetch_and_op.
 *
 *     mpicc atomics_by_memory.c -o atomics_by_memory && mpiexec -n 2 ./atomics_by_memory
 *
 * Right: "ok" at once. Wrong: ended by SIGALRM after 20 seconds, as the operation waits until rank 1 is within MPI. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, one = 1, old;
    volatile int *flag;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    alarm(20);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate_shared(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *) &flag, &win);
    flag[0] = flag[1] = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Fetch_and_op(&one, &old, MPI_INT, 1, 0, MPI_SUM, win);
        MPI_Win_flush(1, win);
        MPI_Put(&one, 1, MPI_INT, 1, 1, 1, MPI_INT, win);
        MPI_Win_flush(1, win);
    } else {
        while (!flag[1])
            MPI_Win_sync(win);
        printf("%s\n", flag[0] == 1 ? "ok" : "wrong");
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
