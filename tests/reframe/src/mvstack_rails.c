/* What a node's links carry: the bandwidth between pairs of ranks on two nodes, in MB/s (10^6 bytes).
 * Usage: mvstack_rails LABEL PAIRS [ADAPTER...]
 * The first half of the ranks is to be on one node, the second on another; rank i of the first half
 * sends windows of large messages to rank i of the second for some seconds. PAIRS of them do so, the
 * others wait. What the named adapters sent meanwhile is read from the kernel's counters where they
 * can be read: of InfiniBand and RoCE adapters, and of network interfaces.
 *   one node NAME                all ranks are on one node: nothing was measured
 *   rails LABEL MB/s BYTES       the sum over the pairs, and all bytes that they sent
 *   sent LABEL ADAPTER BYTES     for each adapter whose counter can be read */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16, BYTES = 1 << 20, ADAPTERS = 64 };
static const double SECONDS = 3;

static double counter(const char *adapter)
{
    char path[512];
    double value;
    int found, words = 1;
    FILE *file;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/counters/port_xmit_data", adapter);
    file = fopen(path, "r");
    if (!file) { /* that one counts words of four bytes, this one bytes */
        words = 0;
        snprintf(path, sizeof path, "/sys/class/net/%s/statistics/tx_bytes", adapter);
        file = fopen(path, "r");
    }
    if (!file)
        return -1;
    found = fscanf(file, "%lf", &value);
    fclose(file);
    return found == 1 ? (words ? 4 * value : value) : -1;
}

static void window(int rank, int half, int pairs, char *data)
{
    MPI_Request request[WINDOW];
    MPI_Status status[WINDOW];
    int i, answer = 0;

    if (rank % half >= pairs)
        return;
    for (i = 0; i < WINDOW; i++) {
        char *place = data + (size_t) i * BYTES;
        if (rank < half)
            MPI_Isend(place, BYTES, MPI_BYTE, rank + half, 1, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(place, BYTES, MPI_BYTE, rank - half, 1, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(WINDOW, request, status);
    if (rank < half)
        MPI_Recv(&answer, 1, MPI_INT, rank + half, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&answer, 1, MPI_INT, rank - half, 2, MPI_COMM_WORLD);
}

/* Whether each pair is on two nodes; otherwise rank 0 says so. */
static int apart(int rank, int size)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", other[MPI_MAX_PROCESSOR_NAME] = "";
    int length, half = size / 2, partner = (rank + half) % size, same, any;

    MPI_Get_processor_name(name, &length);
    MPI_Sendrecv(name, sizeof name, MPI_CHAR, partner, 3, other, sizeof other, MPI_CHAR, partner, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    same = strcmp(name, other) == 0;
    MPI_Allreduce(&same, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (any && rank == 0)
        printf("one node %s\n", name);
    return !any;
}

int main(int argc, char **argv)
{
    int rank, size, pairs, i, windows = 0, more = 1;
    double before[ADAPTERS], start;
    char *data;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pairs = argc < 3 ? 0 : atoi(argv[2]);
    if (pairs < 1 || 2 * pairs > size || size % 2 || argc > 3 + ADAPTERS) {
        if (rank == 0)
            fprintf(stderr, "mvstack_rails: LABEL PAIRS [ADAPTER...], and two ranks a pair; has %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    data = calloc(WINDOW, BYTES);
    if (apart(rank, size)) {
        window(rank, size / 2, pairs, data); /* connects, and is not counted */
        for (i = 3; i < argc; i++)
            before[i - 3] = counter(argv[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (; more; windows++) {
            window(rank, size / 2, pairs, data);
            more = MPI_Wtime() - start < SECONDS;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            double seconds = MPI_Wtime() - start, moved = (double) BYTES * WINDOW * windows * pairs;
            printf("rails %s %.2f %.0f\n", argv[1], 1e-6 * moved / seconds, moved);
            for (i = 3; i < argc; i++)
                if (before[i - 3] >= 0 && counter(argv[i]) >= 0)
                    printf("sent %s %s %.0f\n", argv[1], argv[i], counter(argv[i]) - before[i - 3]);
        }
    }
    free(data);
    MPI_Finalize();
    return 0;
}
