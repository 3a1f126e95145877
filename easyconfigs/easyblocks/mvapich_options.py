"""What each MVAPICH's configure knows, and what it does with options that it does not know.

Read from the sources: `ac_user_opts` in the configure scripts whose options reach the MPI library
(the top one and those of MPL, PMI, hydra, ROMIO and yaksa; not those of an embedded libfabric, UCX
or hwloc), the folders and case statements behind --with-device, --with-pm and --with-pmi, and
ROMIO's `known_filesystems`. Autoconf's, Automake's and Libtool's own options are the same
everywhere and are added to every version.

    2.3.7   tag v2.3.7 of the public import of MVAPICH's source
    3.0     tag v3.0rc of it, the release candidate: 3.0 itself is not there
    4.0     its branch master, "mvapich 4.0"
    4.1     not there: taken from 4.0, so not confirmed

MPICH's table is in ``mpich_options.py``. Run this file to see the tables:

    python easyconfigs/easyblocks/mvapich_options.py
"""

from collections import namedtuple

VersionOptions = namedtuple(
    "VersionOptions", "flags devices pmi pm file_systems gpu confirmed source"
)
VersionOptions.__doc__ = """What one version can be asked for; all but the last two are frozensets.

flags         names that its configure takes, in both spellings: --enable-fast and --disable-fast
devices       values for --with-device
pmi           words for the easyblock's parameter `pmi`
pm            words for the parameter `launcher`: process managers in the source, mpirun_rsh (called
              mpirun by configure), slurm (srun starts the ranks) and none
file_systems  values for --with-file-system
gpu           words for the parameter `gpu`
confirmed     whether this very version's configure was read
source        what was read
"""

# Options of one configure script: `enable` gives --enable-x and --disable-x, `with_` gives --with-x
# and --without-x, and `library` gives --with-x, --with-x-include and --with-x-lib.
Part = namedtuple("Part", "enable with_ library")
Part.__new__.__defaults__ = ("", "", "")

# Taken by every configure of these sources because Autoconf, Automake and Libtool bring them.
STANDARD = Part(
    enable="shared static fast-install dependency-tracking silent-rules libtool-lock "
    "option-checking maintainer-mode",
    with_="pic gnu-ld sysroot",
)

TABLE_2_3_7 = {
    ".": Part(
        enable="""
            3dtorus-support alloca allowport base-cache cache check-compiler-flags
            checkpointing ckpt ckpt-aggregation ckpt-migration coverage cuda cxx debuginfo
            echo error-checking error-messages f77 f77characterlen fast fc fortran ftb g
            handle-allocation header-caching hsam hybrid ibv-dlopen interlib-deps
            llnl-site-specific-options long-double mcast mpit-pvars multi-aliases multi-subnet
            mutex-timing nemesis-dbg-localoddeven nemesis-dbg-nolocal nemesis-lock-free-queues
            nemesis-shm-collectives new-dtags newsession omb onsig pmiport predefined-refcount
            python-omb rdma-cm refcount registration-cache romio rsh sharp sock-debug
            startup-profiling strict thread-cs threads timer-type timing two-level-namespace
            versioning weak-symbols wrapper-rpath xrc yield
        """,
        with_="""
            aint-size assert-level atomic-primitives bgq-install-dir blcr-libpath
            ch3-rank-bits cluster-size cma cross cuda cuda-include cuda-libpath dapl-include
            dapl-libpath dapl-provider dapl-version device flux ftb-libpath fuse fuse-include
            fuse-libpath hwloc ib-include ib-libpath io-bus knem knem-include libcuda
            libcudart limic2 limic2-include limic2-libpath link logging mpl-prefix
            name-publisher namepublisher nemesis-local-lmt openpa-prefix papi pm pmi pmi4pmix
            pmix rdma scr shared-memory thread-package
        """,
        library="blcr ftb hcoll ibverbs libmemcached llc mxm ofi pami portals4 psm psm2 slurm",
    ),
    "src/mpl": Part(
        enable="coverage versioning",
        with_="valgrind",
    ),
    "src/openpa": Part(
        enable="assert strict-fairness-checks versioning",
        with_="atomic-primitives",
    ),
    "src/pm/hydra": Part(
        enable="cache coverage error-checking g profiling strict visibility warnings",
        with_="""
            hwloc-plugins-path hwloc-prefix hydra-bss hydra-ckpointlib hydra-demux hydra-pm
            hydra-topolib hydra-ui mpl-prefix x
        """,
        library="blcr pbs",
    ),
    "src/mpi/romio": Part(
        enable="aio coverage debug echo f77 f90 weak-symbols",
        with_="aio-lite file-system ime mpi mpi-impl pvfs2",
    ),
}

