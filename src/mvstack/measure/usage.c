/* As a rank ends it says for how long it had a processor, and on which node: a rank that srun starts is not our
 * child, and would pass for somebody else's program. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return time.tv_sec + 1e-6 * time.tv_usec;
}

__attribute__((destructor)) static void say(void)
{
    char node[256] = "";
    struct rusage used;
    gethostname(node, sizeof node - 1);
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "rank on %s took %.3f s\n", node, seconds(used.ru_utime) + seconds(used.ru_stime));
}
