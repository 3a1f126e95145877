/* Started as four ranks by the recipe's stand-alone test. argv[1]: how many ranks the world must have.
   Each rank in turn receives from all others by MPI_ANY_SOURCE: messages that are waited for, that
   are asked for by MPI_Probe, and that came before anybody waited; of sizes that go through memory,
   at once, and by rendezvous. A message must be whole, of the rank that its status says, and in the
   order in which that rank sent it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20, LONGEST = 1 << 18 }; /* ints: 1 MiB */
static const int LENGTHS[] = {1, 100, 5000, LONGEST};
enum { KINDS = sizeof LENGTHS / sizeof *LENGTHS };

static void stop(const char *why, int source, int round)
{
    fprintf(stderr, "any_source: %s (from rank %d, message %d)\n", why, source, round);
    MPI_Abort(MPI_COMM_WORLD, 5);
}

static void fill(int *message, int length, int rank, int round)
{
    for (int i = 0; i < length; i++)
        message[i] = rank * 1000003 + round * 1009 + i;
}

static void check(const int *message, MPI_Status *status, int length, int *next)
{
    int source = status->MPI_SOURCE, count = 0;
    MPI_Get_count(status, MPI_INT, &count);
    if (count != length)
        stop("a message of another length", source, next[source]);
    for (int i = 0; i < length; i++)
        if (message[i] != source * 1000003 + next[source] * 1009 + i)
            stop("a message of other contents, or out of order", source, next[source]);
    next[source]++;
}

static void receive(int size, int kind, int *message, int *other)
{
    int left = (size - 1) * ROUNDS, *next = calloc(size, sizeof *next), length = LENGTHS[kind];
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    if (kind % 2) /* let them come unexpected */
        for (int i = 0; i < 1000; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){0}, &status);
    for (int turn = 0; left > 0; turn++) {
        if (turn % 3 == 0 && left > 1) {
            MPI_Irecv(message, length, MPI_INT, MPI_ANY_SOURCE, kind, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(other, length, MPI_INT, MPI_ANY_SOURCE, kind, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, statuses);
            check(message, &statuses[0], length, next);
            check(other, &statuses[1], length, next);
            left -= 2;
        } else if (turn % 3 == 1) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Recv(message, length, MPI_INT, status.MPI_SOURCE, kind, MPI_COMM_WORLD, &status);
            check(message, &status, length, next);
            left--;
        } else {
            MPI_Recv(message, length, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG != kind)
                stop("a message of another tag", status.MPI_SOURCE, status.MPI_TAG);
            check(message, &status, length, next);
            left--;
        }
    }
    free(next);
}

int main(int argc, char **argv)
{
    int rank, size, wanted = argc > 1 ? atoi(argv[1]) : 1;
    int *message = malloc(LONGEST * sizeof *message), *other = malloc(LONGEST * sizeof *other);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != wanted)
        stop("the world is of another size", rank, size);
    for (int root = 0; root < size; root++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (rank == root)
                receive(size, kind, message, other);
            else
                for (int round = 0; round < ROUNDS; round++) {
                    fill(message, LENGTHS[kind], rank, round);
                    MPI_Send(message, LENGTHS[kind], MPI_INT, root, kind, MPI_COMM_WORLD);
                }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    if (rank == 0)
        printf("any source of %d\n", size);
    MPI_Finalize();
    free(message);
    free(other);
    return 0;
}
