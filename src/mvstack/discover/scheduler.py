"""The scheduler, how it launches MPI programs, and the PMI that it dictates."""

import re
from dataclasses import dataclass

from mvstack.discover.machine import Machine
from mvstack.discover.view import View

# What is asked of a batch system, its version in the answer, its launcher and its command.
BATCH = {
    "pbs": ("qstat --version", r"pbs_version\s*[=:]\s*([\w.+-]+)", "pals", "palstat"),
    "torque": ("qstat --version", r"(?m)^[Vv]ersion:\s*([\w.+-]+)", "pals", "palstat"),
    "lsf": ("lsid", r"LSF\b.*?([0-9]+\.[0-9]+[0-9A-Za-z.]*)", "jsrun", "jsrun"),
}

SILENT = "Slurm is installed and its controller does not answer"


@dataclass(frozen=True)
class Launch:
    """A scheduler that answers, its launcher, and how each of them was found."""

    scheduler: str
    answer: str
    launcher: str
    because: str


def read_scheduler(view: View, machine: Machine) -> None:
    """Ask Slurm, Flux, PBS, TORQUE, LSF; installed commands without a controller do not count."""
    if not view.tools_known:
        for name in ("scheduler", "launcher"):
            machine.found(name, "no tool's output is known for this root")
        return
    if view.environment("KUBERNETES_SERVICE_HOST"):
        machine.note(
            "this is a Kubernetes pod: if MPI jobs are MPIJobs of the cluster, set "
            "scheduler: kubernetes and launcher: mpijob"
        )
    answers = [_slurm(view, machine), _flux(view, machine)]
    answers += [_batch(view, name, *row) for name, row in BATCH.items()]
    found = [launch for launch in answers if launch is not None]
    if not found:
        none = "no Slurm, Flux, PBS, TORQUE or LSF that answers"
        found = [Launch("none", none, "hydra", "no scheduler: MPI's own hydra")]
    best = found[0]
    if len(found) > 1:
        names = ", ".join(launch.scheduler for launch in found)
        if view.environment("FLUX_URI"):
            best = next((launch for launch in found if launch.scheduler == "flux"), best)
        machine.note(f"more than one scheduler answers ({names}): {best.scheduler} was taken")
    machine.found("scheduler", best.answer, best.scheduler)
    machine.found("launcher", best.because, best.launcher)
    if best.scheduler == "slurm":
        _read_pmi(view, machine)


def _slurm(view: View, machine: Machine) -> Launch | None:
    asked = view.ask("sinfo --version")
    if asked is None:
        return None
    config = view.ask("scontrol show config")
    if config is not None and not config.ok:
        why = "no answer in 5 s" if config.timed_out else config.said.strip()
        machine.note(
            f"{SILENT} ({why}): taken as no scheduler; if it should answer, "
            "set scheduler: slurm and launcher: srun"
        )
        return None
    version = slurm_version(asked.said) or "of unknown version"
    return Launch("slurm", f"sinfo --version: slurm {version}", "srun", "scheduler slurm")


def slurm_mpi(view: View) -> list[str]:
    """Slurm's MPI plugins as srun names them."""
    listed = view.ask("srun --mpi=list")
    return slurm_plugins(listed.said) if listed else []


def slurm_version(text: str) -> str:
    """The version that ``sinfo --version`` prints."""
    match = re.search(r"slurm\S*\s+([0-9][0-9A-Za-z_.+-]*)", text)
    return match[1][:40] if match else ""


def slurm_plugins(text: str) -> list[str]:
    """The names that ``srun --mpi=list`` prints, in its order; old and new forms of it."""
    names = []
    for line in text.splitlines():
        if "version" in line:
            continue  # "specific pmix plugin versions available: pmix_v4"
        word = line.removeprefix("srun:").strip()
        if re.fullmatch(r"[a-z][a-z0-9_]{1,19}", word) and word not in names:
            names.append(word)
    return names


def _read_pmi(view: View, machine: Machine) -> None:
    """The PMI that Slurm starts programs with."""
    line = re.search(r"^MpiDefault\s*=\s*(\S+)", view.say("scontrol show config"), re.M)
    default = line[1] if line else "unknown"
    known = {"pmi2": "pmi2", "pmi1": "pmi1", "cray_shasta": "cray"}
    pmi = "pmix" if default.startswith("pmix") else known.get(default)
    if pmi is not None:
        machine.found("pmi", f"Slurm: MpiDefault = {default}", pmi)
        return
    plugins = slurm_mpi(view)
    pmi = next((name for name in ("pmi2", "pmix") if name in plugins), None)
    if pmi is None:
        machine.found("pmi", "Slurm names no PMI plugin")
        machine.note(
            f"Slurm's PMI is not known (MpiDefault {default}, srun --mpi=list names "
            f"{', '.join(plugins) or 'none'}): started with the wrong one, a program "
            "runs as N singletons"
        )
        return
    machine.found("pmi", f"srun --mpi=list; MpiDefault = {default}", pmi)
    machine.note(f"Slurm's MpiDefault is {default}: start programs with srun --mpi={pmi}")


def _flux(view: View, machine: Machine) -> Launch | None:
    text = view.say("flux --version")
    if not text:
        return None
    if not (view.environment("FLUX_URI") or view.exists("/run/flux/local")):
        machine.note("flux is installed and no instance runs here: taken as no scheduler")
        return None
    match = re.search(r"^commands:\s*([0-9][0-9A-Za-z_.+-]*)", text, re.M)
    version = match[1][:40] if match else "unknown"
    answer = f"flux --version: {version}; an instance runs"
    return Launch("flux", answer, "flux", "scheduler flux")


def _batch(
    view: View, name: str, question: str, version: str, launcher: str, command: str
) -> Launch | None:
    """A scheduler that told its version, with its own launcher where that is here."""
    asked = view.ask(question)
    match = re.search(version, asked.said) if asked else None
    if match is None:
        return None
    answer = f"{question}: {name} {match[1][:40]}"
    if view.which(command):
        return Launch(name, answer, launcher, f"{command} is on PATH")
    return Launch(name, answer, "hydra", f"{command} is not on PATH: MPI's own hydra")
