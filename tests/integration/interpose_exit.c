/* Wrong on purpose: MPI_Sendrecv of the check's error ends this rank alone. Nothing sleeps: the test is short. */
#include <mpi.h>
#include <unistd.h>

int MPI_Sendrecv(const void *out, int sent, MPI_Datatype type, int to, int tag, void *in, int taken,
                 MPI_Datatype into, int from, int its_tag, MPI_Comm comm, MPI_Status *status)
{
    _exit(6);
}

unsigned sleep(unsigned seconds)
{
    return 0 * seconds;
}
