/* Rank 0 reads a flag again and again until rank 1 has set it: by MPI_Rget, MPI_Rget_accumulate or MPI_Raccumulate
 * and MPI_Wait, or by MPI_Fetch_and_op or MPI_Compare_and_swap and MPI_Win_flush. Rank 1 begins later, and its
 * MPI_Win_lock_all needs an answer of rank 0.
 *
 *     mpicc rget_progress.c -o rget_progress && mpiexec -n 2 ./rget_progress [0 to 4]
 *
 * Right: a line says after how many turns, within two seconds. Wrong: ended by SIGALRM after 20. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the flag holds, read in way ``how``. */
static int look(int how, MPI_Win win, int *memory)
{
    int seen = 0, none = 0;
    MPI_Request request = MPI_REQUEST_NULL;

    switch (how) {
        case 0:
            MPI_Rget(&seen, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request);
            break;
        case 1:
            MPI_Rget_accumulate(&none, 1, MPI_INT, &seen, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win, &request);
            break;
        case 2: /* reads nothing: rank 1 sets a flag of rank 0, which it reads itself */
            MPI_Raccumulate(&none, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win, &request);
            break;
        case 3:
            MPI_Fetch_and_op(&none, &seen, MPI_INT, 1, 0, MPI_NO_OP, win);
            break;
        default:
            MPI_Compare_and_swap(&none, &none, &seen, MPI_INT, 1, 0, win);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (how > 2)
        MPI_Win_flush(1, win);
    return how == 2 ? *(volatile int *) memory : seen;
}

int main(int argc, char **argv)
{
    int rank, *flag, one = 1, seen = 0, any, how = argc > 1 ? atoi(argv[1]) : 0;
    long turns = 0;
    MPI_Win win;

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
        MPI_Accumulate(&one, 1, MPI_INT, how == 2 ? 0 : 1, 0, 1, MPI_INT, MPI_SUM, win);
    if (rank == 1)
        MPI_Win_flush_all(win);
    for (; rank == 0 && !seen; turns++)
        seen = look(how, win, flag);
    MPI_Win_unlock_all(win);
    if (rank == 0)
        printf("seen after %ld turns\n", turns);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
