/* Wrong on purpose: the last of 709 complex doubles that MPI_Mrecv receives into every third place. */
#include <mpi.h>

int MPI_Mrecv(void *to, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    int error = PMPI_Mrecv(to, count, type, message, status), size;
    MPI_Aint lb, extent;
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lb, &extent);
    if (size == 709 * 16 && extent > 3 * 708 * 16)
        ((double *) to)[2 * 3 * 708] += 1;
    return error;
}
