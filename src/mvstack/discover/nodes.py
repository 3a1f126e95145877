"""Have a node of each partition look at itself: by Slurm's srun, or by lines for a person."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from mvstack.discover.machine import Machine
from mvstack.discover.merge import Answer
from mvstack.discover.view import ask

NO_MACHINE = "not what `mvstack discover --json` of this version prints"
START = 15.0  # seconds beyond the limit of a job: srun, and the program on the node


def slurm_partitions() -> dict[str, int]:
    """Slurm's partitions and how many nodes each has, in the order in which it lists them."""
    done = ask(["sinfo", "--noheader", "--format=%R|%D"])
    found: dict[str, int] = {}
    for name, count in re.findall(r"^(\S+)\|(\d+)$", done.text if done and done.ok else "", re.M):
        found[name] = found.get(name, 0) + int(count)
    return found


def by_srun(queue: str, command: Sequence[str], limit: int, options: Sequence[str]) -> Answer:
    """What ``command`` (`mvstack discover --json`) says on a node of ``queue``; else why nothing.

    A node that is not free within ``limit`` seconds is not waited for, nor one that does not answer
    so long; the job of that one is cancelled.
    """
    job = f"mvstack-adopt-{os.getpid()}-{queue}"
    asked = [f"--partition={queue}", "--nodes=1", "--ntasks=1", "--mpi=none"]
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
    try:
        machine = Machine.model_validate_json(text)
        lacking = [one for one in Machine.model_fields if one not in machine.model_fields_set]
    except ValidationError as error:
        return None, f"{NO_MACHINE}: {error.errors()[0]['msg']}"
    return (None, f"{NO_MACHINE}: no {lacking[0]}") if lacking else (machine, "")


def by_hand(line: str, queue: str, command: Sequence[str]) -> str:
    """``line`` of a scheduler (its ``look``), which writes what a node found to <queue>.json."""
    found = shlex.quote(f"{shlex.join(command)} > {Path.cwd()}/{queue}.json")
    return line.format(queue=queue, line=found)
