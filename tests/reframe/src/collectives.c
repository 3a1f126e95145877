/* Collectives by value: blocking, with counts of their own a rank, of neighbours in a ring, nonblocking and
 * persistent; two types; powers of two and odd counts from one element to 1 MiB a rank. Each element of each
 * result is compared with the value known beforehand. One line each; the first wrong element is named with
 * what was found and expected, and a collective that takes too long by its name. All values are small
 * integers, exact in both types. Arguments: "all" is more than the fifteen usual ones; "few" is ints and every
 * second power alone, for more ranks than processors; "bounded" leaves out what gives or gets more than 1 MiB in blocks
 * of each rank, and says so: for many ranks. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 1 << 20, SECONDS = 30 }; /* bytes a rank; the limit of one collective */

typedef enum { INT, DOUBLE } Type;
static const char *const TYPES[] = {"int", "double"};
static const MPI_Datatype MPI_TYPE[] = {MPI_INT, MPI_DOUBLE};
static const int WIDTH[] = {sizeof(int), sizeof(double)};

static int rank, size, root, count; /* of the collective that runs; the root is the last rank */
static int *counts, *starts;        /* what each rank gives (or, of alltoallv, what goes to each) */
static int *bytes;                  /* `starts`, for alltoallw */
static MPI_Datatype *types;
static MPI_Comm ring; /* each rank has two neighbours, on two ranks the other one twice */
static char running[128];
static int bounded;

/* With counts of their own, every other rank gives an element less. */
static int fewer(int from, int to) { return count - (count > 1 && (from + to) % 2); }

/* The value at element i of what `from` sends to `to`; the same to all unless `to` matters. */
static long element(int from, int to, long i) { return 3 * from + 5 * to + i % 1009 + 1; }

/* The sum of element(0, to, i) … element(ranks - 1, to, i). */
static long sum(int ranks, int to, long i)
{
    return 3L * ranks * (ranks - 1) / 2 + (5L * to + i % 1009 + 1) * ranks;
}

