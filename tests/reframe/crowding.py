"""Which ranks share cores while others are idle, by what src/binding.c printed. Pure."""

import re


def processors(text):
    """``0-2,5`` as a set."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",") if part]
    return {one for first, *last in ends for one in range(first, (last or [first])[0] + 1)}


def _pairs(text):
    return {int(one): int(core) for one, core in re.findall(r"(\d+)=(\d+)", text)}


def crowded(said):
    """What speaks against where ranks may run; "" if nothing does.

    Ranks that may run on fewer cores than they are take turns. That is wrong where the job has
    cores on that host that no rank may use. What the script of the job may use is the job's there.
    """
    own = {host: processors(row) for host, row in re.findall(r"^job on (\S+): (\S+)$", said, re.M)}
    hosts = {}
    for rank, host, mine, jobs in re.findall(r"^rank (\d+) on (\S+):(.*) of(.*)$", said, re.M):
        cores = _pairs(jobs)
        given = {core for one, core in cores.items() if one in own.get(host, cores)}
        hosts.setdefault(host, (given, {}))[1][int(rank)] = frozenset(_pairs(mine).values())
    for host, (given, ranks) in sorted(hosts.items()):
        idle = given.difference(*ranks.values())
        for cores in sorted(set(ranks.values()), key=len):
            there = sorted(rank for rank, theirs in ranks.items() if theirs <= cores)
            if idle and len(there) > len(cores):
                return (
                    f"ranks {', '.join(map(str, there))} on {host} may run on {_cores(cores)} "
                    f"alone and take turns, while the job has {_cores(idle)} idle. Look for "
                    f"taskset or numactl before the program, and at the launcher's binding: "
                    f"mpiexec -bind-to core, srun --cpu-bind=cores with as many --cpus-per-task "
                    f"as a rank has threads"
                )
    return ""


def _cores(cores):
    rows = sorted(cores)
    more = " …" if len(rows) > 8 else ""
    return f"core{'s' if rows[1:] else ''} {', '.join(map(str, rows[:8]))}{more}"
