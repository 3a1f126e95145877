/* Windows of 64 MiB where a file of shared memory may have 1 MiB.
 *
 *     mpicc window_without_memory.c -o window_without_memory && mpiexec -n 2 ./window_without_memory
 *
 * Right: MPI_Win_allocate has memory or an error, MPI_Win_allocate_shared an error. Wrong: success, and NULL. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    int rank, error;
    char *base = NULL;
    MPI_Win win;
    struct rlimit limit = {1 << 20, 1 << 20};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    error = MPI_Win_allocate(64 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    printf("rank %d, MPI_Win_allocate: %s\n", rank, error ? "an error" : base ? "memory" : "success, and NULL");
    if (!error && base) { /* the other rank puts into it */
        char one = 1;
        base[1] = 0;
        MPI_Win_fence(0, win);
        MPI_Put(&one, 1, MPI_CHAR, 1 - rank, 1, 1, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        printf("rank %d, MPI_Put: %s\n", rank, base[1] == 1 ? "right" : "wrong");
        MPI_Win_free(&win);
    }
    base = NULL;
    error = MPI_Win_allocate_shared(64 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    printf("rank %d, MPI_Win_allocate_shared: %s\n", rank, error ? "an error" : "success");
    MPI_Abort(MPI_COMM_WORLD, 0); /* the failed window is not to be freed */
    return 0;
}
