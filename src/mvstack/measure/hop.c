/* How long a cache line takes from one core to the next, in nanoseconds: the speed of everything within a node.
 * The host of a virtual machine may move its processors, and then all takes three times as long, or a third. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 200000 };
static _Alignas(128) atomic_int ball;
static int cores[2];

static void *play(void *side)
{
    int mine = *(int *) side;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[mine], &set);
    sched_setaffinity(0, sizeof set, &set);
    for (int turn = mine; turn < 2 * TURNS; turn += 2) {
        while (atomic_load(&ball) != turn)
            continue;
        atomic_store(&ball, turn + 1);
    }
    return NULL;
}

int main(void)
{
    int found = 0, of = -1, sides[2] = { 0, 1 };
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        char name[80];
        int first = cpu;
        snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        FILE *file = fopen(name, "r");
        if (file && fscanf(file, "%d", &first) != 1)
            first = cpu;
        if (file)
            fclose(file);
        if (CPU_ISSET(cpu, &allowed) && first != of) { /* a thread of another core */
            of = first;
            cores[found++] = cpu;
        }
    }
    if (found < 2)
        return 1;
    struct timespec began, ended;
    pthread_t other;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (pthread_create(&other, NULL, play, &sides[1]))
        return 1;
    play(&sides[0]);
    pthread_join(other, NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%.0f\n", ((ended.tv_sec - began.tv_sec) * 1e9 + ended.tv_nsec - began.tv_nsec) / TURNS / 2);
    return 0;
}
