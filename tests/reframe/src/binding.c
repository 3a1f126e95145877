/* Each rank says on which processors of its host it may run, and which ones the job has there: what the kernel allows
 * when all are asked for. Each processor is followed by its core: two hardware threads of a core are one. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 8192, CHARACTERS = 1 << 17 };

static int core_of(int processor)
{
    char path[128];
    int core = processor;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%d", &core) != 1)
            core = processor;
        fclose(file);
    }
    return core;
}

/* Writes " PROCESSOR=CORE" of each. */
static void list(char *to, const cpu_set_t *set, size_t bytes)
{
    for (int i = 0; i < MOST; i++)
        if (CPU_ISSET_S(i, bytes, set))
            to += sprintf(to, " %d=%d", i, core_of(i));
    *to = '\0';
}

int main(int argc, char **argv)
{
    static char mine[CHARACTERS], jobs[CHARACTERS];
    cpu_set_t *set = CPU_ALLOC(MOST), *all = CPU_ALLOC(MOST);
    const size_t bytes = CPU_ALLOC_SIZE(MOST);
    char host[256] = "";
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gethostname(host, sizeof host - 1);
    CPU_ZERO_S(bytes, set);
    sched_getaffinity(0, bytes, set); /* after MPI_Init: some MPIs bind there */
    list(mine, set, bytes);
    memset(all, 0xff, bytes);
    sched_setaffinity(0, bytes, all);
    CPU_ZERO_S(bytes, all);
    sched_getaffinity(0, bytes, all);
    list(jobs, all, bytes);
    printf("rank %d on %s:%s of%s\n", rank, host, mine, jobs);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