TABLE_3_0 = {
    ".": Part(
        enable="""
            3dtorus-support alloca allowport base-cache cache ch4-am-only ch4-direct ch4-mt
            ch4-netmod-direct ch4-netmod-inline ch4-vci-method ch4r-per-comm-msg-queue
            check-compiler-flags checkpointing ckpt ckpt-aggregation ckpt-migration coverage
            cuda cxx debuginfo echo error-checking error-messages extended-context-bits f77
            f77characterlen fast fc fortran g header-caching hsam hybrid ibv-dlopen
            interlib-deps izem-queue llnl-site-specific-options long-double mcast mpit-pvars
            multi-aliases multi-subnet mutex-timing mvp nemesis-shm-collectives new-dtags
            newsession nolocal ofi-domain omb onsig pmiport predefined-refcount python-omb
            rdma-cm refcount registration-cache romio rsh sharp smp-cma sock-debug
            startup-profiling strict tag-error-bits thread-cs threads timing
            two-level-namespace versioning visibility weak-symbols xrc
        """,
        with_="""
            aint-size blcr-libpath ch3-rank-bits ch4-max-vcis ch4-ofi-direct-provider
            ch4-posix-eager-modules ch4-rank-bits ch4-shmmods cluster-size cma craypmi cross
            cuda cuda-include cuda-libpath custom-version-string dapl-include dapl-libpath
            dapl-provider dapl-version datatype-engine device flux ftb ftb-include ftb-libpath
            fuse fuse-include fuse-libpath hwloc-prefix ib-include ib-libpath io-bus libcuda
            libcudart limic2 limic2-include limic2-libpath link logging mpl-prefix
            name-publisher namepublisher nemesis-local-lmt netloc-prefix papi pm pmi pmi4pmix
            rdma scr shared-memory wrapper-dl-type yaksa-prefix zm-prefix
        """,
        library="blcr hcoll ibverbs libfabric ofi pmix slurm ucx xpmem",
    ),
    "src/mpl": Part(
        enable="coverage embedded fast g timer-type versioning yield",
        with_="""
            cacheline mpl-atomic-primitives posix-mutex proc-mutex-package shared-memory
            thread-package valgrind
        """,
        library="argobots cuda uti ze",
    ),
    "src/pm/hydra": Part(
        enable="cache coverage error-checking g profiling strict visibility warnings",
        with_="""
            hwloc-plugins-path hwloc-prefix hydra-bss hydra-demux hydra-pm hydra-topolib
            hydra-ui mpl-prefix x
        """,
        library="pbs",
    ),
    "src/mpi/romio": Part(
        enable="aio coverage debug echo f77 f90 visibility weak-symbols",
        with_="aio-lite file-system ime mpi mpi-impl mpl-prefix pvfs2",
        library="daos",
    ),
    "modules/yaksa": Part(
        enable="cuda-p2p debug embedded fast g strict ze-native ze-p2p",
        with_="cuda-sm",
        library="cuda ze",
    ),
}

TABLE_4_0 = {
    ".": Part(
        enable="""
            allowport base-cache cache ch4-am-only ch4-direct ch4-mt ch4-netmod-direct
            ch4-netmod-inline ch4-vci-method check-compiler-flags checkpointing coverage cxx
            debuginfo doc echo error-checking extended-context-bits f08 f77 f77characterlen
            f90 fast fortran g interlib-deps long-double mpi-abi mpit-events mpit-pvars
            multi-aliases mutex-timing nemesis-shm-collectives newsession nolocal ofi-domain
            omb onsig predefined-refcount python-omb qmpi refcount romio sock-debug strict
            tag-error-bits thread-cs threads timing two-level-namespace versioning visibility
            weak-symbols
        """,
        with_="""
            aint-size ch3-rank-bits ch4-max-vcis ch4-ofi-direct-provider
            ch4-posix-eager-modules ch4-shmmods ch4-ucx-rankbits configfile cross cuda
            custom-version-string datatype-engine device dl-type hip name-publisher
            namepublisher nemesis-local-lmt papi pm pmilib wrapper-dl-type ze
        """,
        library="blcr hcoll hwloc libfabric netloc pmi pmi1 pmi2 pmix slurm ucx xpmem yaksa",
    ),
    "src/mpl": Part(
        enable="coverage embedded fast g timer-type versioning yield",
        with_="""
            cacheline mpl-atomic-primitives posix-mutex proc-mutex-package shared-memory
            thread-package valgrind
        """,
        library="argobots cuda hip qthreads uti ze",
    ),
    "src/pmi": Part(
        enable="embedded pmi1 pmi2 pmiport pmix visibility",
        with_="thread-package",
    ),
    "src/pm/hydra": Part(
        enable="cache coverage error-checking g profiling warnings",
        with_="hydra-bss hydra-demux hydra-pm hydra-topolib",
        library="hwloc pbs slurm",
    ),
    "src/mpi/romio": Part(
        enable="aio coverage debug echo f77 f90 mpi-abi visibility weak-symbols",
        with_="aio-lite file-system mpi mpi-impl pvfs2",
        library="daos",
    ),
    "modules/yaksa": Part(
        enable="""
            cuda-p2p debug embedded fast g hip-p2p strict visibility ze-native ze-p2p
            ze-revision-id
        """,
        with_="cuda-sm hip-sm",
        library="cuda hip ze",
    ),
}

