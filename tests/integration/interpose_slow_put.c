/* Slow on purpose: each MPI_Put takes 100 microseconds more. */
#include <mpi.h>
#include <unistd.h>

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win)
{
    usleep(100);
    return PMPI_Put(origin, count, type, target, at, target_count, target_type, win);
}
