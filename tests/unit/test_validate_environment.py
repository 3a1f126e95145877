"""What the checks see of the caller's environment."""

from __future__ import annotations

from mvstack.test import run


def test_module_state_and_mpi_settings_do_not_reach_the_checks():
    kept, ignored = run.for_checks(
        {
            "HOME": "/home/someone",
            "PATH": "/usr/bin",
            "LMOD_PKG": "/opt/lmod/lmod",
            "MODULEPATH": "/old",
            "LOADEDMODULES": "openmpi/4",
            "_ModuleTable001_": "x",
            "__LMOD_REF_COUNT_PATH": "/old:1",
            "BASH_FUNC_module%%": "() { :; }",
            "PMI_RANK": "0",
            "RFM_PREFIX": "/elsewhere",
            "FI_PROVIDER": "shm",
            "MPIR_CVAR_ENABLE_GPU": "1",
        }
    )
    assert kept == {
        "HOME": "/home/someone",
        "PATH": "/usr/bin",
        "LMOD_PKG": "/opt/lmod/lmod",
        "PYTHONUNBUFFERED": "1",
    }
    assert ignored == ["FI_PROVIDER", "MPIR_CVAR_ENABLE_GPU"]