# In 3.0 only ch3:mrail reads these, and asking for that device is an error there.
MRAIL_ONLY_3_0 = Part(
    enable="ckpt ckpt-aggregation ckpt-migration hsam ibv-dlopen mcast multi-subnet "
    "startup-profiling",
    with_="cluster-size cma dapl-provider dapl-version libcuda libcudart limic2 rdma scr",
)

NOTHING = Part()

CH4_FILE_SYSTEMS = frozenset(
    ("daos", "gpfs", "ime", "lustre", "nfs", "panfs", "pvfs2", "quobytefs", "testfs", "ufs", "xfs")
)


def spellings(part):
    """All names that the options of `part` go by, as a set."""
    names = set()
    for one in part.enable.split():
        names.update(("--enable-" + one, "--disable-" + one))
    for one in part.with_.split():
        names.update(("--with-" + one, "--without-" + one))
    for one in part.library.split():
        for end in ("", "-include", "-lib"):
            names.update(("--with-" + one + end, "--without-" + one + end))
    return names


def flags_of(table, without=NOTHING):
    """The names which the scripts of `table` take, less those of `without`."""
    names = spellings(STANDARD)
    for part in table.values():
        names |= spellings(part)
    return frozenset(names - spellings(without))


MVAPICH2_2_3_7 = VersionOptions(
    flags=flags_of(TABLE_2_3_7),
    devices=frozenset(
        (
            "ch3:mrail",
            "ch3:psm",
            "ch3:sock",
            "ch3:nemesis",
            "ch3:nemesis:tcp",
            "ch3:nemesis:ib",
            "ch3:nemesis:ofi",
            "ch3:nemesis:mxm",
            "ch3:nemesis:llc",
            "ch3:nemesis:portals4",
        )
    ),
    # pmi1 and pmix are read by the launcher slurm alone.
    pmi=frozenset(("simple", "pmi1", "pmi2", "pmix")),
    pm=frozenset(("hydra", "gforker", "remshell", "mpirun_rsh", "slurm", "jsm", "flux", "none")),
    file_systems=frozenset(
        (
            "gpfs",
            "gridftp",
            "hfs",
            "ime",
            "lustre",
            "nfs",
            "panfs",
            "pfs",
            "piofs",
            "pvfs",
            "pvfs2",
            "sfs",
            "testfs",
            "ufs",
            "xfs",
            "zoidfs",
        )
    ),
    gpu=frozenset(("none", "cuda")),
    confirmed=True,
    source="configure, src/pm, src/pmi, src/mpid/ch3/channels of tag v2.3.7",
)

MVAPICH_3_0 = VersionOptions(
    flags=flags_of(TABLE_3_0, without=MRAIL_ONLY_3_0),
    devices=frozenset(("ch4:ofi", "ch4:ucx")),
    pmi=frozenset(("simple", "pmi2", "pmix", "slurm", "cray")),
    pm=frozenset(("hydra", "gforker", "remshell", "mpirun_rsh", "slurm", "jsm", "flux", "none")),
    file_systems=CH4_FILE_SYSTEMS,
    gpu=frozenset(("none", "cuda", "ze")),
    confirmed=False,
    source="configure.ac, src/pm, src/pmi, src/mpid of tag v3.0rc, the release candidate; "
    "its configure was made from them",
)

MVAPICH_4_0 = VersionOptions(
    flags=flags_of(TABLE_4_0),
    devices=frozenset(
        (
            "ch4:ofi",
            "ch4:ucx",
            "ch4:ofi,ucx",
            "ch4:ucx,ofi",
            "ch3:sock",
            "ch3:nemesis",
            "ch3:nemesis:tcp",
        )
    ),
    pmi=frozenset(("simple", "pmi1", "pmi2", "pmix", "slurm", "cray")),
    pm=frozenset(("hydra", "gforker", "remshell", "slurm", "none")),
    file_systems=CH4_FILE_SYSTEMS,
    gpu=frozenset(("none", "cuda", "rocm", "ze")),
    confirmed=True,
    source="configure, configure.ac, src/pm, src/mpid of branch master (mvapich 4.0)",
)