static void bcast(void *in, void *out, MPI_Datatype type)
{
    (void)in;
    MPI_Bcast(out, count, type, root, MPI_COMM_WORLD);
}
static void reduce(void *in, void *out, MPI_Datatype type)
{
    MPI_Reduce(in, out, count, type, MPI_SUM, root, MPI_COMM_WORLD);
}
static void allreduce(void *in, void *out, MPI_Datatype type)
{
    MPI_Allreduce(in, out, count, type, MPI_SUM, MPI_COMM_WORLD);
}
static void gather(void *in, void *out, MPI_Datatype type)
{
    MPI_Gather(in, count, type, out, count, type, root, MPI_COMM_WORLD);
}
static void scatter(void *in, void *out, MPI_Datatype type)
{
    MPI_Scatter(in, count, type, out, count, type, root, MPI_COMM_WORLD);
}
static void allgather(void *in, void *out, MPI_Datatype type)
{
    MPI_Allgather(in, count, type, out, count, type, MPI_COMM_WORLD);
}
static void allgatherv(void *in, void *out, MPI_Datatype type)
{
    for (int from = 0; from < size; from++)
        counts[from] = fewer(from, 0);
    MPI_Allgatherv(in, counts[rank], type, out, counts, starts, type, MPI_COMM_WORLD);
}
static void gatherv(void *in, void *out, MPI_Datatype type)
{
    for (int from = 0; from < size; from++)
        counts[from] = fewer(from, 0);
    MPI_Gatherv(in, counts[rank], type, out, counts, starts, type, root, MPI_COMM_WORLD);
}
static void scatterv(void *in, void *out, MPI_Datatype type)
{
    for (int to = 0; to < size; to++)
        counts[to] = fewer(root, to);
    MPI_Scatterv(in, counts, starts, type, out, counts[rank], type, root, MPI_COMM_WORLD);
}
static void alltoall(void *in, void *out, MPI_Datatype type)
{
    MPI_Alltoall(in, count, type, out, count, type, MPI_COMM_WORLD);
}
static void alltoallv(void *in, void *out, MPI_Datatype type)
{
    for (int other = 0; other < size; other++)
        counts[other] = fewer(rank, other);
    MPI_Alltoallv(in, counts, starts, type, out, counts, starts, type, MPI_COMM_WORLD);
}
static void alltoallw(void *in, void *out, MPI_Datatype type)
{
    int width;
    MPI_Type_size(type, &width);
    for (int other = 0; other < size; other++) {
        counts[other] = fewer(rank, other);
        bytes[other] = starts[other] * width;
        types[other] = type;
    }
    MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, MPI_COMM_WORLD);
}
static void reduce_scatter(void *in, void *out, MPI_Datatype type)
{
    for (int to = 0; to < size; to++)
        counts[to] = fewer(to, 0);
    MPI_Reduce_scatter(in, out, counts, type, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter_block(void *in, void *out, MPI_Datatype type)
{
    MPI_Reduce_scatter_block(in, out, count, type, MPI_SUM, MPI_COMM_WORLD);
}
static void scan(void *in, void *out, MPI_Datatype type)
{
    MPI_Scan(in, out, count, type, MPI_SUM, MPI_COMM_WORLD);
}
static void exscan(void *in, void *out, MPI_Datatype type)
{
    MPI_Exscan(in, out, count, type, MPI_SUM, MPI_COMM_WORLD);
}
static void ibcast(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    (void)in;
    MPI_Ibcast(out, count, type, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void iallreduce(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Iallreduce(in, out, count, type, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void ialltoall(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Ialltoall(in, count, type, out, count, type, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void igather(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Igather(in, count, type, out, count, type, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void iscatter(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Iscatter(in, count, type, out, count, type, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void iallgather(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Iallgather(in, count, type, out, count, type, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void neighbor_allgather(void *in, void *out, MPI_Datatype type)
{
    MPI_Neighbor_allgather(in, count, type, out, count, type, ring);
}
static void neighbor_alltoall(void *in, void *out, MPI_Datatype type)
{
    MPI_Neighbor_alltoall(in, count, type, out, count, type, ring);
}
#if MPI_VERSION >= 4
/* Started twice; what the first start brought is taken away. */
static void allreduce_init(void *in, void *out, MPI_Datatype type)
{
    MPI_Request request;
    int width;
    MPI_Type_size(type, &width);
    MPI_Allreduce_init(in, out, count, type, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int start = 0; start < 2; start++) {
        memset(out, 0, (size_t)count * width);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}
#endif

/* What is expected at element i of the result; UNTOUCHED where nothing may be written. */
enum { UNTOUCHED = -1 };
static long of_root(long i) { return element(root, 0, i); }
static long of_root_to_me(long i) { return element(root, rank, i); }
static long of_all(long i) { return element((int)(i / count), 0, i % count); }
static long of_all_to_me(long i) { return element((int)(i / count), rank, i % count); }
static long fewer_of_all(long i)
{
    return i % count < fewer((int)(i / count), 0) ? of_all(i) : UNTOUCHED;
}
static long fewer_of_all_to_me(long i)
{
    return i % count < fewer((int)(i / count), rank) ? of_all_to_me(i) : UNTOUCHED;
}
static long fewer_of_root_to_me(long i)
{
    return i < fewer(root, rank) ? of_root_to_me(i) : UNTOUCHED;
}
static int neighbour(int block) { return (rank + (block ? 1 : size - 1)) % size; }
static long of_neighbours(long i) { return element(neighbour((int)(i / count)), 0, i % count); }
static long of_neighbours_to_me(long i)
{
    return element(neighbour((int)(i / count)), rank, i % count);
}
static long all_sums(long i) { return sum(size, 0, i); }
static long my_sums(long i) { return sum(size, rank, i); }
static long fewer_of_sums(long i)
{
    long start = 0;
    for (int before = 0; before < rank; before++)
        start += fewer(before, 0);
    return i < fewer(rank, 0) ? sum(size, 0, start + i) : UNTOUCHED;
}
static long sums_to_me(long i) { return sum(rank + 1, 0, i); }
static long sums_before_me(long i) { return rank ? sum(rank, 0, i) : UNTOUCHED; }

typedef struct {
    const char *name;
    void (*run)(void *, void *, MPI_Datatype);
    long (*expected)(long i);
    int sent, got; /* blocks of `count` elements: 1, BOTH neighbours', or ALL for one of each rank */
    int at_root;   /* the root alone has a result */
} Collective;
enum { USUAL = 15 }; /* of the table */
enum { ALL = 0, BOTH = 2, IN_A_ROW = -1 }; /* IN_A_ROW: as many as ALL, of no block of their own */

static const Collective COLLECTIVES[] = {
    {"bcast", bcast, of_root, 1, 1, 0},
    {"reduce", reduce, all_sums, 1, 1, 1},
    {"allreduce", allreduce, all_sums, 1, 1, 0},
    {"gather", gather, of_all, 1, ALL, 1},
    {"scatter", scatter, of_root_to_me, ALL, 1, 0},
    {"allgather", allgather, of_all, 1, ALL, 0},
    {"allgatherv", allgatherv, fewer_of_all, 1, ALL, 0},
    {"alltoall", alltoall, of_all_to_me, ALL, ALL, 0},
    {"alltoallv", alltoallv, fewer_of_all_to_me, ALL, ALL, 0},
    {"reduce_scatter_block", reduce_scatter_block, my_sums, ALL, 1, 0},
    {"scan", scan, sums_to_me, 1, 1, 0},
    {"exscan", exscan, sums_before_me, 1, 1, 0},
    {"ibcast", ibcast, of_root, 1, 1, 0},
    {"iallreduce", iallreduce, all_sums, 1, 1, 0},
    {"ialltoall", ialltoall, of_all_to_me, ALL, ALL, 0},
    {"gatherv", gatherv, fewer_of_all, 1, ALL, 1},
    {"scatterv", scatterv, fewer_of_root_to_me, ALL, 1, 0},
    {"alltoallw", alltoallw, fewer_of_all_to_me, ALL, ALL, 0},
    {"reduce_scatter", reduce_scatter, fewer_of_sums, IN_A_ROW, 1, 0},
    {"igather", igather, of_all, 1, ALL, 1},
    {"iscatter", iscatter, of_root_to_me, ALL, 1, 0},
    {"iallgather", iallgather, of_all, 1, ALL, 0},
    {"neighbor_allgather", neighbor_allgather, of_neighbours, 1, BOTH, 0},
    {"neighbor_alltoall", neighbor_alltoall, of_neighbours_to_me, BOTH, BOTH, 0},
#if MPI_VERSION >= 4
    {"allreduce_init", allreduce_init, all_sums, 1, 1, 0},
#endif
};

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

static void hung(int signal)
{
    (void)signal;
    /* the line says it; a launcher that ends the others first would hide what they say */
    _exit(write(STDOUT_FILENO, running, strlen(running)) < 0);
}

static int blocks(int kind) { return kind > 0 ? kind : size; }

/* The value at element i of what this rank gives. */
static long given(const Collective *what, long i)
{
    const int block = (int)(i / count);
    if (what->sent == IN_A_ROW)
        return element(rank, 0, i);
    return element(rank, what->sent == ALL ? block : what->sent == BOTH ? neighbour(block) : 0, i % count);
}

static void check(const Collective *what, Type type, int elements, void *in, void *out)
{
    int wrong = 0, any;

    count = elements;
    if (bounded && (what->sent <= 0 || what->got <= 0) && (long)count * WIDTH[type] * size > LARGEST) {
        if (rank == 0)
            printf("left %s %s %d\n", what->name, TYPES[type], count);
        return;
    }
    for (int other = 0; other < size; other++)
        starts[other] = other * count;
    const long sent = (long)count * blocks(what->sent);
    const long total = (long)count * blocks(what->got);
    const int has_result = !what->at_root || rank == root;
    const int is_bcast = what->expected == of_root;
    for (long i = 0; i < sent; i++)
        set(type, in, i, given(what, i));
    for (long i = 0; i < total; i++)
        set(type, out, i, is_bcast && rank == root ? element(rank, 0, i) : UNTOUCHED);
    snprintf(running, sizeof running, "hung %s %s %d: rank %d waits in it for %d s\n", what->name,
             TYPES[type], count, rank, SECONDS);
    alarm(SECONDS);
    what->run(in, out, MPI_TYPE[type]);
    for (long i = 0; has_result && i < total && !wrong; i++) {
        long want = what->expected(i);
        if (get(type, out, i) != (double)want) {
            wrong = 1;
            printf("wrong %s %s %d: rank %d element %ld found %g expected %ld\n", what->name, TYPES[type],
                   count, rank, i, get(type, out, i), want);
        }
    }
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    alarm(0);
    if (rank == 0 && !any)
        printf("right %s %s %d\n", what->name, TYPES[type], count);
    fflush(stdout);
}

static int has(const char *word, int count, char **words)
{
    while (--count > 0 && strcmp(words[count], word))
        ;
    return count > 0;
}

int main(int argc, char **argv)
{
    static const int ODD[] = {3, 7, 129, 1021, 16385};
    const int few = has("few", argc, argv), all = has("all", argc, argv);
    const size_t most = all ? sizeof COLLECTIVES / sizeof *COLLECTIVES : USUAL;

    bounded = has("bounded", argc, argv);
    MPI_Init(&argc, &argv);
    signal(SIGALRM, hung);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    root = size - 1;
    const size_t most_bytes = (size_t)LARGEST * (size > BOTH && !bounded ? size : BOTH);
    void *in = malloc(most_bytes), *out = malloc(most_bytes);
    counts = calloc(size, sizeof *counts);
    starts = calloc(size, sizeof *starts);
    bytes = calloc(size, sizeof *bytes);
    types = calloc(size, sizeof *types);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &ring);
    if (rank == 0 && all && MPI_VERSION < 4)
        printf("without allreduce_init: MPI %d.%d\n", MPI_VERSION, MPI_SUBVERSION);
    for (size_t one = 0; one < most; one++)
        for (Type type = INT; type <= (few ? INT : DOUBLE); type++) {
            for (int elements = 1; elements <= LARGEST / WIDTH[type]; elements *= few ? 4 : 2)
                check(&COLLECTIVES[one], type, elements, in, out);
            for (size_t odd = 0; odd < sizeof ODD / sizeof *ODD; odd++)
                check(&COLLECTIVES[one], type, ODD[odd], in, out);
        }
    free(in);
    free(out);
    free(counts);
    free(starts);
    free(bytes);
    free(types);
    MPI_Comm_free(&ring);
    MPI_Finalize();
    return 0;
}
