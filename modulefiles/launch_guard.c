/* Ends a program at MPI_Init whose tasks srun started as worlds of one rank each.
 *
 * That is what happens where srun speaks another PMI than the MPI library: N tasks then run the whole
 * program N times, without an error. The module launch-guard loads this file into programs
 * (LD_PRELOAD); it calls the library's own MPI_Init, then compares the size of the world with the
 * number of tasks that Slurm started. It needs no header of an MPI, so one file serves all of them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MPICH_COMM_WORLD 0x44000000 /* of the MPICH ABI, which MVAPICH keeps to */

typedef int (*init_fn)(int *, char ***);
typedef int (*init_thread_fn)(int *, char ***, int, int *);

/* A function of the MPI library: where the linker looks next, or, where the library came with
 * dlopen (mpi4py), in the library itself. */
static void *of_the_mpi(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    void *self = dlopen(NULL, RTLD_LAZY);
    struct link_map *one = NULL;

    if (found || !self || dlinfo(self, RTLD_DI_LINKMAP, &one))
        return found;
    for (; one && !found; one = one->l_next) {
        if (strstr(one->l_name, "/libmpi") || strstr(one->l_name, "/libpmpi")) {
            void *library = dlopen(one->l_name, RTLD_LAZY | RTLD_NOLOAD);
            found = library ? dlsym(library, name) : NULL;
        }
    }
    return found;
}

static void *needed(const char *name)
{
    void *found = of_the_mpi(name);

    if (!found) {
        fprintf(stderr, "launch-guard: no MPI library has %s; `module unload launch-guard`\n", name);
        exit(1);
    }
    return found;
}

static long number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : 0;
}

/* Whether another launcher than srun started this process: a job may call mpiexec itself. */
static int not_by_srun(void)
{
    return getenv("HYDI_CONTROL_FD") || getenv("MPISPAWN_LOCAL_NPROCS")
        || getenv("OMPI_COMM_WORLD_SIZE") || getenv("FLUX_TASK_RANK");
}

static int world_size(void)
{
    /* Open MPI's handles are addresses: of the program's own copy where it has one (the linker makes
     * one for data that a program names), which is the first that the whole program sees. */
    void *open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    int size = 0;

    if (!open_mpi)
        open_mpi = of_the_mpi("ompi_mpi_comm_world");
    if (open_mpi)
        ((int (*)(void *, int *)) needed("PMPI_Comm_size"))(open_mpi, &size);
    else
        ((int (*)(int, int *)) needed("PMPI_Comm_size"))(MPICH_COMM_WORLD, &size);
    return size;
}

static void check(void)
{
    long tasks = number("SLURM_STEP_NUM_TASKS");
    const char *launch = getenv("MVSTACK_LAUNCH");

    if (tasks < 2 || not_by_srun() || world_size() != 1)
        return;
    if (number("SLURM_PROCID") == 0)
        fprintf(stderr,
                "launch-guard: srun started %ld tasks, and each is alone: its MPI_COMM_WORLD has 1 rank.\n"
                "  because   this srun and the MPI library do not speak the same PMI\n"
                "  to do     start it with: %s\n"
                "  or        if each task is to be alone: module unload launch-guard\n",
                tasks, launch ? launch : "srun --mpi=TYPE …   (srun --mpi=list; mpi-doctor)");
    else
        sleep(10); /* with Slurm's KillOnBadExit the first that ends takes task 0 along, before it speaks */
    fflush(stderr);
    _exit(1);
}

#define GUARDED(name)                                                                           \
    int name(int *argc, char ***argv)                                                          \
    {                                                                                          \
        int status = ((init_fn) needed(#name))(argc, argv);                                    \
                                                                                               \
        check();                                                                               \
        return status;                                                                         \
    }                                                                                          \
    int name##_thread(int *argc, char ***argv, int wanted, int *given)                         \
    {                                                                                          \
        int status = ((init_thread_fn) needed(#name "_thread"))(argc, argv, wanted, given);    \
                                                                                               \
        check();                                                                               \
        return status;                                                                         \
    }

GUARDED(MPI_Init)
GUARDED(PMPI_Init) /* which the bindings of Fortran call */
