"""The environment in which checks run: the module's settings, not those of whoever starts them."""

from __future__ import annotations

from collections.abc import Mapping

# Lmod's memory of what is loaded, and a parent's place in another MPI job.
_STATE = (
    "MODULEPATH",
    "LOADEDMODULES",
    "_LMFILES_",
    "_ModuleTable",
    "__LMOD_",
    "BASH_FUNC_module",
    "BASH_FUNC_ml",
    "PMI_",
    "PMIX_",
    "RFM_",
)
# What changes how an MPI behaves: checks must see what `module load` alone gives.
_TUNING = ("MPIR_CVAR_", "MPICH_", "MVP_", "MV2_", "FI_", "UCX_", "I_MPI_", "HYDRA_")


def for_checks(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """``environ`` without module state and MPI settings, and the names of the settings left out."""
    kept = {
        name: value for name, value in environ.items() if not name.startswith((*_STATE, *_TUNING))
    }
    kept["PYTHONUNBUFFERED"] = "1"  # so that lines arrive when they are printed
    return kept, sorted(name for name in environ if name.startswith(_TUNING))