VERSIONS = {
    ("MVAPICH2", "2.3.7"): MVAPICH2_2_3_7,
    ("MVAPICH2", "2.3.7-1"): MVAPICH2_2_3_7._replace(
        confirmed=False, source="taken from 2.3.7: 2.3.7-1 is a re-release of it"
    ),
    ("MVAPICH2", "2.3.7-2"): MVAPICH2_2_3_7._replace(
        confirmed=False, source="taken from 2.3.7: 2.3.7-2 is a re-release of it"
    ),
    ("MVAPICH", "3.0"): MVAPICH_3_0,
    ("MVAPICH", "4.0"): MVAPICH_4_0,
    ("MVAPICH", "4.1"): MVAPICH_4_0._replace(
        confirmed=False, source="taken from 4.0: 4.1's source was not at hand"
    ),
}

# What a build for ch3 knew and ch4 does not: the transport is configured in libfabric or UCX.
CH3_ONLY = {
    "--with-rdma": "the transport is libfabric's or UCX's: device='ch4:ofi' or 'ch4:ucx'",
    "--enable-mcast": "UCX or libfabric decides; nothing in the MPI to switch",
    "--enable-hsam": "UCX stripes over rails by itself (UCX_NET_DEVICES, UCX_MAX_RNDV_RAILS)",
    "--with-limic2": "CMA is found by itself, or xpmem=True",
    "--with-knem": "UCX brings KNEM; in the MPI it is CMA, or xpmem=True",
    "--with-psm": "device='ch4:ofi' with FI_PROVIDER=psm",
    "--with-psm2": "device='ch4:ofi' with FI_PROVIDER=psm2 or opx",
    "--with-scr": "no checkpointing by the library in this version",
    "--enable-ckpt": "no checkpointing by the library in this version",
}

# Version (beginning) → options that recipes pass, which configure takes without a word and without
# effect, and what to say instead.
UNKNOWN = {
    ("MVAPICH2", "2.3"): {
        "--with-libfabric": "--with-ofi=PATH with device='ch3:nemesis:ofi'",
        "--with-ucx": "no UCX in 2.3: device='ch3:mrail' drives InfiniBand itself",
        "--with-hip": "no ROCm in this product; MVAPICH 4.0 has it",
        "--with-ze": "no Level Zero in this product; MVAPICH 4.0 has it",
        "--with-xpmem": "--with-cma (the default) or --with-limic2; XPMEM is in MVAPICH2-X only",
        "--with-datatype-engine": "nothing: there is one datatype engine in 2.3",
        "--with-ch4-shmmods": "nothing: ch4 begins with MVAPICH 3.0",
        "--enable-f08": "--enable-fortran=all",
        "--with-wrapper-dl-type": "--enable-wrapper-rpath or --disable-wrapper-rpath",
    },
    ("MVAPICH", "3"): dict(
        CH3_ONLY,
        **{
            "--with-hwloc": "--with-hwloc-prefix=PATH, embedded or system",
            "--with-yaksa": "--with-yaksa-prefix=PATH or embedded",
            "--with-cma": "nothing at configure: MPIR_CVAR_CH4_CMA_ENABLE at run time",
            "--enable-wrapper-rpath": "--with-wrapper-dl-type=rpath, runpath or none",
            "--with-hip": "no ROCm in this version; MVAPICH 4.0 has it",
            "--with-pmi1": "--with-pmi=simple",
            "--with-pmi2": "--with-pmi=pmi2/simple",
            "--with-pmilib": "nothing: --with-pmi=simple, pmi2/simple, slurm or cray",
            "--enable-f08": "--enable-fortran=all",
            "--enable-mpi-abi": "nothing: this version has no such choice",
        },
    ),
    ("MVAPICH", "4"): dict(
        CH3_ONLY,
        **{
            "--disable-new-dtags": "--with-wrapper-dl-type=rpath",
            "--enable-wrapper-rpath": "--with-wrapper-dl-type=rpath, runpath or none",
            "--disable-wrapper-rpath": "--with-wrapper-dl-type=none",
            "--enable-cuda": "--with-cuda=PATH (the parameter gpu='cuda')",
            "--disable-cuda": "--without-cuda (the parameter gpu='none')",
            "--enable-hip": "--with-hip=PATH (the parameter gpu='rocm')",
            "--disable-hip": "--without-hip (the parameter gpu='none')",
            "--enable-alloca": "nothing: this version has no such choice",
            "--disable-alloca": "nothing: this version has no such choice",
            "--enable-registration-cache": "FI_MR_CACHE_MONITOR=userfaultfd, UCX_RCACHE_ENABLE=y",
            "--disable-registration-cache": "FI_MR_CACHE_MONITOR=disabled, UCX_RCACHE_ENABLE=n",
            "--enable-error-messages": "nothing: this version has no such choice",
            "--enable-xrc": "UCX_TLS says which InfiniBand transports are used",
            "--enable-hybrid": "UCX_TLS says which InfiniBand transports are used",
            "--enable-rdma-cm": "UCX or libfabric connects; UCX_TLS, or FI_PROVIDER",
            "--enable-sharp": "--with-hcoll=PATH",
            "--with-cma": "nothing at configure: MPIR_CVAR_CH4_CMA_ENABLE at run time",
            "--without-cma": "nothing at configure: MPIR_CVAR_CH4_CMA_ENABLE=0 at run time",
            "--with-ofi": "--with-libfabric=PATH or embedded",
            "--with-hwloc-prefix": "--with-hwloc=PATH or embedded",
            "--with-yaksa-prefix": "--with-yaksa=PATH or embedded",
            "--with-craypmi": "pmi='cray': --with-pmi=pmi2 --with-pmi2=PATH",
            "--with-flux": "launcher='none' and a PMI that flux speaks",
            "--enable-fc": "--enable-fortran=all",
        },
    ),
}

