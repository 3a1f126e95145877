/* What OMB does not check of what it measures: that one-sided puts and gets bring the right bytes, and that nobody
 * leaves a barrier before all have entered it. Says which MPI it runs with, and where. One line each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 1 << 20, LATE = 20000 /* microseconds */ };
static char buffer[LARGEST], window[LARGEST];

static int puts_wrong(int rank, int size)
{
    MPI_Win win;
    int wrong = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;

    MPI_Win_create(window, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int bytes = 1; bytes <= LARGEST && !wrong; bytes *= 2) {
        memset(window, 0, LARGEST);
        for (int i = 0; i < bytes; i++)
            buffer[i] = (char)(i * 7 + rank + bytes % 251);
        MPI_Win_fence(0, win);
        MPI_Put(buffer, bytes, MPI_CHAR, to, 0, bytes, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        for (int i = 0; i < bytes && !wrong; i++)
            wrong = window[i] != (char)(i * 7 + from + bytes % 251);
        if (!wrong && bytes < LARGEST)
            wrong = window[bytes] != 0;
        MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
    return wrong;
}

static int gets_wrong(int rank, int size)
{
    MPI_Win win;
    int wrong = 0, from = (rank + 1) % size;

    MPI_Win_create(window, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int bytes = 1; bytes <= LARGEST; bytes *= 2) {
        memset(buffer, 0, LARGEST);
        for (int i = 0; i < LARGEST; i++)
            window[i] = (char)(i * 5 + rank + bytes % 251);
        MPI_Win_fence(0, win);
        MPI_Get(buffer, bytes, MPI_CHAR, from, 0, bytes, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        for (int i = 0; i < bytes && !wrong; i++)
            wrong = buffer[i] != (char)(i * 5 + from + bytes % 251);
        if (!wrong && bytes < LARGEST)
            wrong = buffer[bytes] != 0;
    }
    MPI_Win_free(&win);
    return wrong;
}

/* Each rank comes late once; the others may not be out before it is in. */
static int barrier_wrong(int rank, int size)
{
    int wrong = 0, in = 1, all;

    for (int late = 0; late < size && late < 8; late++) {
        /* before the sum, which the late rank leaves after all came: a wait for a core here does not count */
        double begin = MPI_Wtime();
        MPI_Allreduce(&in, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == late)
            usleep(LATE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != late && MPI_Wtime() - begin < LATE * 0.4e-6)
            wrong = 1;
    }
    return wrong;
}

/* The rest of the first line of a file that begins so, without quotes. */
static void say_line(const char *name, const char *path, const char *begin)
{
    char line[256], *said = NULL;
    FILE *file = fopen(path, "r");

    while (file && !said && fgets(line, sizeof line, file))
        if (!strncmp(line, begin, strlen(begin)))
            said = line + strlen(begin) + strspn(line + strlen(begin), "\t :=\"");
    if (said)
        printf("%s %.*s\n", name, (int)strcspn(said, "\"\n"), said);
    if (file)
        fclose(file);
}

/* What starts it may be on another machine. The cores are those that bound.sh had. */
static void say_where(void)
{
    char node[256] = "";

    gethostname(node, sizeof node - 1);
    printf("node %s\ncores %s\n", node, getenv("MVSTACK_CORES") ? getenv("MVSTACK_CORES") : "");
    say_line("cpu", "/proc/cpuinfo", "model name");
    say_line("os", "/etc/os-release", "PRETTY_NAME");
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length, wrong[3], any[3];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    wrong[0] = puts_wrong(rank, size);
    wrong[1] = barrier_wrong(rank, size);
    wrong[2] = gets_wrong(rank, size);
    MPI_Allreduce(wrong, any, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        say_where();
        printf("world %d\nput %s\nbarrier %s\nget %s\nversion %s\n", size, any[0] ? "wrong" : "right",
               any[1] ? "wrong" : "right", any[2] ? "wrong" : "right", version);
    }
    MPI_Finalize();
    return 0;
}
