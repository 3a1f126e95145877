/* PnetCDF: ranks write slabs of one dimension collectively, read slabs of another; then rank 0 reads
   the bytes of the variable, which the format keeps with the most significant byte first. */
#include "parallel_grid.h"
#include <pnetcdf.h>

static void convert(struct part p, MPI_Offset *start, MPI_Offset *count)
{
    for (int i = 0; i < 3; i++) {
        start[i] = p.start[i];
        count[i] = p.count[i];
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, file, variable, dimensions[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Offset start[3], count[3], offset;
    const char *name = "grid.nc";

    struct part p = part_of(0, rank, ranks);
    int32_t *data = numbers_of(p);
    convert(p, start, count);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = -MPI_Wtime();
    must(!ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file),
         "ncmpi_create");
    ncmpi_def_dim(file, "a", A, &dimensions[0]);
    ncmpi_def_dim(file, "b", B, &dimensions[1]);
    ncmpi_def_dim(file, "c", C, &dimensions[2]);
    must(!ncmpi_def_var(file, "grid", NC_INT, 3, dimensions, &variable), "ncmpi_def_var");
    must(!ncmpi_enddef(file), "ncmpi_enddef");
    must(!ncmpi_put_vara_int_all(file, variable, start, count, data), "ncmpi_put_vara_int_all");
    must(!ncmpi_close(file), "ncmpi_close");
    took += MPI_Wtime();
    free(data);

    p = part_of(2, rank, ranks);
    convert(p, start, count);
    data = calloc(count[0] * count[1] * count[2] + 1, sizeof *data);
    must(!ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file), "ncmpi_open");
    must(!ncmpi_inq_varid(file, "grid", &variable), "ncmpi_inq_varid");
    must(!ncmpi_get_vara_int_all(file, variable, start, count, data), "ncmpi_get_vara_int_all");
    ncmpi_inq_varoffset(file, variable, &offset);
    ncmpi_close(file);
    long wrong = over_all(wrong_in(p, data));
    free(data);
    if (rank == 0)
        printf("PnetCDF by %d ranks: %d numbers, wrong by other ranks %ld, bytes in the file %ld; %.4f s\n",
               ranks, NUMBERS, wrong, wrong_bytes(name, offset, 1), took);
    MPI_Finalize();
    return 0;
}
