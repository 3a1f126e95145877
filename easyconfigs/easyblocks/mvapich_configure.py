"""From the parameters of the MVAPICH easyblock to the command line of configure, and back.

Three generations of configure are spoken to; they differ in how PMI and the process manager are
said. `known_options` and `unknown_options` read the unpacked source, so that an option which
configure would silently ignore is an error; `level_of_makefile` reads what configure generated, so
that a build without the optimisation asked for is one too.
"""

import os
import re
from pathlib import Path

# How each generation is told which PMI to speak. Read from their configure.ac and src/pmi:
# 2: MVAPICH2 2.3.7 (MPICH 3.2.1); 3: MVAPICH 3.0, MPICH 3.4 to 4.0; 4: MVAPICH 4.x (MPICH 4.3).
PMI_OPTIONS = {
    2: {
        "simple": ["--with-pmi=simple"],
        "pmi1": ["--with-pmi=pmi1"],
        "pmi2": ["--with-pmi=pmi2"],
        "pmix": ["--with-pmi=pmix", "--with-pmix={pmix}"],
    },
    3: {
        "simple": ["--with-pmi=simple"],
        "pmi2": ["--with-pmi=pmi2/simple"],
        "slurm": ["--with-pmi=slurm"],
        "cray": ["--with-pmi=cray"],
        "pmix": ["--with-pmix={pmix}"],
    },
    4: {
        # No --with-pmi: its own libpmi, which speaks PMI 1, 2 and x (MPIR_CVAR_PMI_VERSION).
        "simple": [],
        "pmi1": ["--with-pmi=pmi1"],
        "pmi2": ["--with-pmi=pmi2"],
        "pmix": ["--with-pmi=pmix", "--with-pmix={pmix}"],
        "slurm": ["--with-pmi=slurm"],
        "cray": ["--with-pmi=pmi2", "--with-pmi2={cray}"],
    },
}

# What older C does and GCC 14 takes for errors, by the names of its warnings.
C_OF_OLD = (
    "implicit-function-declaration",
    "implicit-int",
    "incompatible-pointer-types",
    "int-conversion",
    "return-mismatch",
)

CRAY_PMI = "/opt/cray/pe/pmi/default"

# Options with a value that one of the source's own configure scripts does not list because the
# top one reads them from the command line itself.
STANDARD = {"--prefix", "--libdir", "--build", "--host", "--bindir", "--includedir"}

# Of the libfabric that MVAPICH 4 embeds: its provider ucr is compiled with the headers of librdmacm
# whether they are there or not.
WITHOUT_VERBS = "--disable-ucr"
# The embedded libfabric without adapters. Otherwise it links the library of each adapter whose
# headers are installed, and every program loads them all: psm's alone takes 0.15 s.
TCP_ALONE = ("--enable-only", "--enable-tcp", "--enable-rxm")

# Configure scripts below these folders belong to libraries that we take from outside, or to tests:
# an option only they know would have no effect on the MPI.
FOREIGN_FOLDERS = (
    "modules/libfabric",
    "modules/ucx",
    "modules/hwloc",
    "modules/json-c",
    "src/pm/hydra/modules/hwloc",
    "src/pm/hydra/tools/topo/hwloc",
    "test",
    "maint",
)


def generation(name, version):
    """2, 3 or 4: whose way of naming PMI and process managers the product's configure has."""
    numbers = [int(one) for one in re.findall(r"\d+", version)[:2]]
    if name == "MVAPICH2":
        return 2
    if name == "MVAPICH":
        return 4 if numbers[0] >= 4 else 3
    return 4 if tuple(numbers) >= (4, 1) else 3


def c_options(name, version, gcc):
    """What GCC of this first number must be told to take the product's C.

    The same as Spack's recipes tell it. Of MVAPICH 4.x GCC 12 warns of none of these.
    """
    options = ["-std=gnu17"] if gcc >= 15 else []  # C23 knows no functions without prototypes
    if gcc >= 14 and generation(name, version) < 4:  # errors since then, warnings before
        options += [f"-Wno-error={one}" for one in C_OF_OLD]
    return options


