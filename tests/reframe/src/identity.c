/* What MPI says it is, and which libraries this very process has mapped (/proc/self/maps):
 * the second cannot be wrong about an LD_LIBRARY_PATH that picks another library. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void print_libraries(int rank)
{
    char line[4096], last[4096] = "";
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (!path || !strstr(path, ".so"))
            continue;
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(path, last) != 0)
            printf("rank %d maps %s\n", rank, path);
        strcpy(last, path);
    }
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, length;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        printf("library version begins\n%s\nlibrary version ends\n", version);
    print_libraries(rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD); /* so that every rank has talked to another one */
    MPI_Finalize();
    return 0;
}
