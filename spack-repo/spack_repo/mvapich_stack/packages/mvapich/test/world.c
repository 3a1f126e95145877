/* Started as two ranks by the recipe's stand-alone test. argv[1]: how many ranks the world must
   have; a rank that was started on its own sees a world of one and fails here. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, rank = -1, size = 0, sum = 0;
    int wanted = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != wanted) {
        fprintf(stderr, "world of %d ranks, asked for %d\n", size, wanted);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) {
        fprintf(stderr, "sum of ranks is %d\n", sum);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    if (rank == 0) {
        MPI_Get_library_version(text, &length);
        printf("world of %d\n%s\n", size, text);
    }
    MPI_Finalize();
    return 0;
}
