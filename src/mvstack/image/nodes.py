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
from mvstack.image.plan import ImagePlan
from mvstack.image.vm import Machine
from mvstack.support.errors import BuildFailed, CheckFailed
from mvstack.support.processes import Limits, TimedOut, follow, started

THERE = "/tmp/mvapich-stack-test"
SILENCE = 1200.0  # seconds; the longest check takes two minutes in an emulated machine
ALONE = "only srun starts ranks on several machines"
Note = Callable[[str], None]


def smoke(job: Job, machines: Sequence[Machine], work: Path, note: Note) -> dict[str, Any]:
    """The test on the first of ``machines``; of several, ranks run on all. Its row of the report.

    Without srun ranks do not run among several, and the row says so.
    """
    several = len(machines) > 1
    name = f"smoke among {len(machines)} machines" if several else "smoke"
    if several and not spread(job.image):
        return {"name": name, "result": "skip", "why": ALONE}
    more = {"nodes": _nodes(machines), "munge.key": secrets.token_bytes(128)} if several else {}
    archive = kit.smoke_archive(job.files, more)
    for one in machines:
        brought = one.run(f"mkdir -p {THERE} && tar -C {THERE} -xf -", data=archive)
        if not brought.ok:
            said = brought.errors.strip()[-300:]
            raise CheckFailed("the test could not be copied there", one.where, found=said)
    log = work / ("nodes.log" if several else "smoke.log")
    command = f"sudo bash {THERE}/provision/smoke"
    with contextlib.ExitStack() as stack:
        logs = {}
        for number, one in enumerate(machines[1:], 2):
            line, where = one.ssh(f"{command} --node {number}"), work / f"node-{number}.log"
            logs[where] = stack.enter_context(_serving(one, line, where))
        for where, process in logs.items():
            _ready(where, process, note)
        command += " --node 1" if several else ""
        status = followed(machines[0].ssh(command), os.environ, log, note)
    said = " ".join(log.read_text().split())
    # what comes after it are the packages that are removed
    why = said[said.rfind("FAILED:") :][:500] if "FAILED:" in said else said[-500:]
    result = "pass" if status == 0 else "fail"
    return {"name": name, "result": result, "why": why if status else ""}


def spread(image: ImagePlan) -> bool:
    """Whether the image's launch lines can start ranks on several machines."""
    return all(" srun " in f" {row['launch']} " for row in image.launch)


def _nodes(machines: Sequence[Machine]) -> bytes:
    """Host name and address of each machine, a line each: the address that ssh reached it at."""
    rows = []
    for one in machines:
        done = one.run('set -- $SSH_CONNECTION; echo "$(hostname -s) $3"')
        rows.append(done.text.strip())
        if len(rows[-1].split()) != 2 or " 127." in rows[-1]:
            what = "it does not say at which address the others reach it"
            raise CheckFailed(what, one.where, found=done.said.strip()[-300:])
    if len({row.split()[0] for row in rows}) < len(rows):
        raise CheckFailed("two machines have the same host name", found="; ".join(rows))
    return "".join(f"{row}\n" for row in rows).encode()


@contextlib.contextmanager
def _serving(
    machine: Machine, command: Sequence[str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Have a machine serve the ranks that the first starts, until the block ends."""
    with log.open("wb") as stream, started(command, os.environ, stream) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(BuildFailed, subprocess.TimeoutExpired):
                machine.run(f"touch {THERE}/end", limit=30)
                process.wait(120)  # it takes away what it installed


def _ready(log: Path, process: subprocess.Popen[bytes], note: Note) -> None:
    """Wait until a machine says so. Raises CheckFailed with what it said instead."""
    began = time.monotonic()
    while "ready" not in (said := log.read_text(errors="replace")).splitlines():
        if process.poll() is not None or time.monotonic() - began > SILENCE:
            found = said.strip()[-600:]
            raise CheckFailed("a machine cannot run ranks", str(log), found=found)
        note("the other machines get ready")
        time.sleep(1)


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
                f"a test said nothing for {SILENCE / 60:.0f} minutes, and was ended",
                str(log),
                todo="see what it did last: a collective that hangs looks like this",
            ) from None
