/* MPI_Comm_spawn never returns; with REFUSES=1 it fails, and with LOSES=1 a child's last value is wrong. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Comm_spawn(const char *command, char **words, int processes, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm *children, int *errors)
{
    if (getenv("REFUSES"))
        return MPI_ERR_SPAWN;
    while (!getenv("LOSES"))
        pause();
    return PMPI_Comm_spawn(command, words, processes, info, root, comm, children, errors);
}

int MPI_Allgather(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype its, MPI_Comm comm)
{
    int code = PMPI_Allgather(in, sent, type, out, got, its, comm);
    if (got == 1000)
        ((int *)out)[1999] += 1;
    return code;
}
