/* Four collectives, two types, every power of two from 4 B to 1 MiB a rank: each element of each
 * result is compared with the value known beforehand. One line each; the first wrong element is
 * named with what was found and expected. All values are small integers, exact in both types. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALLEST = 4, LARGEST = 1 << 20 };

typedef enum { INT, DOUBLE } Type;
typedef enum { ALLREDUCE, ALLTOALL, BCAST, ALLGATHER } Collective;

static const char *const TYPES[] = {"int", "double"};
static const char *const NAMES[] = {"allreduce", "alltoall", "bcast", "allgather"};
static const MPI_Datatype MPI_TYPE[] = {MPI_INT, MPI_DOUBLE};
static const int WIDTH[] = {sizeof(int), sizeof(double)};

static void set(Type type, void *data, long i, long value)
{
    if (type == INT)
        ((int *)data)[i] = (int)value;
    else
        ((double *)data)[i] = (double)value;
}

static double get(Type type, const void *data, long i)
{
    return type == INT ? ((const int *)data)[i] : ((const double *)data)[i];
}

/* The value at element i of what `from` sends to `to`. */
static long element(int from, int to, long i)
{
    return 3 * from + 5 * to + i % 1009 + 1;
}

/* The value expected at element i of the result on `rank`, for `count` elements a rank. */
static long expected(Collective what, int rank, int size, long count, long i)
{
    switch (what) {
    case ALLREDUCE: return 3L * size * (size - 1) / 2 + (i % 1009 + 1) * size;
    case ALLTOALL:  return element((int)(i / count), rank, i % count);
    case BCAST:     return element(size - 1, 0, i);
    default:        return element((int)(i / count), 0, i % count);
    }
}

static void run(Collective what, MPI_Datatype mpi, int count, int size, void *in, void *out)
{
    switch (what) {
    case ALLREDUCE: MPI_Allreduce(in, out, count, mpi, MPI_SUM, MPI_COMM_WORLD); break;
    case ALLTOALL:  MPI_Alltoall(in, count, mpi, out, count, mpi, MPI_COMM_WORLD); break;
    case BCAST:     MPI_Bcast(out, count, mpi, size - 1, MPI_COMM_WORLD); break;
    case ALLGATHER: MPI_Allgather(in, count, mpi, out, count, mpi, MPI_COMM_WORLD); break;
    }
}

static void check(Collective what, Type type, long bytes, int rank, int size, void *in, void *out)
{
    const long count = bytes / WIDTH[type];
    const long total = what == ALLTOALL || what == ALLGATHER ? count * size : count;
    const long sent = what == ALLTOALL ? count * size : count;
    int wrong = 0, any;
    long i;

    for (i = 0; i < sent; i++)
        set(type, in, i, element(rank, what == ALLTOALL ? (int)(i / count) : 0, i % count));
    for (i = 0; i < total; i++)
        set(type, out, i, what == BCAST && rank == size - 1 ? element(rank, 0, i) : -1);
    run(what, MPI_TYPE[type], (int)count, size, in, out);
    for (i = 0; i < total && !wrong; i++) {
        long want = expected(what, rank, size, count, i);
        if (get(type, out, i) != (double)want) {
            wrong = 1;
            printf("wrong %s %s %ld B: rank %d element %ld found %g expected %ld\n", NAMES[what],
                   TYPES[type], bytes, rank, i, get(type, out, i), want);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any)
        printf("right %s %s %ld\n", NAMES[what], TYPES[type], bytes);
}

int main(int argc, char **argv)
{
    int rank, size, what, type;
    long bytes;
    void *in, *out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = malloc((size_t)LARGEST * size);
    out = malloc((size_t)LARGEST * size);
    for (what = ALLREDUCE; what <= ALLGATHER; what++)
        for (type = INT; type <= DOUBLE; type++)
            for (bytes = SMALLEST; bytes <= LARGEST; bytes *= 2)
                if (bytes >= WIDTH[type])
                    check(what, type, bytes, rank, size, in, out);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
