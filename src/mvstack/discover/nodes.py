"""Have a node of each partition look at itself: by Slurm's srun, or by lines for a person."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from mvstack.discover.machine import Machine
from mvstack.discover.merge import Answer, Kind
from mvstack.discover.view import ask
from mvstack.support.errors import Missing

NO_MACHINE = "not what `mvstack discover --json` of this version prints"
START = 15.0  # seconds beyond the limit of a job: srun, and the program on the node
WAIT = 60.0  # seconds for sinfo: a busy controller is not one that is down
SINFO = ["sinfo", "--noheader", "--exact", "--noconvert", "--format=%R|%D|%X|%Y|%m|%G"]
KIND = re.compile(r"^(\S+)\|(\d+)\|(\d+)\|(\d+)\|(\d+)\|(.*)$", re.M)


def slurm_partitions(named: Sequence[str] = ()) -> dict[str, list[Kind]]:
    """Slurm's partitions and their kinds of nodes, in the order in which it lists them.

    Those that are ``named`` may be hidden ones, and are all that is known of where sinfo does not
    answer. Raises Missing where nobody named any.
    """
    done = ask([*SINFO, *(["--all"] if named else [])], WAIT)
    if done is None or not done.ok:
        if named:
            return {name: [] for name in named}
        said = done.errors.strip().splitlines()[-1:] if done else ["not here"]
        why = f"no answer in {WAIT:.0f} s" if done and done.timed_out else "".join(said)
        todo = "run it again, or name the partitions to look at: --partition"
        raise Missing(f"sinfo does not list Slurm's partitions: {why}", todo=todo)
    found: dict[str, list[Kind]] = {}
    for name, count, sockets, cores, mb, gres in KIND.findall(done.text):
        there = re.sub(r"\([^)]*\)", "", gres).split(",")
        gpus = ",".join(one for one in there if one.startswith("gpu"))
        kind = Kind(int(count), int(sockets) * int(cores), int(mb) // 1024, gpus)
        found.setdefault(name, []).append(kind)
    return found


def by_srun(queue: str, options: Sequence[str], command: Sequence[str], limit: int) -> Answer:
    """What ``command`` (`mvstack discover --json`) says on a node of ``queue``; else why nothing.

    A node that is not free within ``limit`` seconds is not waited for, nor one that does not answer
    so long; the job of that one is cancelled.
    """
    job = f"mvstack-adopt-{os.getpid()}-{queue}"
    asked = [f"--partition={queue}", "--nodes=1", "--ntasks=1", "--mpi=none"]
    asked += ["--exclusive", "--mem=0", "--cpu-bind=none"]  # what a job was not given, is unseen
    asked += [f"--immediate={limit}", f"--job-name={job}", *options]
    done = ask(["srun", *asked, *command], limit + START)
    if done is None:
        return None, "there is no srun here"
    if done.timed_out:
        ask(["scancel", f"--name={job}"])
        return None, f"srun: a node of {queue} did not answer in {limit + START:.0f} s"
    if not done.ok:
        said = [line.strip() for line in done.errors.splitlines() if line.strip()]
        return None, "; ".join(said[-2:]) or f"srun: exit status {done.status}"
    return read(done.stdout)


def read(text: bytes) -> Answer:
    """The machine in the output of `mvstack discover --json`; else why it is none."""
    begins = re.search(rb"^\{", text, re.M)  # below what a prolog prints
    try:
        machine = Machine.model_validate_json(text[begins.start() if begins else 0 :])
        lacking = [one for one in Machine.model_fields if one not in machine.model_fields_set]
    except ValidationError as error:
        return None, f"{NO_MACHINE}: {error.errors()[0]['msg']}"
    return (None, f"{NO_MACHINE}: no {lacking[0]}") if lacking else (machine, "")


def by_hand(line: str, queue: str, command: Sequence[str], options: Sequence[str] = ()) -> str:
    """``line`` of a scheduler (its ``look``), which writes what a node found to <queue>.json."""
    file = shlex.quote(f"{Path.cwd()}/{queue}.json")
    found = shlex.quote(f"{shlex.join(command)} > {file}")
    return line.format(queue=queue, line=found, options="".join(f" {one}" for one in options))