def launcher_options(name, version, params):
    """--with-pm, --with-pmi and --with-slurm for `launcher` and `pmi`."""
    gen = generation(name, version)
    launcher, pmi = params["launcher"], params["pmi"]
    slurm = params["slurm"]
    paths = {"pmix": params["pmix"] or "/usr", "cray": params["cray_pmi"] or CRAY_PMI}
    found = [one.format(**paths) for one in PMI_OPTIONS[gen][pmi]]
    if (gen == 2 and launcher == "slurm") or launcher in ("jsm", "flux"):
        found.append(f"--with-pm={launcher}")
        # its configure stops when it is not told where
        found += [f"--with-flux={params['flux'] or '/usr'}"] if launcher == "flux" else []
    elif launcher in ("slurm", "none"):
        found.append("--with-pm=no")
        if gen == 4 and launcher == "slurm" and pmi == "pmi2":
            found.append("--with-pmilib=slurm")
    else:
        # mpirun is the folder of mpirun_rsh; it comes with hydra, whose mpiexec is the default one.
        both = gen < 4 and name != "MPICH" and launcher in ("hydra", "mpirun_rsh")
        found.append("--with-pm=" + ("hydra:mpirun" if both else launcher))
    if pmi == "slurm" or (launcher == "slurm" and (gen == 2 or (gen == 4 and pmi == "pmi2"))):
        found.append("--with-slurm" + ("" if slurm in (None, True, "system") else f"={slurm}"))
    elif launcher != "slurm":
        # Otherwise hydra's proxy links the host's libslurm unasked. (With srun there is no hydra,
        # and the library's own PMI needs nothing of Slurm's.)
        found.append("--without-slurm")
    return found


def compiling_with_slurms_pmi2(text):
    """src/util/mpir_pmi2.inc of MVAPICH 4.x so that it compiles with Slurm's pmi2.h.

    Slurm declares PMI2_Job_Spawn with other types and has no PMI2_keyval_t. 4.0 has a function of
    its own for that, and compiles the general one beside it, which is an error: here the general
    one is left out. A text that looks otherwise comes back as it is.
    """
    begin = text.find("static int pmi2_spawn(int count,")
    end = text.find("static int pmi2_publish(")
    if not 0 <= begin < end or "USE_PMI2_SLURM" in text[:begin]:
        return text
    general = text[begin:end]
    return f"{text[:begin]}#ifndef USE_PMI2_SLURM\n{general}#endif\n\n{text[end:]}"


def _where(option, value):
    return option if value == "system" else f"{option}={value}"


def transport_options(name, version, params, options):
    """--with-libfabric, --with-ucx, --with-hwloc; `params`: 'system', 'embedded' or a path."""
    found = []
    device = params["device"]
    if "ofi" in device:
        option = "--with-libfabric" if "--with-libfabric" in options.flags else "--with-ofi"
        found.append(_where(option, params["libfabric"]))
        if name == "MVAPICH" and generation(name, version) == 4:
            verbs = Path(params["verbs"] or "/usr", "include", "infiniband", "ib.h")
            if params["libfabric"] == "embedded":
                if not verbs.is_file():
                    found.append(WITHOUT_VERBS)
                if not params["adapters"]:
                    found += TCP_ALONE
            # Left alone, 4.0 takes its queue mvp_shm within a node: 2 MiB for each pair of ranks,
            # all of it zeroed by every rank (32 GiB for 128 ranks; docs/performance.md).
            found.append("--with-ch4-posix-eager-modules=iqueue")
    if "ucx" in device:
        found.append(_where("--with-ucx", params["ucx"]))
    if generation(name, version) == 2:
        if device.startswith("ch3:nemesis"):
            # its queue in shared memory hangs once it is full (docs/upstream.md)
            found.append("--enable-nemesis-dbg-nolocal")
        if device == "ch3:mrail":
            # else each program opens libibverbs.so, which the packages of headers alone have: on
            # compute nodes without them MPI_Init fails
            found.append("--disable-ibv-dlopen")
        if root := params["verbs"]:
            folder = next((one for one in ("lib64", "lib") if Path(root, one).is_dir()), "lib")
            found += [f"--with-ib-include={root}/include", f"--with-ib-libpath={root}/{folder}"]
        # There, --with-hwloc chooses between two bundled versions: v1 (the default) and v2.
        return found
    if "--with-hwloc" in options.flags:
        found.append(_where("--with-hwloc", params["hwloc"]))
    elif "--with-hwloc-prefix" in options.flags:
        found.append(f"--with-hwloc-prefix={params['hwloc']}")
    return found


