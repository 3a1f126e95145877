/* One-sided communication by value: put, get, accumulate and atomics between all pairs of ranks, by fences,
 * locks, and post and start, in windows that MPI allocated and in windows of the program's own memory. All
 * values are known beforehand. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 25 };

static int me, n, count; /* rank, ranks, elements of an operation */
static int wrong;        /* values, of which the first is printed */
static int *mine;        /* this rank's window: a block of `count` for each rank, and a counter */
static const char *kind; /* of window */
static MPI_Win win;

static int value(int from, int to, int i, int seed) { return 10007 * from + 101 * to + i % 97 + seed; }

static void expect(const char *what, int other, int i, int found, int expected)
{
    if (found == expected || wrong++)
        return;
    printf("wrong %s of %d elements, %s window: rank %d with rank %d, element %d: found %d expected %d\n",
           what, count, kind, me, other, i, found, expected);
}

/* Fills `data` with what this rank gives to rank `to`. */
static void fill(int *data, int to, int seed)
{
    for (int i = 0; i < count; i++)
        data[i] = value(me, to, i, seed);
}

/* Compares the blocks of this rank's window with what each rank gave. */
static void compare(const char *what, int seed)
{
    for (int from = 0; from < n; from++)
        for (int i = 0; i < count; i++)
            expect(what, from, i, mine[from * count + i], value(from, me, i, seed));
}

static void by_fence(int *out)
{
    MPI_Win_fence(0, win);
    for (int to = 0; to < n; to++) {
        fill(out + to * count, to, 1);
        MPI_Put(out + to * count, count, MPI_INT, to, (MPI_Aint) me * count, count, MPI_INT, win);
    }
    MPI_Win_fence(0, win);
    compare("put, fence", 1);
    MPI_Win_fence(0, win);
}

/* Gets back what was put, then puts it the other way around by a derived type, with a request. */
static void by_lock(int *out, int *in)
{
    MPI_Datatype odd;
    MPI_Request request;

    MPI_Win_lock_all(0, win);
    for (int to = 0; to < n; to++) {
        MPI_Get(in, count, MPI_INT, to, (MPI_Aint) me * count, count, MPI_INT, win);
        MPI_Win_flush_local(to, win);
        for (int i = 0; i < count; i++)
            expect("get, flush", to, i, in[i], value(me, to, i, 1));
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_vector(count, 1, 2, MPI_INT, &odd); /* every second element of `in` */
    MPI_Type_commit(&odd);
    for (int to = 0; to < n; to++) {
        fill(out, to, 2);
        for (int i = 0; i < count; i++)
            in[2 * i] = out[i];
        MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
        MPI_Rput(in, 1, odd, to, (MPI_Aint) me * count, count, MPI_INT, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_unlock(to, win);
    }
    MPI_Type_free(&odd);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    compare("put of a derived type, lock", 2);
    MPI_Win_unlock(me, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void by_post_and_start(int *out)
{
    MPI_Group all;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Win_post(all, 0, win);
    MPI_Win_start(all, 0, win);
    for (int to = 0; to < n; to++) {
        fill(out + to * count, to, 3);
        MPI_Put(out + to * count, count, MPI_INT, to, (MPI_Aint) me * count, count, MPI_INT, win);
    }
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    compare("put, post and start", 3);
    MPI_Group_free(&all);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All ranks add to the first block of all. */
static void accumulate(int *out)
{
    MPI_Win_lock_all(0, win);
    for (int to = 0; to < n; to++) {
        fill(out + to * count, to, 4);
        MPI_Accumulate(out + to * count, count, MPI_INT, to, 0, count, MPI_INT, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    for (int i = 0; i < count; i++) {
        int sum = value(0, me, i, 3);
        for (int from = 0; from < n; from++)
            sum += value(from, me, i, 4);
        expect("accumulate", 0, i, mine[i], sum);
    }
    MPI_Win_unlock(me, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All ranks count up at each rank by MPI_Fetch_and_op, and by MPI_Compare_and_swap: no turn is lost. */
static void count_up(void)
{
    MPI_Aint at = (MPI_Aint) n * count;
    int one = 1, seen, sum = 0, total;

    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < TURNS; turn++)
        for (int to = 0; to < n; to++) {
            MPI_Fetch_and_op(&one, &seen, MPI_INT, to, at, MPI_SUM, win);
            MPI_Win_flush(to, win);
            sum += seen;
        }
    MPI_Allreduce(&sum, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect("fetch and op, sum of what was fetched", 0, 0, total, n * (n * TURNS) * (n * TURNS - 1) / 2);
    for (int turn = 0; turn < TURNS; turn++)
        for (int to = 0, guess = 0, next; to < n; to++)
            for (;; guess = seen) {
                next = guess + 1;
                MPI_Compare_and_swap(&next, &guess, &seen, MPI_INT, to, at, win);
                MPI_Win_flush(to, win);
                if (seen == guess)
                    break;
            }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    expect("fetch and op, and compare and swap", me, 0, mine[at], 2 * n * TURNS);
    MPI_Win_unlock(me, win);
}

int main(int argc, char **argv)
{
    const int counts[] = {1, 17, 1000, 40000};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int allocated = 1; allocated >= 0; allocated--)
        for (int one = 0; one < 4; one++) {
            count = counts[one];
            MPI_Aint size = ((MPI_Aint) n * count + 1) * sizeof(int);
            int *own, *out = malloc(size), *in = malloc(2 * size);
            MPI_Alloc_mem(size, MPI_INFO_NULL, &own); /* what may be locked, by the standard */
            kind = allocated ? "allocated" : "created";
            if (allocated)
                MPI_Win_allocate(size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
            else
                MPI_Win_create(mine = own, size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_fence(0, win);
            memset(mine, 0, size);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
            by_fence(out);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
            by_lock(out, in);
            by_post_and_start(out);
            accumulate(out);
            count_up();
            MPI_Win_free(&win);
            MPI_Free_mem(own);
            free(out);
            free(in);
        }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0 && !wrong)
        printf("right one-sided communication of %d ranks\n", n);
    MPI_Finalize();
    return 0;
}
