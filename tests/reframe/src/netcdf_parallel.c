/* netCDF from C: a file of netCDF-4 (through HDF5) and one of its CDF-5 format (through PnetCDF), of
   which ranks write slabs of one dimension collectively and read slabs of another; then rank 0 reads
   them without MPI. */
#include "parallel_grid.h"
#include <netcdf.h>
#include <netcdf_par.h>

static void convert(struct part p, size_t *start, size_t *count)
{
    for (int i = 0; i < 3; i++) {
        start[i] = p.start[i];
        count[i] = p.count[i];
    }
}

static double writing(const char *name, int format, struct part p)
{
    int file, variable, dimensions[3];
    size_t start[3], count[3];
    int32_t *data = numbers_of(p);
    convert(p, start, count);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = -MPI_Wtime();
    must(!nc_create_par(name, NC_CLOBBER | format, MPI_COMM_WORLD, MPI_INFO_NULL, &file),
         "nc_create_par");
    nc_def_dim(file, "a", A, &dimensions[0]);
    nc_def_dim(file, "b", B, &dimensions[1]);
    nc_def_dim(file, "c", C, &dimensions[2]);
    must(!nc_def_var(file, "grid", NC_INT, 3, dimensions, &variable), "nc_def_var");
    must(!nc_enddef(file), "nc_enddef");
    must(!nc_var_par_access(file, variable, NC_COLLECTIVE), "nc_var_par_access");
    must(!nc_put_vara_int(file, variable, start, count, data), "nc_put_vara_int");
    must(!nc_close(file), "nc_close");
    took += MPI_Wtime();
    free(data);
    return took;
}

static long reading(const char *name, struct part p, int alone)
{
    int file, variable;
    size_t start[3], count[3];
    convert(p, start, count);
    int32_t *data = calloc(count[0] * count[1] * count[2] + 1, sizeof *data);
    must(!(alone ? nc_open(name, NC_NOWRITE, &file)
                 : nc_open_par(name, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file)),
         "nc_open");
    must(!nc_inq_varid(file, "grid", &variable), "nc_inq_varid");
    if (!alone)
        must(!nc_var_par_access(file, variable, NC_COLLECTIVE), "nc_var_par_access");
    must(!nc_get_vara_int(file, variable, start, count, data), "nc_get_vara_int");
    nc_close(file);
    long wrong = wrong_in(p, data);
    free(data);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static const char *names[2] = {"netcdf4", "cdf5"};
    static const int formats[2] = {NC_NETCDF4, NC_64BIT_DATA};
    for (int i = 0; i < 2; i++) {
        char file[32];
        snprintf(file, sizeof file, "%s.nc", names[i]);
        double took = writing(file, formats[i], part_of(0, rank, ranks));
        long wrong = over_all(reading(file, part_of(2, rank, ranks), 0));
        if (rank == 0)
            printf("%s by %d ranks: %d numbers, wrong by other ranks %ld, without MPI %ld; %.4f s\n",
                   names[i], ranks, NUMBERS, wrong, reading(file, part_of(0, 0, 1), 1), took);
    }
    MPI_Finalize();
    return 0;
}
