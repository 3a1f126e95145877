/* Collectives in random order, on changing communicators, with ranks that come late: what one leaves in shared
 * memory must not be read, or overwritten, by another. In place and not, with derived types, from no element
 * to 40,000: mostly few, now and then more than a rank's shared memory holds. All values are known
 * beforehand. The argument is the number of rounds. All ranks draw the same random numbers, but for how
 * late they come. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "past_the_caches.h"

enum { MOST = 40000, RANKS = 64 };

static int give[2 * MOST * RANKS], take[MOST * RANKS];
static int me, n, count, seen; /* rank and size within the communicator; elements; the round */

static int value(int from, int to, int i) { return 7 * from + 3 * to + i % 101 + seen % 13; }

static void wrong(const char *what, int i, int found, int expected)
{
    printf("wrong %s of %d elements: round %d rank %d of %d element %d found %d expected %d\n", what,
           count, seen, me, n, i, found, expected);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Compares what is there with what `blocks` ranks, from `first` on, gave to `to`. */
static void compare(const char *what, int first, int blocks, int to)
{
    for (int from = first; from < first + blocks; from++)
        for (int i = 0; i < count; i++) {
            int found = take[(from - first) * count + i], expected = value(from, to, i);
            if (found != expected)
                wrong(what, i, found, expected);
        }
}

/* Compares what is there with the sum over all ranks. */
static void compare_sum(const char *what)
{
    for (int i = 0; i < count; i++) {
        int expected = n * value(0, 0, i) + 7 * n * (n - 1) / 2;
        if (take[i] != expected)
            wrong(what, i, take[i], expected);
    }
}

static void allreduce(MPI_Comm comm, int in_place)
{
    for (int i = 0; i < count; i++)
        give[i] = take[i] = value(me, 0, i);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : give, take, count, MPI_INT, MPI_SUM, comm);
    compare_sum("allreduce");
}

static void reduce(MPI_Comm comm, int root, int in_place)
{
    for (int i = 0; i < count; i++)
        give[i] = take[i] = value(me, 0, i);
    MPI_Reduce(in_place && me == root ? MPI_IN_PLACE : give, take, count, MPI_INT, MPI_SUM, root, comm);
    if (me == root)
        compare_sum("reduce");
}

/* Every other element of an array. */
static MPI_Datatype every_other(void)
{
    MPI_Datatype type;
    MPI_Type_vector(count, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void bcast(MPI_Comm comm, int root, int derived)
{
    for (int i = 0; i < count; i++) {
        give[2 * i] = value(root, 0, i);
        take[i] = me == root ? value(root, 0, i) : -1;
    }
    /* no empty type: beside a count of 0 it breaks the next MPI_Bcast of MVAPICH 4.0 as published
     * (docs/upstream.md) */
    if (derived && me == root && count > 0) {
        MPI_Datatype type = every_other();
        MPI_Bcast(give, 1, type, root, comm);
        MPI_Type_free(&type);
    } else
        MPI_Bcast(take, count, MPI_INT, root, comm);
    compare("bcast", root, 1, 0);
}

static void allgather(MPI_Comm comm, int in_place, int derived)
{
    MPI_Datatype type = every_other();
    for (int i = 0; i < count; i++)
        give[derived ? 2 * i : i] = take[me * count + i] = value(me, 0, i);
    if (in_place)
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, take, count, MPI_INT, comm);
    else if (derived)
        MPI_Allgather(give, 1, type, take, count, MPI_INT, comm);
    else
        MPI_Allgather(give, count, MPI_INT, take, count, MPI_INT, comm);
    compare("allgather", 0, n, 0);
    MPI_Type_free(&type);
}

static void alltoall(MPI_Comm comm, int in_place)
{
    for (int to = 0; to < n; to++)
        for (int i = 0; i < count; i++)
            give[to * count + i] = take[to * count + i] = value(me, to, i);
    MPI_Alltoall(in_place ? MPI_IN_PLACE : give, count, MPI_INT, take, count, MPI_INT, comm);
    compare("alltoall", 0, n, me);
}

static void barrier(MPI_Comm comm)
{
    MPI_Request request;
    int mine = me, sum = -1;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sum != n * (n - 1) / 2)
        wrong("iallreduce over a barrier", 0, sum, n * (n - 1) / 2);
}

static void round_on(MPI_Comm comm)
{
    static unsigned late = 1;
    int what = rand() % 6, root = rand() % RANKS % n, in_place = rand() % 2, derived = rand() % 2;
    count = rand() % 3 ? rand() % 20 : rand() % 4 ? rand() % 1100 : rand() % MOST;
    late = late * 1103515245u + 12345u + 77u * (unsigned)me;
    if (late / 65536 % 37 == 0)
        usleep(late / 65536 % 300);
    switch (what) {
    case 0: allreduce(comm, in_place); break;
    case 1: reduce(comm, root, in_place); break;
    case 2: bcast(comm, root, derived); break;
    case 3: allgather(comm, in_place, derived); break;
    case 4: alltoall(comm, in_place); break;
    default: barrier(comm);
    }
}

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (seen = 0; seen < rounds; seen++) {
        MPI_Comm comm = MPI_COMM_WORLD;
        int parts = seen % 50 ? 1 : 2, backwards = rand() % 2;
        if (seen == rounds / 2)
            past_the_caches();
        if (parts > 1)
            MPI_Comm_split(MPI_COMM_WORLD, rank % parts, backwards ? -rank : rank, &comm);
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &n);
        for (int i = 0; i < (parts > 1 ? 12 : 1); i++)
            round_on(comm);
        if (parts > 1)
            MPI_Comm_free(&comm);
    }
    if (rank == 0)
        printf("right %d rounds on %d ranks\n", rounds, size);
    MPI_Finalize();
    return 0;
}
