/* Wrong on purpose: on the host that SLOW names time goes twice as fast, as if its memory had half the speed. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double MPI_Wtime(void)
{
    char host[256] = "";
    const char *slow = getenv("SLOW");
    gethostname(host, sizeof host - 1);
    return PMPI_Wtime() * (slow && strcmp(slow, host) == 0 ? 2 : 1);
}
