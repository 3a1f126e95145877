"""ReFrame 4 site configuration of a partition, out of its plan.

The plan is the file that MVSTACK_PLAN names, else plan.json in the current folder:

    MVSTACK_PLAN=<tree>/rendered/plan.json reframe -C tests/reframe/settings.py -c tests/reframe -r
"""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path


def read_plan():
    """The plan that `mvstack` rendered or installed."""
    path = Path(os.environ.get("MVSTACK_PLAN", "plan.json"))
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(
            f"no plan can be read from {path}: {error}\n"
            "Set MVSTACK_PLAN to the partition's plan: <tree>/rendered/plan.json of an installation"
        ) from None


def find_lmod():
    """Lmod's folder. The shell that starts ReFrame may not know it: LMOD_PKG, then usual places."""
    usual = ("/usr/share/lmod/lmod", "/opt/apps/lmod/lmod", "/opt/lmod/lmod")
    for folder in (os.environ.get("LMOD_PKG", ""), *usual):
        if folder and Path(folder, "init/bash").is_file():
            return folder
    raise SystemExit(
        "Lmod is not installed, or not in a usual place: set LMOD_PKG to the folder that holds its "
        "init/bash (Debian: apt-get install lmod)"
    )


def environment(mpi):
    """ReFrame's environment for one MPI build of the plan."""
    packages = [
        f"package-{one['name'].lower().replace('.', '-')}"
        for one in PLAN["packages"]
        if one.get("mpi", "") in (mpi["module"], "")
    ]
    return {
        "name": mpi["module"].replace("/", "-").replace(".", "_"),
        "modules": [f"mvapich-stack/{PLAN['release']}", mpi["module"]],
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
        "features": [
            *("mpi", *packages),
            *(["gpu"] if mpi["gpu"] != "none" else []),
            *(["rails"] if mpi.get("rails") else []),
            *(["tuned"] if mpi.get("tuning") and not UNTUNED else []),
            *(["job"] if JOB else []),
        ],
        "extras": {
            "tree": PLAN["tree"],
            "mpi": mpi,
            "packages": PLAN["packages"],
            "hosts": PLAN.get("job", {}).get("hosts", "hostname"),
            "cores": PLAN["cores"],
            "nodes": JOB.get("nodes", 1),
            "per_node": JOB.get("per_node", PLAN["cores"]),
        },
    }


def bindings_of_flux():
    """Folders of the Python bindings of the `flux` on PATH, for this Python."""
    flux = shutil.which("flux")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return list(map(str, Path(flux).parents[1].glob(f"lib*/flux/{version}"))) if flux else []


PLAN, LMOD = read_plan(), find_lmod()
# Nothing is submitted to Kubernetes: checks run in one pod.
JOB = {} if PLAN.get("scheduler") == "local" else PLAN.get("job", {})
UNTUNED = os.environ.get("MVAPICH_STACK_UNTUNED") == "1"  # then modules set nothing that was tuned
MODULES = f"{PLAN['tree']}/modules/Core"
os.environ["LMOD_CMD"] = f"{LMOD}/libexec/lmod"
os.environ["MODULEPATH"] = MODULES
FIRST = PLAN["mpi"][0]
SCHEDULER = PLAN.get("scheduler") or ("squeue" if FIRST["launcher"] == "srun" else "local")
if SCHEDULER == "flux":  # ReFrame imports them
    sys.path += bindings_of_flux()
ENVIRONMENTS = [environment(mpi) for mpi in PLAN["mpi"]]

site_configuration = {
    "systems": [
        {
            "name": PLAN["system"],
            "descr": f"release {PLAN['release']}, built by {PLAN['builder']}",
            "hostnames": [".*"],
            "modules_system": "lmod",
            "max_local_jobs": 1,
            "partitions": [
                {
                    "name": PLAN["partition"],
                    "scheduler": SCHEDULER,
                    "launcher": PLAN.get("starter", "local"),
                    "access": PLAN.get("access", []),
                    # One job at a time: a benchmark beside another check measures both.
                    "max_jobs": 1 if SCHEDULER == "local" else 8,
                    "processor": {"num_cpus": PLAN["cores"]},
                    "features": [
                        *(["gpu"] if FIRST["gpu"] != "none" else []),
                        f"fabric-{FIRST['fabric']}",
                        f"built-by-{PLAN['builder']}",
                    ],
                    "environs": [one["name"] for one in ENVIRONMENTS],
                    "prepare_cmds": [
                        f"source {shlex.quote(LMOD)}/init/bash",
                        f"export MODULEPATH={shlex.quote(MODULES)}",
                        *([] if SCHEDULER == "local" else ["trap 'exit 1' ERR"]),
                    ],
                },
            ],
        },
    ],
    "environments": ENVIRONMENTS,
    "general": [
        {
            "resolve_module_conflicts": False,
            # Without accounting Slurm tells no exit code, and ReFrame takes that for a failure:
            # there the trap in prepare_cmds and the checks' own last line take its place.
            "trap_job_errors": SCHEDULER == "local",
            "remote_detect": False,
        },
    ],
    "storage": [{"enable": False}],
    "logging": [
        {
            "level": "debug",
            "handlers$": [
                {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            ],
            "handlers": [
                {
                    "type": "file",
                    "name": "reframe.log",
                    "level": "debug",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                    "append": False,
                },
            ],
        },
    ],
}
