"""A small stand-in for the source of the OSU Micro-Benchmarks: same programs, options and output.

It measures for real, over whatever MPI it is compiled with, and checks what arrives with ``-c``.
Two variables plant faults: FAULT=wrong changes what arrives, FAULT=hang waits for ever.
"""

from __future__ import annotations

from pathlib import Path

PROGRAMS = {
    "osu_latency": "PINGPONG",
    "osu_bw": "STREAM",
    "osu_bibw": "STREAM",
    "osu_mbw_mr": "STREAM",
    "osu_allreduce": "COLLECTIVE",
    "osu_alltoall": "COLLECTIVE",
    "osu_bcast": "COLLECTIVE",
    "osu_allgather": "COLLECTIVE",
    "osu_reduce": "COLLECTIVE",
    "osu_barrier": "BARRIER",
    "osu_put_latency": "PINGPONG",
    "osu_init": "INIT",
    "osu_get_latency": "PINGPONG",
    "osu_gather": "COLLECTIVE",
    "osu_scatter": "COLLECTIVE",
    "osu_reduce_scatter": "COLLECTIVE",
}
UTIL = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { PINGPONG, STREAM, COLLECTIVE, BARRIER, INIT };
int run(int argc, char **argv, int kind)
{
    long least = 1, most = 1024, rounds = 10;
    int check = 0, rank, size, option, wrong = 0;
    const char *fault = getenv("FAULT") ? getenv("FAULT") : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while ((option = getopt(argc, argv, "m:i:x:c")) != -1) {
        if (option == 'm')
            sscanf(optarg, "%ld:%ld", &least, &most);
        if (option == 'i')
            rounds = atol(optarg);
        check |= option == 'c';
    }
    while (!strcmp(fault, "hang"))
        sleep(1);
    if (rank == 0)
        printf("# OSU MPI Small Test v7.5\n");
    if (kind == INIT && rank == 0)
        printf("nprocs: %d, min: 1 ms, max: 1 ms, avg: %d ms\n", size, 1);
    char *in = calloc(1, most + 8), *out = malloc(most + 8);
    for (long bytes = kind >= BARRIER ? most : least; kind != INIT && bytes <= most; bytes *= 2) {
        memset(out, 'a' + rank % 2, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (long i = 0; i < rounds; i++)
            if (kind == BARRIER)
                MPI_Barrier(MPI_COMM_WORLD);
            else if (kind == COLLECTIVE)
                MPI_Allreduce(out, in, bytes, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
            else if (rank < 2)
                MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 0, in, bytes, MPI_CHAR, 1 - rank, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double us = (MPI_Wtime() - begin) * 1e6 / rounds + 0.01;
        if (!strcmp(fault, "wrong"))
            in[bytes / 2] = 'z';
        for (long i = 0; i < bytes && kind != BARRIER; i++)
            wrong |= rank < 2 && in[i] != (kind == COLLECTIVE ? 'b' : 'b' - rank % 2);
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0 && kind == BARRIER)
            printf("%18.2f\n", us);
        else if (rank == 0 && kind == STREAM)
            printf("%-10ld%20.6f%20.2f%s\n", bytes, bytes / us, 1e6 / us,
                   check ? wrong ? "   Fail" : "   Pass" : "");
        else if (rank == 0)
            printf("%-10ld%20.2f%s\n", bytes, us, check ? wrong ? "   Fail" : "   Pass" : "");
    }
    MPI_Finalize();
    return 0;
}
"""


def source(folder: Path) -> Path:
    """Write it into ``folder``."""
    (folder / "util").mkdir(parents=True)
    (folder / "configure.ac").write_text("AC_INIT([OSU-Micro-Benchmarks], [7.5], [nobody])\n")
    (folder / "util" / "osu_util_mpi.c").write_text(UTIL)
    for name, kind in PROGRAMS.items():
        kinds = "enum { PINGPONG, STREAM, COLLECTIVE, BARRIER, INIT };"
        main = f"int main(int argc, char **argv) {{ return run(argc, argv, {kind}); }}"
        text = f"{kinds}\nint run(int argc, char **argv, int kind);\n{main}\n"
        (folder / f"{name}.c").write_text(text)
    return folder
