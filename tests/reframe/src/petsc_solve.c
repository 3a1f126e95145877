/* PETSc over all ranks, on problems whose discrete answers are known in closed form.
 *
 * On a grid of N x N points inside the unit square the five-point Laplacian L of u = 16 x(1-x) y(1-y)
 * is exact, for u is of second order along each axis; sin(k pi x) sin(l pi y) are its eigenvectors.
 *
 *   poisson   -L u = f by conjugate gradients with hypre's BoomerAMG
 *   newton    -L u + u^3 = g by Newton's method, with PETSc's own multigrid
 *   heat      ten steps of Crank and Nicolson from two eigenvectors, each of which shrinks by a
 *             known factor
 *   file      u written to HDF5 and read back
 */
#include <petscdmda.h>
#include <petscksp.h>
#include <petscsnes.h>
#include <petscts.h>
#include <petscviewerhdf5.h>

enum { N = 96, STEPS = 10 };
static const PetscReal step = 0.01;

static PetscReal parabola(PetscReal x) { return 4 * x * (1 - x); }
static PetscReal solution(PetscReal x, PetscReal y) { return parabola(x) * parabola(y); }
static PetscReal minus_laplacian(PetscReal x, PetscReal y)
{
    return 8 * (parabola(x) + parabola(y));
}
static PetscReal cubic(PetscReal x, PetscReal y)
{
    return minus_laplacian(x, y) + PetscPowReal(solution(x, y), 3);
}
static PetscReal mode(int k, int l, PetscReal x, PetscReal y)
{
    return PetscSinReal(k * PETSC_PI * x) * PetscSinReal(l * PETSC_PI * y);
}
static PetscReal shrunk(int k, int l)
{ /* by what a mode is multiplied in all steps */
    PetscReal h = 1.0 / (N + 1), a = PetscSinReal(k * PETSC_PI * h / 2);
    PetscReal b = PetscSinReal(l * PETSC_PI * h / 2);
    PetscReal z = step / 2 * 4 * (a * a + b * b) / (h * h);
    return PetscPowReal((1 - z) / (1 + z), STEPS);
}
static PetscReal warm(PetscReal x, PetscReal y) { return mode(1, 1, x, y) + mode(3, 2, x, y) / 2; }
static PetscReal cooled(PetscReal x, PetscReal y)
{
    return shrunk(1, 1) * mode(1, 1, x, y) + shrunk(3, 2) * mode(3, 2, x, y) / 2;
}

