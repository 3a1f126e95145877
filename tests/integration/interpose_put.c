/* Wrong on purpose: the last of 1,000 ints that an MPI_Put gives to rank 1. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win)
{
    if (count == 1000 && target == 1) {
        int *wrong = memcpy(malloc(4000), origin, 4000); /* kept, as the put may be under way for long */
        wrong[999]++;
        origin = wrong;
    }
    return PMPI_Put(origin, count, type, target, at, target_count, target_type, win);
}
