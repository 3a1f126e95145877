/* The bandwidth of each node's memory, in GB/s (10^9 bytes), by a triad over arrays well past the caches.
 * Usage: memory SHARE
 * The nodes take turns, several times: the ranks of one measure at once while those of all others sleep, so that
 * ranks which wait take nothing from those which measure, and a busy moment meets all nodes alike. A node's time is
 * that of its slowest rank, and the best of all times counts. They go on until ROUNDS of them brought nothing better,
 * and as long as a node has less than SHARE of the median of the others, for LONGEST seconds at most: what was slow by
 * chance does not stay so.
 *   triad MB of each array of a node, MB of caches of a node, ranks
 *   node NAME GB/s
 * The three arrays of all ranks of a node take no more than an eighth of what is free there, and of the job's limit. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = MPI_MAX_PROCESSOR_NAME, ROUNDS = 8, TRIADS = 3, LONGEST = 30, PAST = 4, EIGHTH = 8 };
static const double MOST = 1 << 30; /* bytes a rank */

/* The number at the beginning of a file, -1 without one; the character after it. */
static double number(const char *path, char *unit)
{
    double value = -1;
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%lf%c", &value, unit) < 1)
            value = -1;
        fclose(file);
    }
    return value;
}

/* Bytes of the last caches of this node; each is counted at the first processor that shares it. */
static double caches(void)
{
    char path[128], unit;
    double found = 0;
    for (int processor = 0; processor < sysconf(_SC_NPROCESSORS_CONF); processor++)
        for (int index = 9; index >= 0; index--) {
            const char *const form = "/sys/devices/system/cpu/cpu%d/cache/index%d/%s";
            snprintf(path, sizeof path, form, processor, index, "size");
            unit = 0;
            const double size = number(path, &unit);
            if (size <= 0)
                continue;
            snprintf(path, sizeof path, form, processor, index, "shared_cpu_list");
            char end;
            if (number(path, &end) == processor)
                found += size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
            break;
        }
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (found <= 0)
        found = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return found > 0 ? found : 64 << 20;
}

/* Bytes that are free on this node, or that the job's control group (version 2) has: the fewer. */
static double room(void)
{
    char line[4096], path[4096] = "", file[4200], unit;
    double available = 1 << 30, limit;
    FILE *memory = fopen("/proc/meminfo", "r"), *groups = fopen("/proc/self/cgroup", "r");
    while (memory && fgets(line, sizeof line, memory))
        if (sscanf(line, "MemAvailable: %lf", &limit) == 1)
            available = limit * (1 << 10);
    while (groups && fgets(line, sizeof line, groups))
        sscanf(line, "0::%4095s", path);
    for (char *cut = path + strlen(path); cut; cut = strrchr(path, '/')) {
        *cut = '\0'; /* of its own group, then of those around it */
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.max", path);
        limit = number(file, &unit);
        if (limit > 0 && limit < available)
            available = limit;
    }
    if (memory)
        fclose(memory);
    if (groups)
        fclose(groups);
    return available;
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t elements)
{
    for (size_t i = 0; i < elements; i++)
        a[i] = b[i] + 3 * c[i];
}

/* Waits for all ranks without a processor: MPI_Barrier would look for messages all the time. */
static void wait_asleep(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        usleep(1000);
}

static int ascending(const void *one, const void *other)
{
    const double x = *(const double *)one, y = *(const double *)other;
    return (x > y) - (x < y);
}

/* Whether the slowest of the sorted speeds has less than `share` of the median of the others (of an even number the
 * lower one). */
static int slow(const double *sorted, int nodes, double share)
{
    return nodes > 1 && sorted[0] < share * sorted[nodes / 2];
}

int main(int argc, char **argv)
{
    char name[NAME] = "", *names;
    int rank, size, length, first = 0, nodes = 0, ranks, mine = -1, again = 1;
    MPI_Comm node;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const double share = argc > 1 ? atof(argv[1]) : 0;
    MPI_Get_processor_name(name, &length);
    names = calloc(size, NAME);
    MPI_Allgather(name, NAME, MPI_CHAR, names, NAME, MPI_CHAR, MPI_COMM_WORLD);
    int *head = calloc(size, sizeof *head); /* the first rank of each node */
    for (int one = 0; one < size; one++) {
        for (first = 0; strcmp(names + (size_t)first * NAME, names + (size_t)one * NAME); first++)
            ;
        if (first == one)
            head[nodes++] = one;
    }
    for (first = 0; strcmp(names + (size_t)head[first] * NAME, name); first++)
        ;
    mine = first;
    MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &node);
    MPI_Comm_size(node, &ranks);

    /* as large on all nodes: as the largest caches want, and the fullest node has room for */
    double size_of[2] = {PAST * caches() / ranks, -room() / EIGHTH / 3 / ranks}, cached = caches();
    MPI_Allreduce(MPI_IN_PLACE, size_of, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &cached, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double bytes = size_of[0] < -size_of[1] ? size_of[0] : -size_of[1];
    if (bytes > MOST / 3)
        bytes = MOST / 3;
    const size_t elements = (size_t)(bytes / sizeof(double));
    double *a = malloc(elements * sizeof *a), *b = malloc(elements * sizeof *b), *c = malloc(elements * sizeof *c);
    if (!a || !b || !c)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (size_t i = 0; i < elements; i++) /* by the rank that uses it, for the kernel to place it near */
        a[i] = 0, b[i] = 1, c[i] = 2;

    double best = 0, total = 0, *speed = calloc(size, sizeof *speed), *sorted = calloc(nodes, sizeof *sorted);
    const double begin = MPI_Wtime();
    for (int left = ROUNDS; again; left--) {
        for (int turn = 0; turn < nodes; turn++) {
            wait_asleep();
            for (int one = 0; turn == mine && one < TRIADS; one++) {
                MPI_Barrier(node);
                double time = MPI_Wtime();
                triad(a, b, c, elements);
                time = MPI_Wtime() - time;
                MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, node);
                const double found = 1e-9 * 3 * sizeof(double) * elements * ranks / time;
                if (found > best)
                    best = found;
            }
        }
        wait_asleep();
        MPI_Allgather(&best, 1, MPI_DOUBLE, speed, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        double now = 0;
        for (int one = 0; one < nodes; one++)
            now += sorted[one] = speed[head[one]];
        if (now > 1.01 * total) {
            total = now;
            left = ROUNDS;
        }
        qsort(sorted, nodes, sizeof *sorted, ascending);
        again = (left > 0 || slow(sorted, nodes, share)) && MPI_Wtime() - begin < LONGEST;
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    int right = a[0] == 7 && a[elements - 1] == 7, all;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0 && all) {
        printf("triad %.0f MB, %.0f MB of caches, %d ranks\n", 1e-6 * bytes * ranks, 1e-6 * cached, size);
        for (int one = 0; one < nodes; one++)
            printf("node %s %.2f GB/s\n", names + (size_t)head[one] * NAME, speed[head[one]]);
    }
    free(a), free(b), free(c), free(names), free(head), free(speed), free(sorted);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
