/* Each rank writes its interleaved blocks of one file in one collective call, then reads back the
 * blocks of its neighbour and compares every byte. Byte i of the file is (7 i + i / 251) mod 256. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 4099, BLOCKS = 64 }; /* bytes, a prime so that nothing is aligned; blocks a rank */

static unsigned char byte_at(long i)
{
    return (unsigned char)(7 * i + i / 251);
}

/* The view of `owner`: every size-th block of the file. */
static void set_view(MPI_File file, int owner, int size)
{
    MPI_Datatype view;

    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)owner * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL);
    MPI_Type_free(&view);
}

static long offset_of(int owner, int size, long i)
{
    return ((i / BLOCK) * size + owner) * BLOCK + i % BLOCK;
}

static void must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    printf("MPI-IO %s failed: %s\n", what, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    const long bytes = (long)BLOCK * BLOCKS;
    unsigned char *data = malloc(bytes);
    long i, wrong = 0, all_wrong;
    int rank, size, next, count;
    MPI_File file;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;

    for (i = 0; i < bytes; i++)
        data[i] = byte_at(offset_of(rank, size, i));
    must(MPI_File_open(MPI_COMM_WORLD, "mpi_io.data", MPI_MODE_CREATE | MPI_MODE_RDWR,
                       MPI_INFO_NULL, &file), "open");
    set_view(file, rank, size);
    must(MPI_File_write_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status), "collective write");
    must(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);

    for (i = 0; i < bytes; i++)
        data[i] = 0;
    set_view(file, next, size);
    must(MPI_File_read_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status), "collective read");
    MPI_Get_count(&status, MPI_BYTE, &count);
    for (i = 0; i < bytes; i++)
        wrong += data[i] != byte_at(offset_of(next, size, i));
    wrong += bytes - count;
    must(MPI_File_close(&file), "close");

    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("MPI-IO %ld bytes by %d ranks, %ld wrong\n", bytes * size, size, all_wrong);
    free(data);
    MPI_Finalize();
    return 0;
}
