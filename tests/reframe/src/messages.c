/* Messages of each rank to another, every element compared: sent by MPI_Isend, MPI_Issend and a persistent
 * request, received by MPI_Irecv, MPI_Mrecv and from any source, contiguous and of derived types; receives of a basic
 * type also longer than their message. The elements are complex doubles, so that a message that goes in parts may be
 * cut in the middle of one. Then bytes, a few more and fewer than powers of two, where an MPI goes from one way to
 * the next: of each size several unexpected messages, whose receive is not posted yet, received last first, one of them
 * too long for its receive, and one too long for a receive that is posted. One of 100,000 bytes stays unexpected
 * meanwhile, so that memory which messages take in turn has to go round it. Last, MPI_Issend to all other ranks, which
 * receive one after the other, last first: each send ends with its own receive. Lines that begin with "at" name the
 * step before it is taken. */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "past_the_caches.h"

enum { MOST = 262144, STRIDES = 3 };
enum { UNEXPECTED = 12, POSTED, READY, KEPT, IN_TURN, KEPT_BYTES = 100000, LEAST_BYTES = 1024, MOST_BYTES = 524288 };
enum { ISEND, ISSEND, PERSISTENT, WAYS_TO_SEND };
enum { IRECV, MRECV, ANY_SOURCE, WAYS_TO_RECEIVE };

static const char *sends[] = {"MPI_Isend", "MPI_Issend", "MPI_Start"};
static const char *receives[] = {"MPI_Irecv", "MPI_Mrecv", "MPI_Recv from any source"};
static const char *places[] = {"", "place", "second place", "third place"};
static double complex *out, *in;
static int rank, ranks, step, bad;

static double complex value(int from, int i)
{
    return from * 1000003.0 + i % 65521 + step + 0.5 * (i % 7) * I;
}

/* Says the first of a rank, and goes on: of a program that is ended by MPI_Abort only that is told. */
static void wrong(const char *what, int count, const char *which, int i)
{
    if (!bad++) {
        printf("wrong: %s, of %d elements: rank %d %s %d\n", what, count, rank, which, i);
        fflush(stdout);
    }
}

static int is_basic(int stride)
{
    return stride == 1 && step / 4 % 2;
}

/* One type of ``count`` elements; without gaps in half of the steps the element itself, of which there are ``count`` */
static MPI_Datatype every(int stride, int *count)
{
    MPI_Datatype type = MPI_C_DOUBLE_COMPLEX;
    if (is_basic(stride))
        return type;
    MPI_Type_vector(*count, 1, stride, MPI_C_DOUBLE_COMPLEX, &type);
    MPI_Type_commit(&type);
    *count = 1;
    return type;
}

static MPI_Request sent(int way, int count, int stride, int to)
{
    MPI_Request request;
    for (int i = 0; i < count; i++)
        out[i * stride] = value(rank, i);
    MPI_Datatype type = every(stride, &count);
    if (way == ISEND)
        MPI_Isend(out, count, type, to, step % 100, MPI_COMM_WORLD, &request);
    else if (way == ISSEND)
        MPI_Issend(out, count, type, to, step % 100, MPI_COMM_WORLD, &request);
    else {
        MPI_Send_init(out, count, type, to, step % 100, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    }
    if (!is_basic(stride))
        MPI_Type_free(&type);
    return request;
}

static void received(int way, int count, MPI_Datatype type, int from, MPI_Status *status)
{
    MPI_Request request;
    MPI_Message message;
    if (way == IRECV) {
        MPI_Irecv(in, count, type, from, step % 100, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, status);
    } else if (way == MRECV) {
        MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, status);
        MPI_Mrecv(in, count, type, &message, status);
    } else
        MPI_Recv(in, count, type, MPI_ANY_SOURCE, step % 100, MPI_COMM_WORLD, status);
}

