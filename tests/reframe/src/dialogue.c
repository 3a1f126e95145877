/* Two ranks in turns, by MPI_Send and MPI_Recv from that rank, as programs do that wait for each other: an MPI may take
 * such a message without a request, past those that are posted or have come before, which must not be. Of each size:
 * one message and its answer; two, received last first; one that a posted receive awaits, and the next one; one of
 * another communicator first; one too long for its receive; one probed for, one from anywhere, and one that a matched
 * probe took and that is received last, each with another one behind it. All bytes are compared, and what the status
 * says. Lines that begin with "at" name the step before it is taken. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TURNS /* where messages are slow, fewer */
#define TURNS 200
#endif
enum { MOST = 1 << 20, LONGER = 64, TAG = 7, OTHER, ANSWER, GO };

static MPI_Comm world, twin;
static int rank, other, turn, bytes, bad;
static unsigned char *in, *out[2];

static unsigned char value(int from, int which, int i)
{
    return (unsigned char) (from * 101 + which * 53 + turn * 7 + i % 251);
}

static void wrong(const char *what, const char *which, int number)
{
    if (!bad++) {
        printf("wrong: %s, of %d bytes: rank %d %s %d\n", what, bytes, rank, which, number);
        fflush(stdout);
    }
}

static unsigned char *filled(int which)
{
    for (int i = 0; i < bytes; i++)
        out[which][i] = value(rank, which, i);
    return out[which];
}

static void send(int which, int tag, MPI_Comm comm)
{
    MPI_Send(filled(which), bytes, MPI_BYTE, other, tag, comm);
}

/* Says that the other rank may send, and what came before it has been taken */
static void go(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, other, GO, world);
}

static void await_go(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, other, GO, world, MPI_STATUS_IGNORE);
}

static void compare(const char *what, const unsigned char *came, int which, int tag, const MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != bytes)
        wrong(what, "bytes that came:", count);
    if (status->MPI_SOURCE != other || status->MPI_TAG != tag)
        wrong(what, "has a message with the tag", status->MPI_TAG);
    for (int i = 0; i < bytes + LONGER; i++)
        if (came[i] != (i < bytes ? value(other, which, i) : 255)) {
            wrong(what, "byte", i);
            break;
        }
}

static void receive(const char *what, int which, int tag, MPI_Comm comm)
{
    MPI_Status status;
    memset(in, 255, bytes + LONGER);
    /* longer than the message in every other turn, and of any tag in some where there is no other one */
    MPI_Recv(in, bytes + (turn % 2) * LONGER, MPI_BYTE, other, tag == ANSWER && turn % 5 == 0 ? MPI_ANY_TAG : tag, comm,
             &status);
    compare(what, in, which, tag, &status);
}

static void answered(void)
{
    if (rank == 0) {
        send(0, TAG, world);
        receive("an answer", 1, ANSWER, world);
    } else {
        receive("a message", 0, TAG, world);
        send(1, ANSWER, world);
    }
}

/* The first is sent without waiting for its receive, which comes later. */
static void out_of_order(MPI_Comm first)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(filled(0), bytes, MPI_BYTE, other, first == world ? OTHER : TAG, first, &request);
        send(1, TAG, world);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        receive("a message behind another one", 1, TAG, world);
        receive("a message that came too early", 0, first == world ? OTHER : TAG, first);
    }
}

static void posted_before(void)
{
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        await_go();
        send(0, TAG, world);
        send(1, TAG, world);
    } else {
        unsigned char *posted = malloc(bytes + LONGER);
        memset(posted, 255, bytes + LONGER);
        MPI_Irecv(posted, bytes, MPI_BYTE, other, TAG, world, &request);
        go();
        receive("a message behind one that is awaited", 1, TAG, world);
        MPI_Wait(&request, &status);
        compare("a message that is awaited", posted, 0, TAG, &status);
        free(posted);
    }
}

static void too_long(void)
{
    int class;
    if (rank == 0) {
        send(0, TAG, world);
        return;
    }
    memset(in, 255, bytes + LONGER);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    class = MPI_Recv(in, bytes - 1, MPI_BYTE, other, TAG, world, MPI_STATUS_IGNORE);
    if (class != MPI_SUCCESS)
        MPI_Error_class(class, &class);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    if (class != MPI_ERR_TRUNCATE)
        wrong("a message longer than its receive", "has an error of the class", class);
    if (in[bytes - 1] != 255)
        wrong("a message longer than its receive", "byte", bytes - 1);
}

static void seen_before(int by_probe)
{
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Isend(filled(0), bytes, MPI_BYTE, other, TAG, world, &request);
        send(1, TAG, world);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    if (by_probe) {
        MPI_Probe(other, TAG, world, &status);
        receive("a message that was probed for", 0, TAG, world);
    } else {
        memset(in, 255, bytes + LONGER);
        MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, world, &status);
        compare("a message from anywhere", in, 0, TAG, &status);
    }
    receive("the message behind it", 1, TAG, world);
}

/* A synchronous send ends with its receive, which a matched probe is not. */
static void taken_before(void)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int ended;
    if (rank == 0) {
        MPI_Issend(filled(0), bytes, MPI_BYTE, other, TAG, world, &request);
        MPI_Ssend(filled(1), bytes, MPI_BYTE, other, TAG, world);
        MPI_Request_get_status(request, &ended, MPI_STATUS_IGNORE);
        if (ended)
            wrong("a message that a matched probe took", "takes as received what waits at rank", other);
        go();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Mprobe(other, TAG, world, &message, &status);
    receive("a message behind one that a matched probe took", 1, TAG, world);
    await_go();
    memset(in, 255, bytes + LONGER);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status);
    compare("a message that a matched probe took", in, 0, TAG, &status);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 8, 256, 257, 960, 1024, 2048, 5000, 16384, 65536, 300000, MOST};
    int all, ranks;
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    MPI_Comm_dup(world, &twin);
    if (ranks != 2)
        MPI_Abort(world, 2);
    other = 1 - rank;
    in = malloc(MOST + LONGER);
    out[0] = malloc(MOST);
    out[1] = malloc(MOST);
    for (int at = 0; at < (int) (sizeof sizes / sizeof sizes[0]); at++) {
        bytes = sizes[at];
        if (rank == 0) {
            printf("at messages of %d bytes\n", bytes);
            fflush(stdout);
        }
        for (turn = 0; turn < (bytes > 5000 ? TURNS / 10 : TURNS); turn++) {
            answered();
            out_of_order(world);
            answered();
            posted_before();
            out_of_order(twin);
            too_long();
            seen_before(turn % 2);
            taken_before();
        }
    }
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, world);
    if (rank == 0 && !all)
        printf("right dialogue\n");
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
