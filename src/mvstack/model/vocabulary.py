"""The words that hand-written files may use; the field's own, wherever it has one."""

from __future__ import annotations

from typing import Literal, get_args

Fabric = Literal[
    "infiniband",
    "roce",
    "iwarp",
    "omni-path",
    "slingshot-10",
    "slingshot-11",
    "efa",
    "psm3",
    "rockport",
    "aries",
    "tcp",
    "shm",
]
Gpu = Literal["none", "nvidia", "amd", "amd-mi300a", "intel", "gaudi"]
GpuKind = Literal["none", "nvidia", "amd", "intel"]
Launcher = Literal[
    "srun",
    "hydra",
    "mpirun_rsh",
    "flux",
    "mpijob",
    "jsrun",
    "pals",
    "gforker",
    "remshell",
]
Pmi = Literal["simple", "pmi1", "pmi2", "pmix", "cray"]
Builder = Literal["easybuild", "spack"]
Scheduler = Literal["none", "slurm", "flux", "pbs", "lsf", "kubernetes"]
Product = Literal["mvapich", "mvapich2", "mvapich-plus", "mvapich2-gdr", "mvapich2-x", "mpich"]
Origin = Literal["system", "easybuild", "spack", "external"]
Profile = Literal["default", "small", "full"]
Provision = Literal["external", "embedded", "none"]

FABRICS: tuple[str, ...] = get_args(Fabric)
GPUS: tuple[str, ...] = get_args(Gpu)
LAUNCHERS: tuple[str, ...] = get_args(Launcher)
PRODUCTS: tuple[str, ...] = get_args(Product)
PROFILES: tuple[str, ...] = get_args(Profile)
"""How much of a release is installed: each profile holds what those before it hold."""
