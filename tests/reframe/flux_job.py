"""A check's job under Flux: an instance of its own with the cores that the check asks for.

ReFrame's backend asks for one core of one node whatever a check needs, and leaves the partition's
options out. Its job is replaced by what `flux batch` makes of the same script.
"""

import json
import subprocess


def words(check):
    """The `flux batch` command that prints the job of a check."""
    job, per_node = check.job, check.num_tasks_per_node
    return [
        *("flux", "batch", "--dry-run", f"--nslots={check.num_tasks}"),
        *([f"--nodes={check.num_tasks // per_node}"] if per_node else []),
        *(["--gpus-per-slot=1"] if check.mpi["gpu"] != "none" else []),
        *(f"--output={job.workdir}/{job.stdout}", f"--error={job.workdir}/{job.stderr}"),
        *(f"--cwd={job.workdir}", f"--time-limit={check.time_limit}s"),
        *(*check.current_partition.access, "--wrap", "/bin/bash", job.script_filename),
    ]


def ask_for(check):
    """Have the job of ``check`` ask for what it needs."""
    from flux.job import JobspecV1  # it is there where ReFrame's backend runs

    command = words(check)
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(f"{' '.join(command)}: {made.stderr.strip()}")
    check.job.fluxjob = JobspecV1(**json.loads(made.stdout))
