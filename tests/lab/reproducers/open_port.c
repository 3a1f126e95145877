/* MPI_Open_port into MPI_MAX_PORT_NAME bytes, as the standard has it, and with MPICH's hint for more.
 *
 *     mpicc open_port.c -o open_port && mpiexec -n 1 ./open_port
 *
 * Right: both lines say a length. Status 1: a port could not be opened. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int opened(const char *what, MPI_Info info)
{
    char port[4096] = "", said[MPI_MAX_ERROR_STRING];
    int length, error = MPI_Open_port(info, port);
    if (error) {
        MPI_Error_string(error, said, &length);
        printf("%s: %s\n", what, said);
        return 1;
    }
    printf("%s: a name of %d characters, of %d allowed\n", what, (int) strlen(port),
           MPI_MAX_PORT_NAME);
    return MPI_Close_port(port) != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int wrong;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "port_name_size", "4096");
    wrong = opened("plain", MPI_INFO_NULL);
    wrong |= opened("port_name_size=4096", info);
    MPI_Info_free(&info);
    MPI_Finalize();
    return wrong;
}
