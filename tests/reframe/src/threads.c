/* Asks for the level of threads that the argument names and says what it got. With "multiple" two threads of each
 * rank then exchange messages with the next rank at once, short and long, and compare every value. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 200, MOST = 20000, SECONDS = 30 };

static int rank, ranks, wrong[THREADS];
static int out[THREADS][MOST], in[THREADS][MOST];
static pthread_barrier_t start;

static int value(int from, int thread, int round, int i) { return 100000 * from + 1000 * thread + 7 * round + i % 91; }

static void *exchange(void *argument)
{
    const int me = *(int *)argument, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    pthread_barrier_wait(&start);
    for (int round = 0; round < ROUNDS; round++) {
        const int count = round % 10 ? 1 + 17 * (round % 10) : MOST;
        for (int i = 0; i < count; i++) {
            out[me][i] = value(rank, me, round, i);
            in[me][i] = -1;
        }
        MPI_Sendrecv(out[me], count, MPI_INT, next, me, in[me], count, MPI_INT, before, me, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int i = 0; i < count && !wrong[me]; i++)
            if (in[me][i] != value(before, me, round, i)) {
                wrong[me] = 1;
                printf("wrong: thread %d of rank %d, round %d, element %d of %d: found %d expected %d\n", me, rank,
                       round, i, count, in[me][i], value(before, me, round, i));
            }
    }
    return NULL;
}

static void hung(int signal)
{
    static const char said[] = "hung: messages of two threads do not end\n";
    (void)signal;
    _exit(write(STDOUT_FILENO, said, sizeof said - 1) < 0);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[] = {"single", "funneled", "serialized", "multiple"};
    static const int LEVELS[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int asked = 0, got = 0, provided, any, number[THREADS];
    pthread_t thread[THREADS];

    while (asked < 3 && strcmp(NAMES[asked], argc > 1 ? argv[1] : "multiple"))
        asked++;
    MPI_Init_thread(&argc, &argv, LEVELS[asked], &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (got < 3 && LEVELS[got] != provided)
        got++;
    printf("rank %d of %d asked for %s, got %s\n", rank, ranks, NAMES[asked], NAMES[got]);
    fflush(stdout);
    if (asked == 3 && got == 3) {
        signal(SIGALRM, hung);
        alarm(SECONDS);
        pthread_barrier_init(&start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            number[i] = i;
            pthread_create(&thread[i], NULL, exchange, &number[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        any = wrong[0] || wrong[1];
        MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        alarm(0);
        if (rank == 0 && !any)
            printf("right messages of %d threads of %d ranks\n", THREADS, ranks);
    }
    MPI_Finalize();
    return 0;
}
