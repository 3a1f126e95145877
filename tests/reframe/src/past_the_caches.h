/* Has this rank write what it shows to others past the caches from now on, as MVAPICH 4.0 with our patches does by
 * itself between cores that share none. Another MPI has no such variable. MPI_T_finalize is not called: MVAPICH 4.0 as
 * published frees what its collectives read. */
#include <mpi.h>

static void past_the_caches(void)
{
    int provided, index, count, below = 1 << 30; /* GB/s */
    MPI_T_cvar_handle handle;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    if (MPI_T_cvar_get_index("MPIR_CVAR_CH4_SHM_POSIX_STREAM_BELOW", &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
        MPI_T_cvar_write(handle, &below);
        MPI_T_cvar_handle_free(&handle);
    }
}
