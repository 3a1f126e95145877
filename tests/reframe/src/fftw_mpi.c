/* Three-dimensional Fourier transforms over the ranks, whose result is known for every wave number.

   The data are f(a,b,c) = p^a q^b r^c with complex p, q, r: the transform of each factor is a sum of
   powers, (1 - p^n) / (1 - p w^k) with w = exp(-2 pi i / n), so no other FFT is asked. Both are found
   in long double, so that nothing but the transform errs in the last digits of a double. The first
   dimension does not divide by 4, so that ranks hold different numbers of planes.

   Forward and back, in the plain and in the transposed order of output. Errors are the largest of a
   value, relative to the root mean square of all. */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { A = 50, B = 48, C = 36, REPEATS = 5 };
static const ptrdiff_t size[3] = {A, B, C};
static double complex power[3][A], factor[3][A]; /* A is the largest size */

static void prepare(void)
{
    static const long double complex base[3] = {0.93L + 0.11L * I, 0.88L - 0.23L * I, -0.71L + 0.54L * I};
    const long double turn = 2 * acosl(-1);
    for (int d = 0; d < 3; d++)
        for (ptrdiff_t i = 0; i < size[d]; i++) {
            power[d][i] = cpowl(base[d], i);
            factor[d][i] = (1 - cpowl(base[d], size[d])) / (1 - base[d] * cexpl(-turn * I * i / size[d]));
        }
}

static double complex function(ptrdiff_t a, ptrdiff_t b, ptrdiff_t c)
{
    return power[0][a] * power[1][b] * power[2][c];
}

static double complex spectrum(ptrdiff_t a, ptrdiff_t b, ptrdiff_t c)
{
    return factor[0][a] * factor[1][b] * factor[2][c];
}

typedef double complex formula(ptrdiff_t, ptrdiff_t, ptrdiff_t);

/* Rows of the first two dimensions as they lie on this rank: `first` counts from `start`. */
static double complex value(formula f, int swapped, ptrdiff_t first, ptrdiff_t second, ptrdiff_t c)
{
    return swapped ? f(second, first, c) : f(first, second, c);
}

static double error(const fftw_complex *data, double scale, formula f, int swapped, ptrdiff_t count,
                    ptrdiff_t start)
{
    double local[2] = {0, 0}, largest, squares;
    ptrdiff_t depth = swapped ? A : B;
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t j = 0; j < depth; j++)
            for (ptrdiff_t k = 0; k < C; k++) {
                double complex wanted = value(f, swapped, start + i, j, k);
                double off = cabs(scale * data[(i * depth + j) * C + k] - wanted);
                if (!(off <= local[0])) /* nan stays */
                    local[0] = off;
                local[1] += creal(wanted * conj(wanted));
            }
    /* MPI_MAX may lose a nan: send the fact itself */
    int bad = isnan(local[0]), any;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&local[0], &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&local[1], &squares, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return any ? NAN : largest / sqrt(squares / ((double)A * B * C));
}

static void transform(int swapped, int rank)
{
    ptrdiff_t rows, start, rows_out, start_out;
    ptrdiff_t space = fftw_mpi_local_size_3d_transposed(A, B, C, MPI_COMM_WORLD, &rows, &start,
                                                        &rows_out, &start_out);
    if (!swapped) {
        rows_out = rows;
        start_out = start;
    }
    fftw_complex *in = fftw_alloc_complex(space), *out = fftw_alloc_complex(space);
    fftw_plan forward = fftw_mpi_plan_dft_3d(A, B, C, in, out, MPI_COMM_WORLD, FFTW_FORWARD,
                                             FFTW_ESTIMATE | (swapped ? FFTW_MPI_TRANSPOSED_OUT : 0));
    fftw_plan back = fftw_mpi_plan_dft_3d(A, B, C, out, in, MPI_COMM_WORLD, FFTW_BACKWARD,
                                          FFTW_ESTIMATE | (swapped ? FFTW_MPI_TRANSPOSED_IN : 0));
    double fastest = INFINITY, there = 0, back_again = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (ptrdiff_t i = 0; i < rows; i++)
            for (ptrdiff_t j = 0; j < B; j++)
                for (ptrdiff_t k = 0; k < C; k++)
                    in[(i * B + j) * C + k] = function(start + i, j, k);
        MPI_Barrier(MPI_COMM_WORLD);
        double took = -MPI_Wtime(), slowest;
        fftw_execute(forward);
        took += MPI_Wtime();
        MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        fastest = fmin(fastest, slowest);
        there = error(out, 1, spectrum, swapped, rows_out, start_out);
        fftw_execute(back);
        back_again = error(in, 1.0 / ((double)A * B * C), function, 0, rows, start);
    }
    double points = (double)A * B * C;
    if (rank == 0)
        printf("%s: spectrum off by %.3e, and back by %.3e; %.3e s, %.1f MFLOP/s\n",
               swapped ? "transposed" : "plain", there, back_again, fastest,
               5e-6 * points * log2(points) / fastest);
    fftw_destroy_plan(forward);
    fftw_destroy_plan(back);
    fftw_free(in);
    fftw_free(out);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    int rank, ranks, all_ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ptrdiff_t rows, start;
    fftw_mpi_local_size_3d(A, B, C, MPI_COMM_WORLD, &rows, &start);
    int with = rows > 0, planes = rows, all_planes;
    MPI_Reduce(&planes, &all_planes, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&with, &all_ranks, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s, %d planes over %d of %d ranks\n", fftw_version, all_planes, all_ranks, ranks);
    prepare();
    transform(0, rank);
    transform(1, rank);
    fftw_mpi_cleanup();
    MPI_Finalize();
    return 0;
}
