/* A grid of known 32-bit numbers, parts of it for ranks, and the count of numbers that are wrong.

   The numbers follow from their place alone, so any rank can tell what any other had to write. The
   first and the last dimension do not divide by 2. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { A = 61, B = 32, C = 257, NUMBERS = A * B * C };

/* Where a rank's part begins and how much of each dimension it holds. */
struct part {
    long start[3], count[3];
};

static int32_t number(long a, long b, long c)
{
    uint32_t place = (a * B + b) * C + c + 1;
    return (int32_t)(place * 2654435761u);
}

/* The part of a rank, where ranks share out one dimension. */
static struct part part_of(int dimension, int rank, int ranks)
{
    struct part p = {{0, 0, 0}, {A, B, C}};
    long whole = p.count[dimension];
    p.start[dimension] = whole * rank / ranks;
    p.count[dimension] = whole * (rank + 1) / ranks - p.start[dimension];
    return p;
}

/* The numbers of a part, in their order. */
static int32_t *numbers_of(struct part p)
{
    int32_t *all = malloc(sizeof *all * (p.count[0] * p.count[1] * p.count[2] + 1)), *at = all;
    for (long a = 0; a < p.count[0]; a++)
        for (long b = 0; b < p.count[1]; b++)
            for (long c = 0; c < p.count[2]; c++)
                *at++ = number(p.start[0] + a, p.start[1] + b, p.start[2] + c);
    return all;
}

static long wrong_in(struct part p, const int32_t *data)
{
    int32_t *wanted = numbers_of(p);
    long wrong = 0;
    for (long i = 0; i < p.count[0] * p.count[1] * p.count[2]; i++)
        wrong += data[i] != wanted[i];
    free(wanted);
    return wrong;
}

/* Of the bytes of the grid that begin at `offset` of a file, read by no library: how many are wrong.
   `big` says whether the most significant byte comes first. */
static inline long wrong_bytes(const char *name, long offset, int big)
{
    FILE *file = fopen(name, "rb");
    if (!file || offset < 0 || fseek(file, offset, SEEK_SET))
        return 4L * NUMBERS;
    long wrong = 0;
    for (long i = 0; i < NUMBERS; i++) {
        uint32_t wanted = number(i / (B * C), i / C % B, i % C);
        for (int byte = 0; byte < 4; byte++)
            wrong += fgetc(file) != (int)(wanted >> 8 * (big ? 3 - byte : byte) & 255);
    }
    fclose(file);
    return wrong;
}

static long over_all(long count)
{
    long sum;
    MPI_Allreduce(&count, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* What a library's call gave must be what says that all is well. */
static void must(int well, const char *what)
{
    if (!well) {
        printf("%s failed\n", what);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