# The same for options that are known, with values which do something else than they say.
MISREAD = {
    ("MVAPICH", "4"): {
        "--enable-fast=opt": "sets the level 03 (zero three), so no -O at all: --enable-fast=O2",
        "--with-pm=slurm": "aborts: launcher='slurm' (--with-pm=no and a PMI)",
        "--with-pm=mpirun": "aborts, mpirun_rsh is no more: launcher='hydra'",
        "--with-pmi=simple": "is read as a path: leave --with-pmi out (pmi='simple')",
        "--with-pmi=cray": "is read as a path: pmi='cray'",
        "--with-device=ch4:ofi:mverbs": "only warns: ch4:ofi with FI_PROVIDER='mverbs;ofi_ucr'",
        "--with-device=ch4:ofi:opx": "only warns: ch4:ofi with FI_PROVIDER=opx",
    },
    ("MVAPICH2", "2.3"): {
        "--with-hwloc=PATH": "takes v1 or v2, both embedded, and never a path",
    },
    ("MVAPICH", "3"): {
        "--with-device=ch3:mrail": "aborts: device='ch4:ucx', or MVAPICH2 2.3.7",
    },
}


def options_for(name, version):
    """The options of one version, e.g. ("MVAPICH", "4.0"); LookupError when it was never read."""
    try:
        return VERSIONS[(name, version)]
    except KeyError:
        known = ", ".join(" ".join(key) for key in VERSIONS)
        raise LookupError(
            f"no table of configure options for {name} {version}: known are {known}; see "
            "easyconfigs/easyblocks/mvapich_options.py"
        ) from None


def _of_version(facts, name, version):
    for (product, beginning), found in facts.items():
        if product == name and (version == beginning or version.startswith(beginning + ".")):
            return dict(found)
    return {}


def unknown_in(name, version):
    """Options which recipes pass and this version does not know: name → what to use instead."""
    return _of_version(UNKNOWN, name, version)


def misread_in(name, version):
    """Known options with values that do not do what they say: option=value → what happens."""
    return _of_version(MISREAD, name, version)


def tables_as_text():
    """All tables, for people; what a parameter of the easyblock takes in which version."""
    lines = []
    for (name, version), options in VERSIONS.items():
        lines.append(f"{name} {version} ({'confirmed' if options.confirmed else 'NOT confirmed'})")
        lines.append(f"    read        {options.source}")
        for title, words in (
            ("device", options.devices),
            ("pmi", options.pmi),
            ("launcher", options.pm),
            ("gpu", options.gpu),
            ("file_systems", options.file_systems),
        ):
            lines.append(f"    {title:<12}{', '.join(sorted(words))}")
        lines.append(f"    configure   {len(options.flags)} spellings of options")
        for title, facts in (
            ("unknown", unknown_in(name, version)),
            ("misread", misread_in(name, version)),
        ):
            for option, instead in sorted(facts.items()):
                lines.append(f"    {title:<12}{option}: {instead}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables_as_text())
