/* OpenSHMEM and MPI in one program: puts and gets round the ring, tickets by atomics, sums of both. */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>

#define BLOCK 4099 /* numbers of each put and get: no power of two */
#define TICKETS 100
#define PUTS 1000

static long here[BLOCK], there[BLOCK], counter, mine, total, wrong[4], all[4];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (me + 1) % n, before = (me + n - 1) % n;

    for (int i = 0; i < BLOCK; i++) {
        here[i] = 1000000L * me + i;
        there[i] = -1;
    }
    shmem_barrier_all();
    shmem_long_put(there, here, BLOCK, next);
    shmem_barrier_all();
    for (int i = 0; i < BLOCK; i++)
        wrong[0] += there[i] != 1000000L * before + i;
    shmem_barrier_all();
    shmem_long_get(there, here, BLOCK, next);
    for (int i = 0; i < BLOCK; i++)
        wrong[1] += there[i] != 1000000L * next + i;

    /* Each ticket of PE 0 is given once: their sum is that of 0 … n TICKETS - 1. */
    long tickets = (long)n * TICKETS;
    shmem_barrier_all();
    for (int i = 0; i < TICKETS; i++)
        mine += shmem_long_atomic_fetch_inc(&counter, 0);
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &mine, 1);
    wrong[2] = total != tickets * (tickets - 1) / 2 || shmem_long_g(&counter, 0) != tickets;
    long by_mpi = 0;
    MPI_Allreduce(&mine, &by_mpi, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong[3] = by_mpi != total || rank != me;

    shmem_barrier_all();
    double start = MPI_Wtime();
    for (int i = 0; i < PUTS; i++) {
        shmem_long_p(&there[0], i, next);
        shmem_quiet();
    }
    double put = (MPI_Wtime() - start) / PUTS;
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all, wrong, 4);
    if (me == 0) {
        printf("openshmem %d PEs, %d ranks, %d numbers, %ld tickets\n", n, size, BLOCK, tickets);
        printf("wrong: put %ld, get %ld, tickets %ld, MPI %ld\n", all[0], all[1], all[2], all[3]);
        printf("put %.3f us\n", put * 1e6);
    }
    shmem_finalize();
    return 0;
}