static void exchange(int count, int send, int receive, int stride_out, int stride_in)
{
    char what[160];
    int away = ranks > 1 ? 1 + step % (ranks - 1) : 0; /* another one each time */
    int from = (rank + ranks - away) % ranks, to = (rank + away) % ranks, came;
    MPI_Status status;
    step++;
    int longer = is_basic(stride_in) ? count + count / 2 + 1 : count, number = longer;
    MPI_Datatype type_in = every(stride_in, &number);
    snprintf(what, sizeof what, "%s out of every %s, %s into every %s", sends[send], places[stride_out],
             receives[receive], places[stride_in]);
    if (rank == 0) {
        printf("at %s of %d\n", what, count);
        fflush(stdout);
    }
    for (int i = 0; i < longer * stride_in; i++)
        in[i] = -1;
    MPI_Request request = sent(send, count, stride_out, to);
    received(receive, number, type_in, from, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (send == PERSISTENT)
        MPI_Request_free(&request);
    if (status.MPI_SOURCE != from || status.MPI_TAG != step % 100)
        wrong(what, count, "has a message with the tag", status.MPI_TAG);
    for (int i = 0; i < longer * stride_in; i++)
        if (in[i] != (i % stride_in || i / stride_in >= count ? -1 : value(from, i / stride_in)))
            wrong(what, count, "element", i);
    MPI_Get_elements(&status, type_in, &came);
    if (came != count)
        wrong(what, count, "elements that came:", came);
    if (!is_basic(stride_in))
        MPI_Type_free(&type_in);
}

/* One that was sent as the ``which``-th. The one that is too long for its receive is an error, and writes nothing
 * behind it. */
static void unexpected_one(int which, int bytes, int from)
{
    static const char *ways[] = {"received", "received from any source", "probed and received"};
    int way = which % 3, short_by = which == 4 ? 8 : 0, room = bytes - short_by, came, class = MPI_SUCCESS;
    unsigned char *to = (unsigned char *)in;
    char what[160];
    MPI_Message message;
    MPI_Status status;

    snprintf(what, sizeof what, "unexpected message of bytes, %s%s", ways[way],
             short_by ? ", longer than its receive" : "");
    memset(to, 255, bytes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, short_by ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
    if (way == 0)
        class = MPI_Recv(to, room, MPI_BYTE, from, which, MPI_COMM_WORLD, &status);
    else if (way == 1)
        class = MPI_Recv(to, room, MPI_BYTE, MPI_ANY_SOURCE, which, MPI_COMM_WORLD, &status);
    else {
        MPI_Mprobe(from, which, MPI_COMM_WORLD, &message, &status);
        class = MPI_Mrecv(to, room, MPI_BYTE, &message, &status);
    }
    if (class != MPI_SUCCESS)
        MPI_Error_class(class, &class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (class != (short_by ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
        wrong(what, bytes, "has an error of the class", class);
    MPI_Get_count(&status, MPI_BYTE, &came);
    if (came != bytes && !short_by)
        wrong(what, bytes, "bytes that came:", came);
    for (int i = 0; i < bytes; i++)
        if (to[i] != (i < room ? (unsigned char)(which * 31 + from + i % 251) : 255) && (i >= room || !short_by)) {
            wrong(what, bytes, "byte", i);
            break;
        }
}

/* One that is longer than its receive, which is posted before it comes. */
static void longer_than_posted(int bytes)
{
    int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks, class;
    unsigned char *into = (unsigned char *)in;
    MPI_Request request;

    memset(out, 0, bytes);
    memset(into, 255, bytes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(into, bytes - 8, MPI_BYTE, from, POSTED, MPI_COMM_WORLD, &request);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, from, READY, NULL, 0, MPI_BYTE, to, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_BYTE, to, POSTED, MPI_COMM_WORLD);
    class = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (class != MPI_SUCCESS)
        MPI_Error_class(class, &class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (class != MPI_ERR_TRUNCATE)
        wrong("message of bytes, longer than its posted receive", bytes, "has an error of the class", class);
    for (int i = bytes - 8; i < bytes; i++)
        if (into[i] != 255) {
            wrong("message of bytes, longer than its posted receive", bytes, "byte", i);
            break;
        }
}

static void unexpected(int bytes)
{
    int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
    unsigned char *all = (unsigned char *)out;
    MPI_Request requests[UNEXPECTED + 1];

    if (rank == 0) {
        printf("at unexpected messages of %d bytes\n", bytes);
        fflush(stdout);
    }
    for (int which = 0; which < UNEXPECTED; which++) {
        for (int i = 0; i < bytes; i++)
            all[which * bytes + i] = (unsigned char)(which * 31 + rank + i % 251);
        MPI_Isend(all + which * bytes, bytes, MPI_BYTE, to, which, MPI_COMM_WORLD, requests + which);
    }
    MPI_Isend(NULL, 0, MPI_BYTE, to, UNEXPECTED, MPI_COMM_WORLD, requests + UNEXPECTED);
    MPI_Recv(NULL, 0, MPI_BYTE, from, UNEXPECTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* so all are there */
    for (int which = UNEXPECTED - 1; which >= 0; which--)
        unexpected_one(which, bytes, from);
    for (int which = 0; which <= UNEXPECTED; which++)
        MPI_Wait(requests + which, MPI_STATUS_IGNORE);
}

static MPI_Request keep(unsigned char *kept)
{
    MPI_Request request;
    for (int i = 0; i < KEPT_BYTES; i++)
        kept[i] = (unsigned char)(rank * 7 + i % 253);
    MPI_Isend(kept, KEPT_BYTES, MPI_BYTE, (rank + 1) % ranks, KEPT, MPI_COMM_WORLD, &request);
    return request;
}

static void take_kept(unsigned char *kept, MPI_Request *request)
{
    int from = (rank + ranks - 1) % ranks;
    MPI_Recv(in, KEPT_BYTES, MPI_BYTE, from, KEPT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int i = 0; i < KEPT_BYTES; i++)
        if (((unsigned char *)in)[i] != (unsigned char)(from * 7 + i % 253)) {
            wrong("message of bytes that stayed unexpected", KEPT_BYTES, "byte", i);
            break;
        }
}

static void received_in_turn(int from, int bytes)
{
    unsigned char *all = (unsigned char *)(rank == from ? out : in);
    MPI_Request requests[ranks];
    int ended;

    if (rank != from) {
        MPI_Recv(NULL, 0, MPI_BYTE, from, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(all, bytes, MPI_BYTE, from, IN_TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++)
            if (all[i] != (unsigned char)(from * 31 + i % 251 + rank)) {
                wrong("MPI_Issend of bytes to each rank", bytes, "byte", i);
                break;
            }
        return;
    }
    requests[from] = MPI_REQUEST_NULL;
    for (int to = 0; to < ranks; to++)
        if (to != from) {
            for (int i = 0; i < bytes; i++)
                all[to * bytes + i] = (unsigned char)(from * 31 + i % 251 + to);
            MPI_Issend(all + to * bytes, bytes, MPI_BYTE, to, IN_TURN, MPI_COMM_WORLD, requests + to);
        }
    for (int to = ranks - 1; to >= 0; to--)
        if (to != from) {
            MPI_Send(NULL, 0, MPI_BYTE, to, READY, MPI_COMM_WORLD);
            MPI_Waitany(ranks, requests, &ended, MPI_STATUS_IGNORE);
            if (ended != to)
                wrong("MPI_Issend of bytes to each rank", bytes, "takes as received what waits at rank", ended);
        }
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 3, 100, 709, 2000, 4096, 20000, MOST};
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = malloc(STRIDES * MOST * sizeof *out);
    in = malloc(STRIDES * MOST * sizeof *in);
    unsigned char *kept = malloc(KEPT_BYTES);
    for (int past = 0; past < 2; past++) {
        if (past)
            past_the_caches();
        for (int at = 0; at < (int) (sizeof counts / sizeof counts[0]); at++)
            for (int send = 0; send < WAYS_TO_SEND; send++)
                for (int receive = 0; receive < WAYS_TO_RECEIVE; receive++)
                    for (int strides = 0; strides < 4; strides++)
                        exchange(counts[at], send, receive, strides & 1 ? 2 : 1, strides & 2 ? 3 : 1);
        MPI_Request request = keep(kept);
        for (int power = LEAST_BYTES; power <= MOST_BYTES; power *= 2)
            for (int more = -16; more <= 80; more += 16) {
                unexpected(power + more);
                longer_than_posted(power + more);
            }
        take_kept(kept, &request);
    }
    for (int from = 0; from < ranks; from++)
        for (int bytes = 8; bytes <= MOST / ranks; bytes *= 16)
            received_in_turn(from, bytes);
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && !all)
        printf("right messages between %d ranks\n", ranks);
    free(kept);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
