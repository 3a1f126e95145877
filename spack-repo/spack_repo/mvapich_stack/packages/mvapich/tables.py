"""What the recipe knows of MVAPICH as tables: file systems, and what is refused."""

FILE_SYSTEMS = (
    "daos",
    "gpfs",
    "ime",
    "lustre",
    "nfs",
    "panfs",
    "pvfs2",
    "quobytefs",
    "testfs",
    "ufs",
    "xfs",
)

# Upstream published 4.1's tarball twice under one name. The recipe holds the hash of the second.
REFUSED_4_1 = "a36c459befd5b0d1b66e4a217250d89d9f77b903fcc4a050efddb1c475b8dcab"

# Every set of embedded libraries without the one named: configure takes that one from outside.
OUTSIDE = {
    "libfabric": ("none", "hwloc", "ucx", "hwloc,ucx"),
    "ucx": ("none", "hwloc", "libfabric", "hwloc,libfabric"),
    "hwloc": ("none", "libfabric", "ucx", "libfabric,ucx"),
}

# (what is refused, when, what to say instead), in the order of Spack's conflicts().
REFUSALS = (
    ("embedded=libfabric", "netmod:=ucx", "use netmod=ofi, or embed ucx"),
    ("embedded=ucx", "netmod:=ofi", "use netmod=ucx, or embed libfabric"),
    (
        "embedded=libfabric",
        "fabrics=slingshot-11",
        "the embedded libfabric has no cxi provider: use embedded=none with libfabric fabrics=cxi",
    ),
    (
        "embedded=libfabric",
        "fabrics=psm3",
        "psm3 of the embedded libfabric fails when a program ends (RELEASE_NOTES): use "
        "embedded=none with libfabric fabrics=psm3",
    ),
    *(
        (
            f"pmi={pmi}",
            f"process_managers={manager}",
            f"{manager} speaks PMI 1 only: use pmi=simple, or process_managers=hydra",
        )
        for manager in ("gforker", "remshell")
        for pmi in ("pmi2", "pmix", "cray")
    ),
    *(
        (
            "pmi=pmix",
            f"process_managers={manager}",
            "hydra serves no external PMIx: use process_managers=slurm (or none), or pmi=simple",
        )
        for manager in ("auto", "hydra")
    ),
    *(
        (
            "pmi=cray",
            f"process_managers={manager}",
            "Cray's own srun or aprun starts the ranks: use process_managers=none",
        )
        for manager in ("auto", "hydra", "slurm")
    ),
    *(
        (
            "pmi=pmi1",
            f"@:3 process_managers={manager}",
            "3.0 calls its own PMI 1 simple: use pmi=simple",
        )
        for manager in ("auto", "none", "hydra", "gforker", "remshell")
    ),
    # ipc_p2p.h of 4.0 calls MPIDI_CMA_copy_data_coop and _rput whether or not they were compiled;
    # seen 2026-11-21: libmpi.so does not link when configure does not find process_vm_readv.
    (
        "~cma",
        "@4.0:",
        "4.0 does not link without CMA: use +cma, and MPIR_CVAR_CH4_CMA_ENABLE=0 at run time",
    ),
    ("+rocm", "@:3", "3.0 knows no ROCm: use @4.0 or newer"),
    ("+cuda", "+rocm", "one kind of GPU in one build: use +cuda or +rocm"),
    ("+cuda", "+level_zero", "one kind of GPU in one build: use +cuda or +level_zero"),
    ("+rocm", "+level_zero", "one kind of GPU in one build: use +rocm or +level_zero"),
    *(
        (
            "datatype_engine=dataloop",
            f"+{gpu}",
            "only yaksa packs GPU buffers: use datatype_engine=yaksa",
        )
        for gpu in ("cuda", "rocm", "level_zero")
    ),
)
