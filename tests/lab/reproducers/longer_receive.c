/* A receive that is longer than its message, and several large messages at once.
 *
 *     mpicc longer_receive.c -o longer_receive
 *     mpiexec -n 2 -env MPIR_CVAR_CH4_IPC_RNDV_PROTOCOL coop ./longer_receive
 *
 * Right: three lines that begin with "0 bytes wrong". MVAPICH 4.0 over ch4:ofi gets half of the first message wrong
 * with coop or auto, and ends by signal 11 in the second part with these and with rput. With rget, its default, it is
 * right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, MESSAGES = 8 };

static unsigned char expected(int message, int at)
{
    return at * 7 + (at >> 8) + message;
}

static int wrong(const unsigned char *got, int message)
{
    int count = 0;
    for (int i = 0; i < BYTES; i++)
        count += got[i] != expected(message, i);
    return count;
}

int main(int argc, char **argv)
{
    int rank, count = 0;
    unsigned char *data[2 * MESSAGES];
    MPI_Request request[2 * MESSAGES];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int m = 0; m < 2 * MESSAGES; m++) {
        data[m] = malloc(2 * BYTES);
        for (int i = 0; i < BYTES; i++)
            data[m][i] = expected(m, i);
    }
    if (rank == 0) {
        MPI_Send(data[0], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        memset(data[0], 0, 2 * BYTES);
        MPI_Recv(data[0], 2 * BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%d bytes wrong of a message that is shorter than its receive\n", wrong(data[0], 0));
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) { /* both ways, and to itself */
        for (int m = 0; m < MESSAGES; m++) {
            int other = m % 2 ? rank : 1 - rank;
            memset(data[m], 0, BYTES);
            MPI_Irecv(data[m], BYTES, MPI_BYTE, other, m, MPI_COMM_WORLD, &request[2 * m]);
            MPI_Isend(data[MESSAGES + m], BYTES, MPI_BYTE, other, m, MPI_COMM_WORLD,
                      &request[2 * m + 1]);
        }
        MPI_Waitall(2 * MESSAGES, request, MPI_STATUSES_IGNORE);
        for (int m = 0; m < MESSAGES; m++)
            count += wrong(data[m], MESSAGES + m);
        printf("%d bytes wrong of %d messages\n", count, MESSAGES);
    }
    MPI_Finalize();
    return 0;
}
