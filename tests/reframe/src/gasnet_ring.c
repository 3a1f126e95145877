/* GASNet-EX and MPI in one program: puts and gets round the ring, active messages to one process, sums by MPI. */
#include <gasnetex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4099 /* numbers of each put and get: no power of two */
#define MESSAGES 100
#define PUTS 1000
#define COUNT (GEX_AM_INDEX_BASE + 1)

static volatile long counted, added; /* at process 0 */

/* Two processes' messages run one after the other: nobody else is in gasnet_AMPoll meanwhile. */
static void count(gex_Token_t token, gex_AM_Arg_t number) {
    (void)token;
    counted++;
    added += number;
}

static void must(int status, const char *what) {
    if (status != GASNET_OK) {
        fprintf(stderr, "%s: %s\n", what, gasnet_ErrorName(status));
        exit(1);
    }
}

static void barrier(gex_TM_t team) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

int main(int argc, char **argv) {
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    gex_Segment_t segment;
    gex_AM_Entry_t handler = {.gex_index = COUNT,
                              .gex_fnptr = (gex_AM_Fn_t)count,
                              .gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST,
                              .gex_nargs = 1};
    must(gex_Client_Init(&client, &endpoint, &team, "ring", &argc, &argv, 0), "gex_Client_Init");
    must(gex_Segment_Attach(&segment, team, 1 << 20), "gex_Segment_Attach");
    must(gex_EP_RegisterHandlers(endpoint, &handler, 1), "gex_EP_RegisterHandlers");
    int me = gex_TM_QueryRank(team), n = gex_TM_QuerySize(team), rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (me + 1) % n, before = (me + n - 1) % n;

    long own[BLOCK], got[BLOCK], wrong[4] = {0}, all[4];
    long *there, *mine = gex_Segment_QueryAddr(segment);
    void *address;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, next, &address, NULL, NULL, 0));
    there = address;
    for (int i = 0; i < BLOCK; i++) {
        own[i] = 1000000L * me + i;
        mine[i] = -1;
    }
    barrier(team);
    gex_RMA_PutBlocking(team, next, there, own, sizeof own, 0);
    barrier(team);
    for (int i = 0; i < BLOCK; i++)
        wrong[0] += mine[i] != 1000000L * before + i;
    gex_RMA_GetBlocking(team, got, next, there, sizeof got, 0);
    for (int i = 0; i < BLOCK; i++)
        wrong[1] += got[i] != 1000000L * me + i;

    for (int i = 0; i < MESSAGES; i++)
        must(gex_AM_RequestShort(team, 0, COUNT, 0, me * MESSAGES + i), "gex_AM_RequestShort");
    long messages = (long)n * MESSAGES;
    if (me == 0)
        GASNET_BLOCKUNTIL(counted == messages);
    barrier(team);
    long numbers = 0, sum = messages * (messages - 1) / 2;
    for (int i = 0; i < MESSAGES; i++)
        numbers += me * MESSAGES + i;
    MPI_Allreduce(MPI_IN_PLACE, &numbers, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong[2] = me == 0 && added != sum;
    wrong[3] = numbers != sum || rank != me;
    MPI_Barrier(MPI_COMM_WORLD); /* MPI and GASNet take turns */

    double start = MPI_Wtime();
    for (int i = 0; i < PUTS; i++)
        gex_RMA_PutBlocking(team, next, there, own, sizeof *own, 0);
    double put = (MPI_Wtime() - start) / PUTS;
    barrier(team);
    MPI_Reduce(wrong, all, 4, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0) {
        printf("gasnet %d processes, %d ranks, %d numbers, %ld messages\n", n, size, BLOCK, counted);
        printf("wrong: put %ld, get %ld, messages %ld, MPI %ld\n", all[0], all[1], all[2], all[3]);
        printf("put %.3f us\n", put * 1e6);
        fflush(stdout);
    }
    barrier(team);
    gasnet_exit(0);
    return 0;
}
