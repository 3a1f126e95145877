"""The scheduler, how it launches MPI programs, and the PMI that it dictates."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from mvstack.discover.machine import Findings
from mvstack.discover.view import View


@dataclass(frozen=True)
class Batch:
    """What is asked of a batch system, its version in the answer, its launcher and its command."""

    question: tuple[str, ...]
    version: str
    launcher: str
    command: str


BATCH = {
    "pbs": Batch(
        ("qstat", "--version"),
        r"(?:pbs_version|Version)\s*[=:]\s*([0-9A-Za-z_.+-]+)",
        "pals",
        "palstat",
    ),
    "lsf": Batch(("lsid",), r"LSF\b.*?([0-9]+\.[0-9]+[0-9A-Za-z.]*)", "jsrun", "jsrun"),
}


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("sinfo", "--version"),
    ("scontrol", "show", "config"),
    ("srun", "--mpi=list"),
    ("flux", "--version"),
    *(batch.question for batch in BATCH.values()),
)
"""The questions asked here."""


@dataclass(frozen=True)
class Launch:
    """Scheduler, launcher and PMI; ``mpi`` are Slurm's plugins (``srun --mpi=list``)."""

    scheduler: str | None
    launcher: str | None
    pmi: str | None = None
    mpi: list[str] = field(default_factory=list)
    how: dict[str, str] = field(default_factory=dict)


def read_scheduler(view: View, findings: Findings) -> Launch:
    """Ask Slurm, Flux, PBS and LSF; installed commands without a controller do not count."""
    if not view.tools_known:
        for name in ("scheduler", "launcher"):
            findings.found(name, "no tool's output is known for this root")
        return Launch(None, None)
    _hint_kubernetes(view, findings)
    answers = [_slurm(view, findings), _flux(view, findings)]
    answers += [_batch(view, name, batch) for name, batch in BATCH.items()]
    found = [launch for launch in answers if launch is not None]
    if not found:
        findings.found("scheduler", "no Slurm, Flux, PBS or LSF that answers")
        findings.found("launcher", "no scheduler: MPI's own hydra")
        return Launch("none", "hydra")
    best = found[0]
    if len(found) > 1:
        names = ", ".join(str(launch.scheduler) for launch in found)
        if view.environment("FLUX_URI"):
            best = next((launch for launch in found if launch.scheduler == "flux"), best)
        findings.note(f"more than one scheduler answers ({names}): {best.scheduler} was taken")
    for name, how in best.how.items():
        findings.found(name, how)
    return best


def _slurm(view: View, findings: Findings) -> Launch | None:
    asked = view.ask("sinfo", "--version")
    if asked is None:
        return None
    config = view.ask("scontrol", "show", "config")
    if config is not None and not config.ok:
        why = "no answer in 5 s" if config.timed_out else config.text.strip()
        findings.note(
            f"Slurm is installed and its controller does not answer ({why}): taken as "
            "no scheduler; if it should answer, set scheduler: slurm and launcher: srun"
        )
        return None
    plugins = slurm_plugins((view.ask("srun", "--mpi=list") or asked).text)
    default = re.search(r"^MpiDefault\s*=\s*(\S+)", config.text if config else "", re.M)
    pmi, why = _slurm_pmi(default[1] if default else "", plugins, findings)
    how = {
        "scheduler": f"sinfo --version: slurm {slurm_version(asked.text) or 'of unknown version'}",
        "launcher": "scheduler slurm",
        "pmi": why,
    }
    return Launch("slurm", "srun", pmi, plugins, how)


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


def _slurm_pmi(default: str, plugins: list[str], findings: Findings) -> tuple[str | None, str]:
    known = {"pmi2": "pmi2", "pmi1": "pmi1", "cray_shasta": "cray"}
    if default.startswith("pmix"):
        pmi: str | None = "pmix"
    else:
        pmi = known.get(default)
    if pmi is not None:
        return pmi, f"Slurm: MpiDefault = {default}"
    pmi = next((name for name in ("pmi2", "pmix") if name in plugins), None)
    if pmi is None:
        findings.note(
            f"Slurm's PMI is not known (MpiDefault {default or 'unknown'}, srun --mpi=list names "
            f"{', '.join(plugins) or 'none'}): started with the wrong one, a program "
            "runs as N singletons"
        )
        return None, "Slurm names no PMI plugin"
    findings.note(
        f"Slurm's MpiDefault is {default or 'unknown'}: start programs with srun --mpi={pmi}"
    )
    return pmi, f"srun --mpi=list; MpiDefault = {default or 'unknown'}"


def _flux(view: View, findings: Findings) -> Launch | None:
    text = view.say("flux", "--version")
    if not text:
        return None
    if not (view.environment("FLUX_URI") or view.exists("/run/flux/local")):
        findings.note("flux is installed and no instance runs here: taken as no scheduler")
        return None
    match = re.search(r"^commands:\s*([0-9][0-9A-Za-z_.+-]*)", text, re.M)
    version = match[1][:40] if match else "unknown"
    how = {
        "scheduler": f"flux --version: {version}; an instance runs",
        "launcher": "scheduler flux",
    }
    return Launch("flux", "flux", how=how)


def _batch(view: View, name: str, batch: Batch) -> Launch | None:
    """A scheduler that told its version, with its own launcher where that is here."""
    asked = view.ask(*batch.question)
    match = re.search(batch.version, asked.text) if asked else None
    if match is None:
        return None
    here = bool(view.which(batch.command))
    launched = "is on PATH" if here else "is not on PATH: MPI's own hydra"
    how = {
        "scheduler": f"{shlex.join(batch.question)}: {name} {match[1][:40]}",
        "launcher": f"{batch.command} {launched}",
    }
    return Launch(name, batch.launcher if here else "hydra", how=how)


def _hint_kubernetes(view: View, findings: Findings) -> None:
    if view.environment("KUBERNETES_SERVICE_HOST"):
        findings.note(
            "this is a Kubernetes pod: if MPI jobs are MPIJobs of the cluster, set "
            "scheduler: kubernetes and launcher: mpijob"
        )
