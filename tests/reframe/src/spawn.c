/* The ranks start two more of this program by MPI_Comm_spawn. Parents and children exchange values both ways, and
 * leave each other. What takes too long is named. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN = 2, WORDS = 1000, SECONDS = 60 };

static int me, ranks, wrong;
static const char *who = "rank";
static char step[128];

static void begin(const char *what)
{
    snprintf(step, sizeof step, "hung: %s %d waits in %s for %d s\n", who, me, what, SECONDS);
    alarm(SECONDS);
}

static void hung(int signal)
{
    (void)signal;
    _exit(write(STDOUT_FILENO, step, strlen(step)) < 0);
}

static void expect(const char *what, int found, int expected)
{
    if (found != expected && !wrong++)
        printf("wrong %s: %s %d found %d expected %d\n", what, who, me, found, expected);
}

/* Children's values begin at 1,000,000. */
static int value(int child, int from, int i) { return 1000000 * child + 10000 * from + i; }

static int exchange(MPI_Comm other, int child)
{
    int size, all, out[WORDS], *in;

    begin("MPI_Allgather between parents and children");
    MPI_Comm_remote_size(other, &size);
    for (int i = 0; i < WORDS; i++)
        out[i] = value(child, me, i);
    in = malloc(sizeof(out) * size);
    MPI_Allgather(out, WORDS, MPI_INT, in, WORDS, MPI_INT, other);
    for (int i = 0; i < WORDS * size; i++)
        expect(child ? "value of a parent" : "value of a child", in[i], value(!child, i / WORDS, i % WORDS));
    free(in);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, other); /* parents hear of the children's */
    begin("MPI_Comm_disconnect");
    MPI_Comm_disconnect(&other);
    return all;
}

int main(int argc, char **argv)
{
    char *words[] = {"child", NULL}, said[MPI_MAX_ERROR_STRING];
    int error, errors[CHILDREN], length, of_children, all;
    MPI_Comm other;

    signal(SIGALRM, hung);
    if (argc > 1)
        who = words[0];
    begin("MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        expect("size of the children's world", ranks, CHILDREN);
        exchange(other, 1);
        begin("MPI_Finalize");
        MPI_Finalize();
        return 0;
    }
    begin("MPI_Comm_spawn");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error = MPI_Comm_spawn(argv[0], words, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, errors);
    if (error) {
        MPI_Error_string(error, said, &length);
        if (me == 0)
            printf("no children: %s\n", said);
        return MPI_Finalize();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_remote_size(other, &length);
    expect("number of children", length, CHILDREN);
    of_children = exchange(other, 0);
    begin("MPI_Finalize");
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0 && !all && !of_children)
        printf("right values of %d children and %d parents\n", CHILDREN, ranks);
    MPI_Finalize();
    return 0;
}
