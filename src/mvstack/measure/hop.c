/* How long a cache line takes from one core to the next, in nanoseconds: the speed of everything within a node.
 * The host of a virtual machine may move its processors, and then all takes three times as long, or a third. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* The least of many short turns counts, for beside other programs most are interrupted. */
enum { HOPS = 1000, TURNS = 400, SECONDS = 1 };
static _Alignas(128) atomic_int ball;
static _Alignas(128) atomic_int over;
static int cores[2];
static double least = 1e9;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *play(void *side)
{
    int mine = *(int *) side;
    double began = now(), last = 0, at;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[mine], &set);
    sched_setaffinity(0, sizeof set, &set);
    for (int hop = mine; hop <= HOPS * TURNS; hop += 2) {
        while (atomic_load(&ball) != hop)
            if (atomic_load(&over))
                return NULL;
        if (hop % HOPS == 0) {
            at = now();
            if (hop && (at - last) / HOPS < least)
                least = (at - last) / HOPS;
            last = at;
            if (at - began > SECONDS * 1e9)
                break;
        }
        atomic_store(&ball, hop + 1);
    }
    atomic_store(&over, 1);
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
    pthread_t other;
    if (pthread_create(&other, NULL, play, &sides[1]))
        return 1;
    play(&sides[0]);
    pthread_join(other, NULL);
    if (least < 1e4) /* no cores are so far apart: it never had both */
        printf("%.0f\n", least);
    return 0;
}
