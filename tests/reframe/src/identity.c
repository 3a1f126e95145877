/* How much memory this process may lock, what MPI says it is, which libraries the process has mapped
 * (/proc/self/maps), and how much of what it sends goes through TCP: all but the second are the kernel's words, and
 * no variable changes them. */
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/tcp.h>

#define MESSAGE (1 << 20) /* bytes */
#define MESSAGES 16

/* Before MPI_Init, which may fail for it. The kernel asks no process with CAP_IPC_LOCK, its bit 14. */
static void print_limit(void)
{
    char line[256];
    unsigned long long able = 0;
    struct rlimit limit;
    FILE *status = fopen("/proc/self/status", "r");

    while (status && fgets(line, sizeof line, status))
        sscanf(line, "CapEff: %llx", &able);
    if (status)
        fclose(status);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (!(able >> 14 & 1) && limit.rlim_cur != RLIM_INFINITY)
        printf("a process may lock %llu bytes of memory\n", (unsigned long long)limit.rlim_cur);
    fflush(stdout);
}

static void print_libraries(int rank)
{
    char line[4096], last[4096] = "";
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (!path || !strstr(path, ".so"))
            continue;
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(path, last) != 0)
            printf("rank %d maps %s\n", rank, path);
        strcpy(last, path);
    }
    if (maps)
        fclose(maps);
}

/* Bytes that the TCP sockets of this process have carried, both ways. A library may have more than one
 * per peer, and opens some with the first message. */
static unsigned long long over_tcp(void)
{
    unsigned long long sum = 0;

    for (int fd = 0; fd < sysconf(_SC_OPEN_MAX) && fd < 65536; fd++) {
        struct tcp_info info;
        socklen_t length = sizeof info;
        memset(&info, 0, sizeof info);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
            sum += info.tcpi_bytes_acked + info.tcpi_bytes_received;
    }
    return sum;
}

/* Send messages to the next rank of the ring, and say what way they took. */
static void print_way(int rank, int size)
{
    char *out = calloc(1, MESSAGE), *in = malloc(MESSAGE), host[MPI_MAX_PROCESSOR_NAME];
    int length, next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned long long start = over_tcp();

    for (int i = 0; i < MESSAGES; i++)
        MPI_Sendrecv(out, MESSAGE, MPI_CHAR, next, 0, in, MESSAGE, MPI_CHAR, before, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD); /* what was sent has arrived: TCP has its acknowledgements */
    MPI_Get_processor_name(host, &length);
    printf("rank %d on %s: %llu of %d bytes over TCP\n", rank, host, over_tcp() - start,
           2 * MESSAGES * MESSAGE);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length;

    print_limit();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        printf("library version begins\n%s\nlibrary version ends\n", version);
    print_libraries(rank);
    print_way(rank, size);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
