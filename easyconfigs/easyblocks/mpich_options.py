"""What MPICH's configure knows, for the MPICH that serves as the reference MPI.

Read from the source of MPICH 4.0.2: `ac_user_opts` in its configure and in those of src/mpl,
modules/yaksa and src/mpi/romio; the folders src/pm and src/pmi; ROMIO's `known_filesystems`.
Other 4.0.x versions are taken from it and marked unconfirmed.
"""

from collections import namedtuple

# The same fields as those of the tables for MVAPICH.
VersionOptions = namedtuple(
    "VersionOptions", "flags devices pmi pm file_systems gpu confirmed source"
)

NAMES_4_0 = (
    "--with-device",
    "--with-pmi",
    "--with-pm",
    "--with-libfabric",
    "--with-ucx",
    "--with-hwloc",
    "--with-pmix",
    "--with-slurm",
    "--with-xpmem",
    "--with-cuda",
    "--with-hip",
    "--with-ze",
    "--with-datatype-engine",
    "--with-yaksa",
    "--with-hcoll",
    "--with-ch4-shmmods",
    "--with-ch4-max-vcis",
    "--with-wrapper-dl-type",
    "--with-namepublisher",
    "--with-file-system",
    "--enable-fast",
    "--enable-fortran",
    "--enable-f08",
    "--enable-cxx",
    "--enable-romio",
    "--enable-threads",
    "--enable-thread-cs",
    "--enable-error-checking",
    "--enable-shared",
    "--enable-static",
    "--enable-g",
    "--enable-timing",
)

# In both spellings, as in the tables for MVAPICH.
FLAGS_4_0 = frozenset(NAMES_4_0) | frozenset(
    name.replace("--enable-", "--disable-").replace("--with-", "--without-") for name in NAMES_4_0
)

MPICH_4_0 = VersionOptions(
    flags=FLAGS_4_0,
    devices=frozenset(
        ("ch4:ofi", "ch4:ucx", "ch3:nemesis", "ch3:nemesis:tcp", "ch3:nemesis:ofi", "ch3:sock")
    ),
    pmi=frozenset(("simple", "pmi2", "pmix", "slurm", "cray")),
    pm=frozenset(("hydra", "gforker", "remshell", "none", "slurm")),
    file_systems=frozenset(
        (
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
    ),
    gpu=frozenset(("none", "cuda", "rocm", "ze")),
    confirmed=True,
    source="configure, src/pm, src/pmi, ROMIO's configure of MPICH 4.0.2",
)


def options_for(version):
    """The options of an MPICH version; LookupError when nobody has read that one's configure."""
    if version == "4.0.2":
        return MPICH_4_0
    if version.startswith("4.0."):
        return MPICH_4_0._replace(confirmed=False, source="taken from 4.0.2")
    raise LookupError(
        f"no table of configure options for MPICH {version}: known is 4.0.x, see "
        "easyconfigs/easyblocks/mpich_options.py"
    )
