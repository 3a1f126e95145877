/* HDF5: ranks write slabs of one dimension collectively, read slabs of another; then rank 0 reads
   the file without MPI, and its bytes without HDF5. Once contiguous, once in chunks with checksums. */
#include "parallel_grid.h"
#include <hdf5.h>

static const hsize_t WHOLE[3] = {A, B, C};

/* The selections in memory and in the file of a part. */
static void selections(struct part p, hid_t *memory, hid_t *file)
{
    hsize_t start[3], count[3];
    for (int i = 0; i < 3; i++) {
        start[i] = p.start[i];
        count[i] = p.count[i];
    }
    *memory = H5Screate_simple(3, count, NULL);
    *file = H5Screate_simple(3, WHOLE, NULL);
    must(H5Sselect_hyperslab(*file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0, "H5Sselect");
}

static void collective_file(hid_t *access, hid_t *transfer)
{
    *access = H5Pcreate(H5P_FILE_ACCESS);
    *transfer = H5Pcreate(H5P_DATASET_XFER);
    must(H5Pset_fapl_mpio(*access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
    must(H5Pset_dxpl_mpio(*transfer, H5FD_MPIO_COLLECTIVE) >= 0, "H5Pset_dxpl_mpio");
}

static double writing(const char *name, struct part p, int chunked)
{
    hid_t access, transfer, memory, space;
    collective_file(&access, &transfer);
    selections(p, &memory, &space);
    int32_t *data = numbers_of(p);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[3] = {8, 8, 100};
    if (chunked) {
        H5Pset_chunk(create, 3, chunk);
        must(H5Pset_fletcher32(create) >= 0, "H5Pset_fletcher32");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double took = -MPI_Wtime();
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    must(file >= 0, "H5Fcreate");
    hid_t set = H5Dcreate2(file, "grid", H5T_STD_I32LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    must(H5Dwrite(set, H5T_NATIVE_INT32, memory, space, transfer, data) >= 0, "H5Dwrite");
    H5Dclose(set);
    must(H5Fclose(file) >= 0, "H5Fclose");
    took += MPI_Wtime();
    free(data);
    H5Pclose(create);
    H5Pclose(access);
    H5Pclose(transfer);
    H5Sclose(memory);
    H5Sclose(space);
    return took;
}

/* How many numbers of a part are wrong; by MPI-IO on all ranks or, `alone`, by plain files. */
static long reading(const char *name, struct part p, int alone, long *offset)
{
    hid_t access = H5P_DEFAULT, transfer = H5P_DEFAULT, memory, space;
    if (!alone)
        collective_file(&access, &transfer);
    selections(p, &memory, &space);
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, access);
    must(file >= 0, "H5Fopen");
    hid_t set = H5Dopen2(file, "grid", H5P_DEFAULT);
    int32_t *data = calloc(p.count[0] * p.count[1] * p.count[2] + 1, sizeof *data);
    must(H5Dread(set, H5T_NATIVE_INT32, memory, space, transfer, data) >= 0, "H5Dread");
    *offset = (long)H5Dget_offset(set);
    H5Dclose(set);
    H5Fclose(file);
    H5Sclose(memory);
    H5Sclose(space);
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
    static const char *names[2] = {"contiguous", "chunked"};
    for (int chunked = 0; chunked < 2; chunked++) {
        char file[32];
        snprintf(file, sizeof file, "%s.h5", names[chunked]);
        double took = writing(file, part_of(0, rank, ranks), chunked);
        long offset, wrong = over_all(reading(file, part_of(2, rank, ranks), 0, &offset));
        if (rank == 0) {
            long alone = reading(file, part_of(0, 0, 1), 1, &offset);
            printf("%s by %d ranks: %d numbers, wrong by other ranks %ld, without MPI %ld", names[chunked],
                   ranks, NUMBERS, wrong, alone);
            if (!chunked)
                printf(", bytes in the file %ld", wrong_bytes(file, offset, 0));
            printf("; %.4f s\n", took);
        }
    }
    MPI_Finalize();
    return 0;
}