def collective_options(source, params):
    """What has ch4:ucx build shared memory for its collectives, if our patch of 4.0 is in `source`.

    Without that patch the messages within a node would leave UCX, too. Not tried with GPUs.
    """
    header = Path(source, "src", "mpid", "ch4", "include", "mpidpre.h")
    if params["device"] != "ch4:ucx" or params["gpu"] != "none" or not header.is_file():
        return []
    if "MPIDI_CH4_NETMOD_MESSAGES" not in header.read_text(encoding="utf-8", errors="replace"):
        return []
    return ["--with-ch4-shmmods=posix", "--with-ch4-posix-eager-modules=iqueue"]


def language_options(params):
    """Bindings, I/O, threads, checks and how far the compiler goes."""
    found = ["--enable-shared", "--disable-static", "--enable-cxx", "--enable-fortran=all"]
    systems = params["file_systems"]
    if systems:
        found += ["--enable-romio", "--with-file-system=" + "+".join(systems)]
        found += [f"--with-daos={params['daos']}"] if params["daos"] and "daos" in systems else []
    else:
        found.append("--disable-romio")
    found.append("--enable-threads=" + params["thread_level"])
    found.append("--enable-error-checking=" + params["error_checking"])
    # `ndebug` alone would leave configure's default level: the level is always said.
    found.append(f"--enable-fast={params['optimisation']},ndebug")
    return found


def configure_options(name, version, params, options):
    """The command line for configure as a list, without --prefix and what mvapich_gpu says."""
    found = ["--with-device=" + params["device"]]
    found += launcher_options(name, version, params)
    found += transport_options(name, version, params, options)
    found += language_options(params)
    if params["datatype_engine"]:
        found.append("--with-datatype-engine=" + params["datatype_engine"])
    if "--with-xpmem" in options.flags:
        xpmem = params["xpmem"]
        found.append(
            "--without-xpmem"
            if not xpmem
            else "--with-xpmem" + ("" if xpmem is True else f"={xpmem}")
        )
    if "--disable-omb" in options.flags and not params["omb"]:
        found.append("--disable-omb")
    return found


def lacking_of(source, params):
    """The transports that are asked for as embedded and that `source` does not hold."""
    return [
        name
        for name, netmod in (("libfabric", "ofi"), ("ucx", "ucx"))
        if params[name] == "embedded" and netmod in params["device"]
        if not (Path(source) / "modules" / name / "configure").is_file()
    ]


def option_names(text):
    """The names, without values, of the options in `text`."""
    return re.findall(r"(?:^|\s)(--[A-Za-z0-9][A-Za-z0-9-]*)", text)


def known_options(source):
    """Names such as 'enable_fast' and 'with_pmi' that the configure scripts under `source` take.

    Autoconf writes them into each script as ``ac_user_opts``. Scripts of embedded libraries and of
    the test-suite are left out: an option known to them alone does nothing for the MPI.
    """
    known = set()
    for folder, folders, files in os.walk(source):
        relative = os.path.relpath(folder, source)
        if relative.startswith(FOREIGN_FOLDERS):
            folders[:] = []
            continue
        if "configure" not in files:
            continue
        text = (Path(folder) / "configure").read_text(encoding="utf-8", errors="replace")
        block = re.search(r"^ac_user_opts='(.*?)'$", text, re.M | re.S)
        if block:
            known.update(block.group(1).split())
    return known


def unknown_options(options, known):
    """Those of the option names that no configure script of the source knows."""
    found = []
    for name in options:
        if name in STANDARD or name in (WITHOUT_VERBS, *TCP_ALONE):
            continue
        bare = name[2:].replace("-", "_")
        bare = re.sub(r"^disable_", "enable_", re.sub(r"^without_", "with_", bare))
        if bare not in known:
            found.append(name)
    return found


def level_of_makefile(text):
    """The -O level that counts in a generated Makefile's CFLAGS ('O2'), or '' when there is none.

    The last one counts for GCC and Clang alike.
    """
    line = re.search(r"^CFLAGS\s*=(.*)$", text, re.M)
    levels = re.findall(r"(?:^|\s)-(O[0-9sgz]?|Ofast)(?=\s|$)", line.group(1)) if line else []
    return levels[-1] if levels else ""
