"""What recipes that mind their MPI must agree on: which packages are MVAPICH, AMD's GPUs."""

PRODUCTS = ("mvapich", "mvapich-plus", "mvapich2", "mvapich2-gdr", "mvapich2-x")

#: AMD's GPUs, in the words of the variant `amdgpu_target` that builtin gives every ROCm package:
#: one that asks for mvapich+rocm must say for which of them, as there is no default.
AMD_GPUS = (
    "gfx701",
    "gfx801",
    "gfx802",
    "gfx803",
    "gfx900",
    "gfx900:xnack-",
    "gfx902",
    "gfx904",
    "gfx906",
    "gfx906:xnack-",
    "gfx908",
    "gfx908:xnack-",
    "gfx909",
    "gfx90a",
    "gfx90a:xnack-",
    "gfx90a:xnack+",
    "gfx90c",
    "gfx940",
    "gfx941",
    "gfx942",
    "gfx1010",
    "gfx1011",
    "gfx1012",
    "gfx1013",
    "gfx1030",
    "gfx1031",
    "gfx1032",
    "gfx1033",
    "gfx1034",
    "gfx1035",
    "gfx1036",
    "gfx1100",
    "gfx1101",
    "gfx1102",
    "gfx1103",
)


def mvapich(spec):
    """The MVAPICH that gives the concrete ``spec`` its MPI; None where it has another, or none."""
    if "mpi" not in spec:
        return None
    provider = spec["mpi"]
    return provider if provider.name in PRODUCTS else None
