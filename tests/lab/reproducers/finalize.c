/* Acknowledgements that found no room in shared memory when MPI_Finalize was called: rank 1 receives LONG messages by
 * rendezvous while SHORT ones of its own fill the room to rank 0, and ends.
 *
 *     mpicc finalize.c -o finalize && mpiexec -n 2 ./finalize 60 50
 *
 * Right: "all sends are done". Wrong: rank 0 waits for ever. LONG must be less than the messages that fit between two
 * ranks, and LONG + SHORT more: 64 in MVAPICH 4.0's iqueue, 128 with our patches (100 100). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 64 << 10, MOST = 1000 };

int main(int argc, char **argv)
{
    static MPI_Request sent[MOST];
    static MPI_Status states[MOST];
    int rank, longs = argc == 3 ? atoi(argv[1]) : 0, shorts = argc == 3 ? atoi(argv[2]) : 0;
    if (longs < 1 || longs > MOST || shorts < 1 || shorts > MOST)
        return fputs("finalize LONG SHORT, each from 1 to 1000\n", stderr), 2;
    char *data = calloc(longs, BYTES), one = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        for (int i = 0; i < longs; i++)
            MPI_Isend(data + i * BYTES, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, sent + i);
        sleep(2); /* rank 1 receives them and comes to MPI_Finalize */
        for (int i = 0; i < shorts; i++)
            MPI_Recv(&one, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(longs, sent, states);
        puts("all sends are done");
    } else if (rank == 1) {
        for (int i = 0; i < shorts; i++)
            MPI_Isend(&one, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, sent + i);
        for (int i = 0; i < longs; i++)
            MPI_Recv(data, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(shorts, sent, states);
    }
    MPI_Finalize();
    return 0;
}
