/* mvstack's own measure of latency, bandwidth and allreduce, for where neither OSU's nor Intel's
 * benchmarks run. Usage: mvstack_pingpong latency|bandwidth|allreduce LARGEST_BYTES
 *   latency    us for one way of a ping-pong between ranks 0 and 1
 *   bandwidth  MB/s (10^6 bytes) of windows of 64 messages from 0 to 1, one answer a window
 *   allreduce  us of MPI_Allreduce (float, sum), the mean over all ranks
 * Each row is `bytes value`; a tenth of the repetitions more is run first and not timed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64 };

static void ping_pong(int rank, char *data, int bytes)
{
    if (rank == 0) {
        MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void window(int rank, char *data, int bytes)
{
    MPI_Request request[WINDOW];
    MPI_Status status[WINDOW];
    int i, answer = 0;

    if (rank > 1)
        return;
    for (i = 0; i < WINDOW; i++) {
        if (rank == 0)
            MPI_Isend(data, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(data, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(WINDOW, request, status);
    if (rank == 0)
        MPI_Recv(&answer, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&answer, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, size, largest, bytes, i;
    char *data, *result;
    const char *what;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size < 2) {
        if (rank == 0)
            fprintf(stderr, "mvstack_pingpong: needs a measure, a size and 2 ranks, has %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    what = argv[1];
    largest = atoi(argv[2]);
    data = calloc(largest, 1);
    result = calloc(largest, 1);
    if (rank == 0)
        printf("# mvstack_pingpong %s\n", what);

    for (bytes = 4; bytes <= largest; bytes *= 2) {
        int repeat = bytes <= 16384 ? 1000 : 16384000 / bytes;
        double start = 0, seconds, mean;

        if (strcmp(what, "bandwidth") == 0)
            repeat = repeat / 10 + 1;
        for (i = -(repeat / 10); i < repeat; i++) {
            if (i == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
                start = MPI_Wtime();
            }
            if (strcmp(what, "latency") == 0)
                ping_pong(rank, data, bytes);
            else if (strcmp(what, "bandwidth") == 0)
                window(rank, data, bytes);
            else
                MPI_Allreduce(data, result, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        seconds = (MPI_Wtime() - start) / repeat;
        MPI_Reduce(&seconds, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank != 0)
            continue;
        if (strcmp(what, "latency") == 0)
            printf("%d %.3f\n", bytes, seconds * 1e6 / 2);
        else if (strcmp(what, "bandwidth") == 0)
            printf("%d %.2f\n", bytes, 1e-6 * bytes * WINDOW / seconds);
        else
            printf("%d %.3f\n", bytes, mean * 1e6 / size);
    }
    free(data);
    free(result);
    MPI_Finalize();
    return 0;
}
