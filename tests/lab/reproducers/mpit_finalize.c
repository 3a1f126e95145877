/* MPI_T_finalize between MPI_Init and MPI_Finalize, as MPI allows, and then collectives.
 *
 *     mpicc mpit_finalize.c -o mpit_finalize && mpiexec -n 2 ./mpit_finalize
 *
 * Right: "right". Wrong: the ranks end by a signal, for what MPI_T frees is in use. */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 20000 };

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++)
        ((double *) inout)[i] += ((double *) in)[i];
}

int main(int argc, char **argv)
{
    static double from[COUNT], sums[COUNT];
    int provided, rank;
    MPI_Op sum;
    MPI_Init(&argc, &argv);
    MPI_Op_create(add, 1, &sum);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_finalize();
    for (int turn = 0; turn < 20; turn++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int count = 1; count <= COUNT; count *= 10)
            for (int call = 0; call < 10; call++) {
                MPI_Allreduce(from, sums, count, MPI_DOUBLE, sum, comm);
                MPI_Bcast(from, count, MPI_DOUBLE, 0, comm);
            }
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&sum);
    if (rank == 0)
        puts("right");
    MPI_Finalize();
    return 0;
}
