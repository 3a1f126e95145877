/* A Laplace problem with known solution by conjugate gradients and BoomerAMG, on all ranks and on one.

   The seven-point operator on N^3 inner points of a cube; the solution is given, rough and without
   symmetry, and the right-hand side is the operator times it, row by row. Coarsening is PMIS with one
   sequence of random numbers over all rows (type 9), interpolation extended+i with all its entries (of
   equal ones truncation keeps those of the rank's own columns), smoothing l1-Jacobi: of these none
   knows where a rank's rows end. So the ranks do the same arithmetic as one rank does,
   but for the order of sums. */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 24, ROWS = N * N * N, LIMIT = 60, TOLERANCE_EXPONENT = -10 };

/* The solution at a point: a wave, and noise that is the same everywhere. Zero beyond the walls. */
static double solution(int x, int y, int z)
{
    if (x < 0 || y < 0 || z < 0 || x >= N || y >= N || z >= N)
        return 0;
    unsigned row = (x * N + y) * N + z, noise = row * 2654435761u;
    noise = (noise ^ (noise >> 15)) * 2246822519u;
    return sin(0.3 * x) * cos(0.2 * y + 0.1 * z) + (noise >> 8) / 16777216.0 - 0.5;
}

static const int AROUND[6][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};

struct answer {
    HYPRE_Int iterations;
    double residual, error, seconds;
};

static struct answer solve(MPI_Comm comm)
{
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    HYPRE_BigInt first = (HYPRE_BigInt)ROWS * rank / ranks;
    HYPRE_BigInt last = (HYPRE_BigInt)ROWS * (rank + 1) / ranks - 1;

    HYPRE_IJMatrix matrix;
    HYPRE_IJVector right, found, rest;
    HYPRE_IJMatrixCreate(comm, first, last, first, last, &matrix);
    HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixInitialize(matrix);
    HYPRE_IJVector *vectors[3] = {&right, &found, &rest};
    for (int i = 0; i < 3; i++) {
        HYPRE_IJVectorCreate(comm, first, last, vectors[i]);
        HYPRE_IJVectorSetObjectType(*vectors[i], HYPRE_PARCSR);
        HYPRE_IJVectorInitialize(*vectors[i]);
    }
    for (HYPRE_BigInt row = first; row <= last; row++) {
        int x = row / (N * N), y = row / N % N, z = row % N;
        HYPRE_BigInt columns[7] = {row};
        HYPRE_Complex values[7] = {6}, sum = 6 * solution(x, y, z), zero = 0;
        HYPRE_Int count = 1;
        for (int i = 0; i < 6; i++) {
            int a = x + AROUND[i][0], b = y + AROUND[i][1], c = z + AROUND[i][2];
            if (a < 0 || b < 0 || c < 0 || a >= N || b >= N || c >= N)
                continue;
            columns[count] = ((HYPRE_BigInt)a * N + b) * N + c;
            values[count++] = -1;
            sum -= solution(a, b, c);
        }
        HYPRE_IJMatrixSetValues(matrix, 1, &count, &row, columns, values);
        HYPRE_IJVectorSetValues(right, 1, &row, &sum);
        HYPRE_IJVectorSetValues(found, 1, &row, &zero);
        HYPRE_IJVectorSetValues(rest, 1, &row, &sum);
    }
    HYPRE_IJMatrixAssemble(matrix);
    HYPRE_ParCSRMatrix a;
    HYPRE_ParVector b, x, r;
    HYPRE_IJMatrixGetObject(matrix, (void **)&a);
    HYPRE_ParVector *objects[3] = {&b, &x, &r};
    for (int i = 0; i < 3; i++) {
        HYPRE_IJVectorAssemble(*vectors[i]);
        HYPRE_IJVectorGetObject(*vectors[i], (void **)objects[i]);
    }

    struct answer answer = {0};
    MPI_Barrier(comm);
    answer.seconds = -MPI_Wtime();
    HYPRE_Solver amg, pcg;
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetCoarsenType(amg, 9);
    HYPRE_BoomerAMGSetInterpType(amg, 6);
    HYPRE_BoomerAMGSetPMaxElmts(amg, 0);
    HYPRE_BoomerAMGSetRelaxType(amg, 18);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetTol(amg, 0);
    HYPRE_BoomerAMGSetPrintLevel(amg, 0);
    HYPRE_ParCSRPCGCreate(comm, &pcg);
    HYPRE_PCGSetTol(pcg, pow(10, TOLERANCE_EXPONENT));
    HYPRE_PCGSetMaxIter(pcg, LIMIT);
    HYPRE_PCGSetTwoNorm(pcg, 1);
    HYPRE_PCGSetPrecond(pcg, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSolve,
                        (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSetup, amg);
    HYPRE_ParCSRPCGSetup(pcg, a, b, x);
    HYPRE_ParCSRPCGSolve(pcg, a, b, x);
    HYPRE_PCGGetNumIterations(pcg, &answer.iterations);
    answer.seconds += MPI_Wtime();

    /* the residual anew, not the solver's own count of it */
    HYPRE_Real left, whole;
    HYPRE_ParVectorInnerProd(b, b, &whole);
    HYPRE_ParCSRMatrixMatvec(-1, a, x, 1, r);
    HYPRE_ParVectorInnerProd(r, r, &left);
    answer.residual = sqrt(left / whole);
    double off = 0;
    for (HYPRE_BigInt row = first; row <= last; row++) {
        HYPRE_Complex value;
        HYPRE_IJVectorGetValues(found, 1, &row, &value);
        double here = fabs(value - solution(row / (N * N), row / N % N, row % N));
        if (!(here <= off)) /* nan counts as infinite, which MPI_MAX keeps */
            off = isnan(here) ? INFINITY : here;
    }
    MPI_Allreduce(&off, &answer.error, 1, MPI_DOUBLE, MPI_MAX, comm);

    HYPRE_ParCSRPCGDestroy(pcg);
    HYPRE_BoomerAMGDestroy(amg);
    HYPRE_IJMatrixDestroy(matrix);
    for (int i = 0; i < 3; i++)
        HYPRE_IJVectorDestroy(*vectors[i]);
    return answer;
}

static void say(const char *who, int ranks, struct answer answer)
{
    printf("%s %d: %d iterations, residual %.6e, error %.3e, %.3e s\n", who, ranks,
           (int)answer.iterations, answer.residual, answer.error, answer.seconds);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    HYPRE_Init();
    HYPRE_SetMemoryLocation(HYPRE_MEMORY_HOST); /* of a build for GPUs too: its arrays are ours */
    HYPRE_SetExecutionPolicy(HYPRE_EXEC_HOST);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct answer together = solve(MPI_COMM_WORLD);
    if (rank == 0) {
        say("together", ranks, together);
        say("alone", 1, solve(MPI_COMM_SELF));
    }
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
