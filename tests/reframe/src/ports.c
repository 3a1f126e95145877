/* Two halves of the ranks meet twice through a port, as two programs of a coupled simulation do, and exchange
 * values. The name of the port goes from one to the other within MPI_MAX_PORT_NAME characters. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 2, WORDS = 1000 };

static int me, ranks, half, wrong;

static void expect(const char *what, int found, int expected)
{
    if (found != expected && !wrong++)
        printf("wrong %s: rank %d found %d expected %d\n", what, me, found, expected);
}

/* What each rank of the other half sends is its rank in the world, and its place in the message. */
static void exchange(MPI_Comm other, int round)
{
    int size, own[WORDS], *all;
    MPI_Comm both;

    MPI_Comm_remote_size(other, &size);
    expect("size of the other half", size, ranks / 2);
    for (int i = 0; i < WORDS; i++)
        own[i] = 10000 * me + i + round;
    all = malloc(sizeof(own) * size);
    MPI_Allgather(own, WORDS, MPI_INT, all, WORDS, MPI_INT, other);
    for (int i = 0; i < WORDS * size; i++) {
        int from = i / WORDS + (half ? 0 : ranks / 2);
        expect("value of the other half", all[i], 10000 * from + i % WORDS + round);
    }
    free(all);
    MPI_Intercomm_merge(other, half, &both);
    MPI_Comm_size(both, &size);
    expect("size of both halves", size, ranks);
    MPI_Comm_free(&both);
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "", said[MPI_MAX_ERROR_STRING];
    int error = 0, length, all;
    MPI_Comm mine, other;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    half = me >= ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, half, me, &mine);
    if (me == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if ((error = MPI_Open_port(MPI_INFO_NULL, port))) {
            MPI_Error_string(error, said, &length);
            printf("no port: %s\n", said);
        }
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, ranks / 2, 0, MPI_COMM_WORLD);
    } else if (me == ranks / 2) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS && !error; round++) {
        if (half)
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &other);
        else
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &other);
        exchange(other, round);
        MPI_Comm_disconnect(&other);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0 && !error) {
        MPI_Close_port(port);
        if (!all)
            printf("met %d times, %d ranks\n", ROUNDS, ranks);
    }
    MPI_Comm_free(&mine);
    MPI_Finalize();
    return 0;
}
