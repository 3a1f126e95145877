"""Run the test in the image (images/provision/smoke) on one machine of it, or among several."""

import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mvstack.image import kit
from mvstack.image.job import Job
from mvstack.image.vm import Machine
from mvstack.support.errors import CheckFailed, Problem
from mvstack.support.processes import Limits, TimedOut, follow, started

THERE = "/tmp/mvapich-stack-test"
SILENCE = 1200.0  # seconds; the longest check takes two minutes in an emulated machine
Note = Callable[[str], None]


def smoke(job: Job, machines: Sequence[Machine], work: Path, note: Note) -> dict[str, Any]:
    """The test on the first of ``machines``; of several, ranks run on all. Its row of the report.

    Among several it needs srun: without it that row says it was left out.
    """
    several = len(machines) > 1
    name = f"smoke among {len(machines)} machines" if several else "smoke"
    more = {}
    if several:
        if not any(" srun " in f" {row['launch']} " for row in job.image.launch):
            return {"name": name, "result": "skip", "why": "only srun starts ranks elsewhere"}
        more = {"nodes": _nodes(machines), "munge.key": secrets.token_bytes(128)}
    archive = kit.smoke_archive(job.files, more)
    for one in machines:
        brought = one.run(f"mkdir -p {THERE} && tar -C {THERE} -xf -", data=archive)
        if not brought.ok:
            said = brought.errors.strip()[-300:]
            raise CheckFailed(Problem("the test could not be copied there", one.where, found=said))
    log = work / ("nodes.log" if several else "smoke.log")
    command = f"sudo bash {THERE}/provision/smoke"
    with contextlib.ExitStack() as stack:
        for number, one in enumerate(machines[1:], 2):
            line = one.ssh(f"{command} --node {number}")
            stack.enter_context(_serving(one, line, work / f"node-{number}.log", note))
        command += " --node 1" if several else ""
        status = followed(machines[0].ssh(command), os.environ, log, note)
    why = "" if status == 0 else " ".join(log.read_text().split())[-500:] or f"status {status}"
    return {"name": name, "result": "pass" if status == 0 else "fail", "why": why}


def _nodes(machines: Sequence[Machine]) -> bytes:
    """Host name and address of each machine, a line each: the address that ssh reached it at."""
    ask = 'set -- $SSH_CONNECTION; echo "$(hostname -s) $3"'
    rows = [one.run(ask).text.strip() for one in machines]
    if len({row.split()[0] for row in rows if row}) < len(rows):
        found = "; ".join(rows)
        raise CheckFailed(Problem("the machines' host names are not their own", found=found))
    return "".join(f"{row}\n" for row in rows).encode()


@contextlib.contextmanager
def _serving(machine: Machine, command: Sequence[str], log: Path, note: Note) -> Iterator[None]:
    """Have a machine serve the ranks that the first starts, until the block ends."""
    with log.open("wb") as stream, started(command, os.environ, stream) as process:
        began = time.monotonic()
        while "ready" not in (said := log.read_text(errors="replace")).splitlines():
            if process.poll() is not None or time.monotonic() - began > SILENCE:
                problem = Problem("this machine cannot run ranks", str(log), found=said[-600:])
                raise CheckFailed(problem)
            note(f"{machine.name} gets ready")
            time.sleep(1)
        yield
        machine.run(f"touch {THERE}/end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(120)  # it takes away what it installed


def followed(
    command: Sequence[str], env: Mapping[str, str], log: Path, note: Callable[[str], None]
) -> int:
    """Run it with its output in ``log``; its status. Raises CheckFailed when it falls silent."""
    with log.open("w", buffering=1) as stream:

        def line(text: str) -> None:
            stream.write(text + "\n")
            note(text.strip())

        try:
            return follow(command, env, line=line, limits=Limits(silence=SILENCE))
        except TimedOut:
            raise CheckFailed(
                Problem(
                    f"a test said nothing for {SILENCE / 60:.0f} minutes, and was ended",
                    str(log),
                    todo="see what it did last: a collective that hangs looks like this",
                )
            ) from None
