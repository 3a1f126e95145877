"""Runs a project's pipeline, with its child pipelines, and reads how each job ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from gitlab import listing, tool
from gitlab.command import STATE, Setting, manual, recorded
from gitlab.outcomes import outcomes
from gitlab.project import Project
from gitlab.records import read, refuse_collisions
from gitlab.result import Result

LOOPBACK = Path(__file__).resolve().parents[1] / "slurm" / "loopback"
# Exit status of tests/slurm/loopback when Slurm did not start.
NO_SLURM = 125


def run(
    project: Project,
    variables: Mapping[str, str] | None = None,
    *,
    source: str = "push",
    fork: bool = False,
    protected: bool | None = None,
    file_variables: Mapping[str, str] | None = None,
    jobs: Sequence[str] = (),
    manual_jobs: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    slurm: tuple[int, int] | None = None,
    concurrency: int = 2,
    timeout: float = 600,
    file: str = ".gitlab-ci.yml",
) -> Result:
    """Run the pipeline of what is checked out in ``project``.

    ``variables`` and ``file_variables`` (name: content; the job gets a path) are the project's, so
    child pipelines have them too. ``source`` is CI_PIPELINE_SOURCE; ``merge_request_event`` brings
    its CI_MERGE_REQUEST_* and takes CI_COMMIT_BRANCH away; ``fork`` says that the request comes
    from another project. ``protected``: CI_COMMIT_REF_PROTECTED, by itself only on ``main``.
    ``jobs``: only these, and those that they need; ``manual_jobs`` are started like the others.
    ``environment`` is added to the processes' (a clean one, with this machine's way to the
    network). ``slurm``: nodes and processors of each, of a Slurm that the jobs can submit to.
    ``timeout`` in seconds.

    Skips where gitlab-ci-local, or Slurm, is not installed. Raises Collision (see there), and
    TimeoutExpired after everything that ran has been stopped.
    """
    command = tool.install()
    if slurm:
        needs_slurm()
    setting = _setting(
        project, variables, source, fork, protected, file_variables, environment, file
    )
    setting.write_variables()
    _forget(project)
    kept = Path(tempfile.mkdtemp(prefix="run-", dir=project.server.home))
    log, records = kept / "log", kept / "records"
    records.mkdir()
    words = [*command, *setting.words(), "--json-schema-validation"]
    words += ["--concurrency", str(concurrency), *manual(manual_jobs)]
    words += [*jobs, "--needs"] if jobs else []
    if slurm:
        nodes, cpus = (str(number) for number in slurm)
        # Its folder is its own, in TMPDIR: below a test's, paths are too long for its sockets.
        words = [sys.executable, str(LOOPBACK), "-n", nodes, "-c", cpus, "--", *words]
    clean = setting.clean(Path(command[0]))
    status = _watched(
        words, project.folder, recorded(clean, project.server.home / "bin", records), log, timeout
    )
    if slurm and status == NO_SLURM:
        raise RuntimeError(f"Slurm did not start: {log.read_text()}")
    found = read(records)
    refuse_collisions(found)
    return Result(
        jobs=tuple(outcomes(command, setting, found, log)),
        status=status,
        log=log,
        chosen=bool(jobs),
    )


def preview(
    project: Project, variables: Mapping[str, str] | None = None, *, source: str = "push"
) -> str:
    """The project's pipeline as YAML, with includes, inputs and references resolved."""
    setting = _setting(project, variables, source, False, None, None, None, ".gitlab-ci.yml")
    setting.write_variables()
    _forget(project)
    return listing.preview(tool.install(), setting)


def needs_slurm() -> None:
    """Skip where Slurm is not installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    programs = ("slurmctld", "slurmd", "srun", "sbatch")
    if missing := [one for one in programs if not shutil.which(one, path=path)]:
        pytest.skip(f"skipped: unreachable: Slurm is not installed ({', '.join(missing)})")


def _setting(
    project: Project,
    variables: Mapping[str, str] | None,
    source: str,
    fork: bool,
    protected: bool | None,
    file_variables: Mapping[str, str] | None,
    environment: Mapping[str, str] | None,
    file: str,
) -> Setting:
    return Setting(
        project=project,
        source=source,
        variables=dict(variables or {}),
        file_variables=dict(file_variables or {}),
        fork=fork,
        protected=protected,
        environment=dict(environment or {}),
        file=file,
    )


def _forget(project: Project) -> None:
    """Take away what an earlier run left, except for the number of the last pipeline."""
    state = project.folder / STATE
    for path in state.iterdir() if state.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "state.yml":
            path.unlink()


def _watched(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, timeout: float
) -> int:
    """Run it with its output in ``log``; its status. Nothing that it started is left after it."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)  # the Slurm of its own stops
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
