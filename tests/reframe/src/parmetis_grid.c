/* ParMETIS: the graph of a square grid, its rows over all ranks, cut into PARTS; every rank counts for
   itself what the partition that all of them made cuts, and how large its parts are. */
#include <mpi.h>
#include <parmetis.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 128, PARTS = 4 };

static int compare(const void *a, const void *b)
{
    return (*(const idx_t *)a > *(const idx_t *)b) - (*(const idx_t *)a < *(const idx_t *)b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);

    idx_t first[ranks + 1];
    int counts[ranks], starts[ranks];
    for (int i = 0; i <= ranks; i++)
        first[i] = (idx_t)i * N / ranks * N;
    for (int i = 0; i < ranks; i++) {
        starts[i] = (int)first[i];
        counts[i] = (int)(first[i + 1] - first[i]);
    }
    int mine = counts[rank];
    idx_t *begin = malloc((mine + 1) * sizeof *begin), *next = malloc(4 * mine * sizeof *next);
    idx_t *part = malloc(mine * sizeof *part), *all = malloc(N * N * sizeof *all);
    idx_t edges = 0;
    for (int i = 0; i < mine; i++) {
        int x = (int)(first[rank] + i) / N, y = (int)(first[rank] + i) % N;
        begin[i] = edges;
        if (x > 0) next[edges++] = (x - 1) * N + y;
        if (y > 0) next[edges++] = x * N + y - 1;
        if (y < N - 1) next[edges++] = x * N + y + 1;
        if (x < N - 1) next[edges++] = (x + 1) * N + y;
        qsort(next + begin[i], edges - begin[i], sizeof *next, compare);
        part[i] = -1;
    }
    begin[mine] = edges;

    idx_t no_weights = 0, from_zero = 0, constraints = 1, parts = PARTS, said = -1;
    idx_t options[3] = {1, 0, 42};
    real_t share[PARTS], imbalance = 1.05;
    for (int i = 0; i < PARTS; i++)
        share[i] = (real_t)1 / PARTS;
    double time = MPI_Wtime();
    int status = ParMETIS_V3_PartKway(first, begin, next, NULL, NULL, &no_weights, &from_zero,
                                      &constraints, &parts, share, &imbalance, options, &said, part,
                                      &comm);
    time = MPI_Wtime() - time;

    MPI_Allgatherv(part, mine, IDX_T, all, counts, starts, IDX_T, comm);
    int cut = 0, size[PARTS] = {0}, outside = 0;
    for (int i = 0; i < N * N; i++) {
        if (all[i] < 0 || all[i] >= PARTS) {
            outside++;
            continue;
        }
        size[all[i]]++;
        cut += i % N < N - 1 && all[i] != all[i + 1];
        cut += i / N < N - 1 && all[i] != all[i + N];
    }
    int largest = 0, smallest = N * N;
    for (int i = 0; i < PARTS; i++) {
        largest = size[i] > largest ? size[i] : largest;
        smallest = size[i] < smallest ? size[i] : smallest;
    }
    int mine_said[2] = {cut, (int)said}, least[2], most[2];
    MPI_Reduce(mine_said, least, 2, MPI_INT, MPI_MIN, 0, comm);
    MPI_Reduce(mine_said, most, 2, MPI_INT, MPI_MAX, 0, comm);
    if (rank == 0) {
        printf("ParMETIS %d.%d.%d on %d ranks, reals of %d bits\n", PARMETIS_MAJOR_VERSION,
               PARMETIS_MINOR_VERSION, PARMETIS_SUBMINOR_VERSION, ranks, (int)sizeof(real_t) * 8);
        printf("status %s, %d points in no part\n", status == METIS_OK ? "ok" : "failed", outside);
        printf("cut %d to %d edges, ParMETIS says %d to %d\n", least[0], most[0], least[1], most[1]);
        printf("parts of %d to %d points; %.6f s\n", smallest, largest, time);
    }
    MPI_Finalize();
    return 0;
}