static PetscErrorCode fill(DM grid, Vec v, PetscReal (*f)(PetscReal, PetscReal))
{
    PetscScalar **u;
    DMDALocalInfo here;
    PetscFunctionBeginUser;
    PetscCall(DMDAGetLocalInfo(grid, &here));
    PetscCall(DMDAVecGetArray(grid, v, &u));
    for (int j = here.ys; j < here.ys + here.ym; j++)
        for (int i = here.xs; i < here.xs + here.xm; i++)
            u[j][i] = f((i + 1.0) / (N + 1), (j + 1.0) / (N + 1));
    PetscCall(DMDAVecRestoreArray(grid, v, &u));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of factor * L, and 3 u^2 on its diagonal if there is a u. */
static PetscErrorCode assemble(DM grid, PetscReal factor, Vec u, Mat A)
{
    PetscScalar **at = NULL, weight = factor * (N + 1) * (N + 1);
    DMDALocalInfo here;
    PetscFunctionBeginUser;
    PetscCall(DMDAGetLocalInfo(grid, &here));
    if (u) PetscCall(DMDAVecGetArrayRead(grid, u, &at));
    for (int j = here.ys; j < here.ys + here.ym; j++) {
        for (int i = here.xs; i < here.xs + here.xm; i++) {
            MatStencil row = {.i = i, .j = j}, column[5];
            PetscScalar value[5];
            PetscInt count = 0;
            int next[5][2] = {{i, j}, {i - 1, j}, {i + 1, j}, {i, j - 1}, {i, j + 1}};
            for (int k = 0; k < 5; k++) {
                int x = next[k][0], y = next[k][1];
                if (x < 0 || x >= N || y < 0 || y >= N) continue;
                column[count] = (MatStencil){.i = x, .j = y};
                value[count++] = k ? weight : -4 * weight + (u ? 3 * at[j][i] * at[j][i] : 0);
            }
            PetscCall(MatSetValuesStencil(A, 1, &row, count, column, value, INSERT_VALUES));
        }
    }
    if (u) PetscCall(DMDAVecRestoreArrayRead(grid, u, &at));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode off_by(DM grid, Vec found, PetscReal (*f)(PetscReal, PetscReal), PetscReal *most)
{
    Vec wanted;
    PetscFunctionBeginUser;
    PetscCall(VecDuplicate(found, &wanted));
    PetscCall(fill(grid, wanted, f));
    PetscCall(VecAXPY(wanted, -1, found));
    PetscCall(VecNorm(wanted, NORM_INFINITY, most));
    PetscCall(VecDestroy(&wanted));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode poisson(DM grid)
{
    KSP solver;
    PC multigrid;
    Mat A;
    Vec u, f, r;
    PetscInt steps;
    PetscReal begin, seconds, left, all, error;
    PetscFunctionBeginUser;
    PetscCall(DMCreateMatrix(grid, &A));
    PetscCall(assemble(grid, -1, NULL, A));
    PetscCall(DMCreateGlobalVector(grid, &u));
    PetscCall(VecDuplicate(u, &f));
    PetscCall(VecDuplicate(u, &r));
    PetscCall(fill(grid, f, minus_laplacian));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, A, A));
    PetscCall(KSPSetType(solver, KSPCG));
    PetscCall(KSPSetNormType(solver, KSP_NORM_UNPRECONDITIONED));
    PetscCall(KSPSetTolerances(solver, 1e-11, 0, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(solver, &multigrid));
    PetscCall(PCSetType(multigrid, PCHYPRE));
    PetscCall(PCHYPRESetType(multigrid, "boomeramg"));
    begin = MPI_Wtime();
    PetscCall(KSPSolve(solver, f, u));
    seconds = MPI_Wtime() - begin;
    PetscCall(KSPGetIterationNumber(solver, &steps));
    PetscCall(MatMult(A, u, r));
    PetscCall(VecAYPX(r, -1, f));
    PetscCall(VecNorm(r, NORM_2, &left));
    PetscCall(VecNorm(f, NORM_2, &all));
    PetscCall(off_by(grid, u, solution, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "poisson: %d iterations, residual %.6e, solution off by %.3e; %.6f s\n",
                          (int)steps, (double)(left / all), (double)error, (double)seconds));
    PetscCall(KSPDestroy(&solver));
    PetscCall(MatDestroy(&A));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&f));
    PetscCall(VecDestroy(&r));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode function(SNES solver, Vec u, Vec F, void *laplacian)
{
    Vec cube, g;
    DM grid;
    PetscFunctionBeginUser;
    PetscCall(SNESGetDM(solver, &grid));
    PetscCall(VecDuplicate(u, &cube));
    PetscCall(VecDuplicate(u, &g));
    PetscCall(VecPointwiseMult(cube, u, u));
    PetscCall(VecPointwiseMult(cube, cube, u));
    PetscCall(fill(grid, g, cubic));
    PetscCall(MatMult((Mat)laplacian, u, F)); /* -L u + u^3 - g */
    PetscCall(VecAXPBYPCZ(F, 1, -1, 1, cube, g));
    PetscCall(VecDestroy(&cube));
    PetscCall(VecDestroy(&g));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode derivative(SNES solver, Vec u, Mat A, Mat P, void *unused)
{
    DM grid;
    PetscFunctionBeginUser;
    (void)A, (void)unused;
    PetscCall(SNESGetDM(solver, &grid));
    PetscCall(assemble(grid, -1, u, P));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode newton(DM grid)
{
    SNES solver;
    KSP inner;
    PC multigrid;
    Mat L, J;
    Vec u;
    PetscInt steps;
    PetscReal error;
    SNESConvergedReason why;
    PetscFunctionBeginUser;
    PetscCall(DMCreateMatrix(grid, &L));
    PetscCall(assemble(grid, -1, NULL, L));
    PetscCall(DMCreateMatrix(grid, &J));
    PetscCall(DMCreateGlobalVector(grid, &u));
    PetscCall(SNESCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(SNESSetDM(solver, grid));
    PetscCall(SNESSetFunction(solver, NULL, function, L));
    PetscCall(SNESSetJacobian(solver, J, J, derivative, NULL));
    PetscCall(SNESSetTolerances(solver, 0, 1e-11, 0, 20, 1000));
    PetscCall(SNESGetKSP(solver, &inner));
    PetscCall(KSPSetType(inner, KSPCG));
    PetscCall(KSPSetTolerances(inner, 1e-10, 0, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(inner, &multigrid));
    PetscCall(PCSetType(multigrid, PCGAMG));
    PetscCall(SNESSolve(solver, NULL, u));
    PetscCall(SNESGetIterationNumber(solver, &steps));
    PetscCall(SNESGetConvergedReason(solver, &why));
    PetscCall(off_by(grid, u, solution, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "newton: %d steps, %s, solution off by %.3e\n",
                          (int)steps, why > 0 ? "converged" : SNESConvergedReasons[why],
                          (double)error));
    PetscCall(SNESDestroy(&solver));
    PetscCall(MatDestroy(&L));
    PetscCall(MatDestroy(&J));
    PetscCall(VecDestroy(&u));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode heat(DM grid)
{
    TS stepper;
    SNES around;
    KSP inner;
    Mat A;
    Vec u;
    PetscInt steps;
    PetscReal error;
    PetscFunctionBeginUser;
    PetscCall(DMCreateMatrix(grid, &A));
    PetscCall(assemble(grid, 1, NULL, A));
    PetscCall(DMCreateGlobalVector(grid, &u));
    PetscCall(fill(grid, u, warm));
    PetscCall(TSCreate(PETSC_COMM_WORLD, &stepper));
    PetscCall(TSSetProblemType(stepper, TS_LINEAR));
    PetscCall(TSSetRHSFunction(stepper, NULL, TSComputeRHSFunctionLinear, NULL));
    PetscCall(TSSetRHSJacobian(stepper, A, A, TSComputeRHSJacobianConstant, NULL));
    PetscCall(TSSetType(stepper, TSCN));
    PetscCall(TSSetTimeStep(stepper, step));
    PetscCall(TSSetMaxSteps(stepper, STEPS));
    PetscCall(TSSetExactFinalTime(stepper, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(TSGetSNES(stepper, &around));
    PetscCall(SNESGetKSP(around, &inner));
    PetscCall(KSPSetTolerances(inner, 1e-12, 0, PETSC_DEFAULT, 1000));
    PetscCall(TSSolve(stepper, u));
    PetscCall(TSGetStepNumber(stepper, &steps));
    PetscCall(off_by(grid, u, cooled, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "heat: %d steps, solution off by %.3e\n", (int)steps,
                          (double)error));
    PetscCall(TSDestroy(&stepper));
    PetscCall(MatDestroy(&A));
    PetscCall(VecDestroy(&u));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode file(DM grid)
{
    Vec u, back;
    PetscViewer viewer;
    PetscReal error;
    PetscFunctionBeginUser;
    PetscCall(DMCreateGlobalVector(grid, &u));
    PetscCall(VecDuplicate(u, &back));
    PetscCall(VecSet(back, -1));
    PetscCall(fill(grid, u, solution));
    PetscCall(PetscObjectSetName((PetscObject)u, "u"));
    PetscCall(PetscObjectSetName((PetscObject)back, "u"));
    PetscCall(PetscViewerHDF5Open(PETSC_COMM_WORLD, "petsc.h5", FILE_MODE_WRITE, &viewer));
    PetscCall(VecView(u, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(PetscViewerHDF5Open(PETSC_COMM_WORLD, "petsc.h5", FILE_MODE_READ, &viewer));
    PetscCall(VecLoad(back, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(off_by(grid, back, solution, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "file: read back off by %.3e\n", (double)error));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&back));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
    DM grid;
    PetscMPIInt ranks;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, N,
                           N, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &grid));
    PetscCall(DMSetUp(grid));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "PETSc %d.%d.%d on %d ranks\n", PETSC_VERSION_MAJOR,
                          PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, ranks));
    PetscCall(poisson(grid));
    PetscCall(newton(grid));
    PetscCall(heat(grid));
    PetscCall(file(grid));
    PetscCall(DMDestroy(&grid));
    PetscCall(PetscFinalize());
    return 0;
}
