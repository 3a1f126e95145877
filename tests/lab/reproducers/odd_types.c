/* A user's sum of integers that lie 100,000 bytes behind, or 64 before, the address of their type.
 *
 *     mpicc odd_types.c -o odd_types && mpiexec -n 3 ./odd_types
 *
 * Right: "0 sums wrong" twice. Wrong: sums, or the end by signal 11. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 300, TURNS = 20 };
static MPI_Aint away;

static void add(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)((char *)to + away))[i] += ((int *)((char *)from + away))[i];
}

static int wrong_sums(MPI_Aint bytes)
{
    int rank, size, one = 1, wrong = 0;
    MPI_Datatype far, type;
    MPI_Op op;
    away = bytes;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_create_hindexed(1, &one, &away, MPI_INT, &far);
    MPI_Type_create_resized(far, 0, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    size_t before = away < 0 ? -away : 0, room = labs(away) + COUNT * sizeof(int);
    char *from = calloc(2, room), *to = calloc(2, room);
    for (int turn = 0; turn < TURNS; turn++) {
        int *mine = (int *)(from + before + away), *sums = (int *)(to + before + away);
        for (int i = 0; i < COUNT; i++)
            mine[i] = rank + i + turn;
        MPI_Allreduce(from + before, to + before, COUNT, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            wrong += sums[i] != size * (size - 1) / 2 + size * (i + turn);
    }
    free(from);
    free(to);
    MPI_Op_free(&op);
    MPI_Type_free(&far);
    MPI_Type_free(&type);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int side = 0; side < 2; side++) {
        int wrong = wrong_sums(side ? -64 : 100000);
        if (rank == 0)
            printf("%d sums wrong\n", wrong);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
