"""EasyBuild support for MVAPICH 3.0 and 4.x (ch4), MVAPICH2 2.3.7 (ch3) and, as reference, MPICH.

Everything an MPI build is told is a parameter of the easyconfig, and every parameter is checked
against what this version's configure knows before configure runs. After it, what was generated is
looked at; after the installation, what was installed is compiled against and launched.

Load it with ``--include-easyblocks=<easyconfigs/easyblocks>/*.py``. EasyBuild puts files without an
``EB_`` class into ``easybuild.easyblocks.generic``, which is where the modules beside this one are
imported from.
"""

import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import easybuild.tools.environment as env
from easybuild.easyblocks.generic.mvapich_configure import (
    c_options,
    collective_options,
    compiling_with_slurms_pmi2,
    configure_options,
    known_options,
    lacking_of,
    level_of_makefile,
    option_names,
    unknown_options,
)
from easybuild.easyblocks.generic.mvapich_gpu import (
    INIT_HOOKS,
    compiling_with_cuda_13,
    gpu_options,
    has_driver,
    lost_gpu,
    stubs,
    ucx_without,
)
from easybuild.easyblocks.generic.mvapich_parameters import (
    FOREIGN_LAUNCHERS,
    check_configopts,
    check_parameters,
)
from easybuild.easyblocks.generic.mvapich_sanity import commands, launch_line, write_programs
from easybuild.easyblocks.mpich import EB_MPICH
from easybuild.framework.easyconfig import CUSTOM, MANDATORY
from easybuild.tools.build_log import EasyBuildError, print_msg
from easybuild.tools.config import IGNORE
from easybuild.tools.filetools import read_file
from easybuild.tools.module_generator import ModuleGeneratorLua
from easybuild.tools.modules import get_software_root
from easybuild.tools.run import run_shell_cmd

# Names of the software behind each parameter that says where a library comes from.
LIBRARIES = {"libfabric": "libfabric", "ucx": "UCX", "hwloc": "hwloc"}

# Parameters that may name the place of a library which libmpi is linked to.
TRANSPORTS = ("libfabric", "ucx")
BENEATH = (
    *TRANSPORTS,
    *("hwloc", "verbs", "slurm", "pmix", "cray_pmi", "flux", "gpu_root", "daos", "xpmem"),
)

# Compiler wrappers, for the variables that build systems look at.
WRAPPERS = {
    "MPICC": "mpicc",
    "MPICXX": "mpicxx",
    "MPIFC": "mpifort",
    "MPIF77": "mpif77",
    "MPIF90": "mpif90",
}

# Where the OSU Micro-Benchmarks that an MPI brings are installed, below its prefix.
OMB_FOLDERS = tuple(
    f"libexec/osu-micro-benchmarks/mpi/{kind}"
    for kind in ("pt2pt", "collective", "one-sided", "startup")
)

# configure asks pkg-config what a *static* libfabric or UCX needs and hands that to the linker and
# to mpicc, so that everybody would need the headers' packages of every fabric there is. This one
# answers for shared libraries, which know what they need; only embedded ones are linked statically.
PKG_CONFIG = """#!/bin/sh
case "$*" in
    */modules/*) ;;
    *) for one do shift; [ "$one" = --static ] || set -- "$@" "$one"; done ;;
esac
exec {real} "$@"
"""

# The C compiler with options for every part of the source, and for nobody else: CFLAGS would be
# written into mpicc. Off this PATH, for ccache looks for the next gcc on it.
GCC = """#!/bin/sh
PATH={path} exec gcc {options} "$@"
"""

# What mpifort tells gfortran, from which GCC on.
FORTRAN = (
    # else what mpif.h programs, and configure's own probes, do with buffers is an error
    (10, "-fallow-argument-mismatch"),
    # else a small array is read when MPI_Irecv returns, and not after MPI_Wait (GCC PR 120958)
    (14, "-fno-tree-sra"),
)


class EB_MVAPICH(EB_MPICH):
    """Support for building and installing MVAPICH, MVAPICH2 and MPICH."""

    @staticmethod
    def extra_options():
        """Easyconfig parameters of this easyblock."""
        extra_vars = EB_MPICH.extra_options()
        # Not by config.guess: it would be downloaded first, and configure brings its own.
        extra_vars["build_type"][0] = False
        extra_vars["host_type"][0] = False
        # The top configure warns of options that only its parts know (--with-file-system is
        # ROMIO's). That each is known to one of them is checked before, see add_mpich_configopts.
        extra_vars["unrecognized_configure_options"][0] = IGNORE
        extra_vars.update(
            {
                "device": [None, "Device and netmods, e.g. ch4:ofi, ch4:ucx, ch3:mrail", MANDATORY],
                "pmi": ["simple", "PMI spoken: simple, pmi1, pmi2, pmix, slurm, cray", CUSTOM],
                "launcher": [
                    "hydra",
                    "What starts the ranks: hydra, slurm, mpirun_rsh, none, ...",
                    CUSTOM,
                ],
                "slurm": [
                    None,
                    "Where Slurm's headers and libraries are, if not in default paths",
                    CUSTOM,
                ],
                "pmix": [None, "Where PMIx is, with pmi='pmix'", CUSTOM],
                "cray_pmi": [None, "Where Cray's PMI is, with pmi='cray'", CUSTOM],
                "flux": [None, "Where Flux is, with launcher='flux'", CUSTOM],
                "verbs": [None, "Where rdma-core is, for ch3:mrail", CUSTOM],
                "daos": [None, "Where DAOS is, with 'daos' in file_systems", CUSTOM],
                "gpu": ["none", "GPU buffers: none, cuda, rocm, ze", CUSTOM],
                "gpu_root": [
                    None,
                    "Where CUDA, ROCm or Level Zero is, if not a dependency",
                    CUSTOM,
                ],
                "gpu_arch": [
                    None,
                    "Processors of the GPUs to write kernels for, e.g. 90 or gfx90a",
                    CUSTOM,
                ],
                "libfabric": [
                    None,
                    "system, embedded or a path (default: the dependency, or system)",
                    CUSTOM,
                ],
                "adapters": [
                    True,
                    "Let an embedded libfabric drive adapters; False: TCP alone",
                    CUSTOM,
                ],
                "ucx": [
                    None,
                    "system, embedded or a path (default: the dependency, or system)",
                    CUSTOM,
                ],
                "hwloc": [
                    None,
                    "system, embedded or a path (default: the dependency, or system)",
                    CUSTOM,
                ],
                "file_systems": [
                    ["ufs", "nfs"],
                    "File systems that ROMIO knows; [] builds no MPI-IO",
                    CUSTOM,
                ],
                "xpmem": [
                    False,
                    "Copy between processes by XPMEM: True, False, or its path",
                    CUSTOM,
                ],
                "datatype_engine": [None, "yaksa, dataloop or auto (default: configure's)", CUSTOM],
                "thread_level": [
                    "multiple",
                    "Highest thread level that MPI_Init_thread can give",
                    CUSTOM,
                ],
                "error_checking": ["runtime", "Check of arguments: no, runtime, all", CUSTOM],
                "optimisation": ["O2", "Compiler's level, O0 to O3, for the whole library", CUSTOM],
                "omb": [
                    False,
                    "Also build the OSU Micro-Benchmarks that the source brings",
                    CUSTOM,
                ],
                "soname": [None, "soname that libmpi must have, e.g. libmpi.so.12", CUSTOM],
                "sanity_launch": [None, "Command before the program that starts two ranks", CUSTOM],
            }
        )
        return extra_vars

    def __init__(self, *args, **kwargs):
        """Look at the parameters, so that a wrong one is known before anything is fetched."""
        super().__init__(*args, **kwargs)
        try:
            self.options = options_of(self.name, self.version)
        except LookupError as err:
            raise EasyBuildError("%s", err.args[0]) from err
        if not self.options.confirmed:
            self.log.warning(
                "the configure options of %s %s are not confirmed: they were taken "
                "from the version before it",
                self.name,
                self.version,
            )
        problems = check_parameters(self.name, self.version, self.parameters(), self.options)
        words = [word for word in self.cfg["configopts"].split() if word.startswith("--")]
        problems += check_configopts(
            self.name, self.version, words, self.options, *advice_of(self.name, self.version)
        )
        if problems:
            raise EasyBuildError(
                "%s: %s\n%s", self.cfg.path, f"{len(problems)} wrong", "\n".join(problems)
            )
        self.sanity_folder = None

    def parameters(self):
        """The parameters as a plain dictionary, with the places of libraries decided."""
        names = (
            "device",
            "pmi",
            "launcher",
            "slurm",
            "pmix",
            "cray_pmi",
            "flux",
            "verbs",
            "daos",
            "gpu",
            "gpu_root",
            "gpu_arch",
            "adapters",
            "file_systems",
            "xpmem",
            "datatype_engine",
            "thread_level",
            "error_checking",
            "optimisation",
            "omb",
            "sanity_launch",
        )
        params = {name: self.cfg[name] for name in names}
        for name, software in LIBRARIES.items():
            params[name] = self.cfg[name] or get_software_root(software) or "system"
        if params["gpu"] == "cuda":
            params["gpu_root"] = params["gpu_root"] or get_software_root("CUDA")
        if params["pmi"] == "pmix":
            params["pmix"] = params["pmix"] or get_software_root("PMIx")
        return params

    def obtain_config_guess(self, *args, **kwargs):
        """Not needed (see build_type above), so not downloaded."""
        return None

    def add_mpich_configopts(self):
        """Our options instead of stock MPICH's; each known to the unpacked source or an error."""
        params = self.parameters()
        absent = lacking_of(self.start_dir, params)
        if absent:
            raise EasyBuildError(
                "%s %s: this source has no %s of its own (Debian's has none). Install the "
                "distribution's, or give upstream's source: mvstack sources add",
                self.name,
                self.version,
                " and no ".join(absent),
            )
        if params["gpu"] != "none" and "ucx" in params["device"] and params["ucx"] != "embedded":
            own = [Path(params["ucx"], one) for one in ("lib", "lib64")]
            folders = sorted(default_library_folders()) if params["ucx"] == "system" else own
            if folder := ucx_without(params["gpu"], folders):
                raise EasyBuildError(
                    "the UCX in %s was built without %s (no ucx/libuct_%s.so). Name one built with "
                    "it (parameter ucx, or `externals: ucx`), or build for host memory alone "
                    "(gpu='none', or `gpu_buffers: staged`)",
                    folder,
                    params["gpu"],
                    params["gpu"],
                )
        ours = configure_options(self.name, self.version, params, self.options)
        ours += gpu_options(params, self.options)
        ours += collective_options(self.start_dir, params)
        asked = option_names(" ".join(ours) + " " + self.cfg["configopts"])
        unknown = unknown_options(asked, known_options(self.start_dir))
        if unknown:
            raise EasyBuildError(
                "%s %s: its configure does not know %s, and would ignore it",
                self.name,
                self.version,
                ", ".join(unknown),
            )
        self.cfg.update("configopts", " ".join(ours))

    def correct_mpich_build_env(self):
        """Keep the toolchain's flags out of the wrappers, with the -O level that was asked for.

        Said here as well as by --enable-fast: configure gives the latter's level to the MPI
        itself but not to its parts (mpl, ROMIO, hydra), which would be compiled without any.
        """
        super().correct_mpich_build_env()
        for name in ("CFLAGS", "CXXFLAGS", "FFLAGS", "FCFLAGS"):
            variable = f"MPICHLIB_{name}"
            kept = [flag for flag in os.getenv(variable, "").split() if not flag.startswith("-O")]
            env.setvar(variable, " ".join([f"-{self.cfg['optimisation']}", *kept]))
        for name in ("FFLAGS", "FCFLAGS"):
            env.setvar(name, " ".join(option for gcc, option in FORTRAN if self.gcc() >= gcc))
        if self.cfg["gpu"] == "rocm":
            # HIP's headers are an error without it, so mpl's configure learns nothing from them
            # and takes every HIP for 6 or newer.
            env.setvar("CPPFLAGS", "-D__HIP_PLATFORM_AMD__")
        if self.cfg["gpu"] == "cuda":
            # Login nodes, and those that build, may have no driver: mpl would go without CUDA, and
            # programs not be linked for lack of what libmpi.so needs of libcuda.so.1.
            path = [os.getenv("LIBRARY_PATH"), stubs(self.parameters()["gpu_root"])]
            env.setvar("LIBRARY_PATH", ":".join(one for one in path if one))
            for wrapper in ("MPICC", "MPICXX", "MPIF77", "MPIFORT"):
                env.setvar(f"MPICH_{wrapper}_LDFLAGS", "-Wl,--allow-shlib-undefined")

    def gcc(self):
        """The first number of the toolchain's GCC."""
        return int(str(self.toolchain.version).partition(".")[0])

    def put_programs_first(self):
        """Put PKG_CONFIG and, where its C needs options of this compiler, GCC on the PATH."""
        path, scripts = os.environ["PATH"], {}
        if real := shutil.which("pkg-config"):
            scripts["pkg-config"] = PKG_CONFIG.format(real=real)
        if options := c_options(self.name, self.version, self.gcc()):
            scripts["gcc"] = GCC.format(path=shlex.quote(path), options=" ".join(options))
        folder = Path(self.builddir) / "mvapich-stack-bin"
        folder.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        env.setvar("PATH", f"{folder}:{path}")

    def mend(self, file, how):
        """Give `file` of the source the text that `how` makes of it, where there is such a file."""
        source = Path(self.start_dir) / file
        if source.is_file():
            text = source.read_text(encoding="utf-8", errors="surrogateescape")
            source.write_text(how(text), encoding="utf-8", errors="surrogateescape")

    def configure_step(self):
        """Configure, then look whether the optimisation asked for arrived in the Makefiles."""
        self.put_programs_first()
        super().configure_step()
        if "--with-pmilib=slurm" in self.cfg["configopts"]:
            self.mend("src/util/mpir_pmi2.inc", compiling_with_slurms_pmi2)
        gpu = self.cfg["gpu"]
        if gpu == "cuda":
            self.mend(INIT_HOOKS, compiling_with_cuda_13)
        if lost := lost_gpu(self.start_dir, gpu) if gpu != "none" else []:
            raise EasyBuildError(
                "configure went on without %s: %s; config.log beside it says what it did not find",
                gpu,
                ", ".join(lost),
            )
        wanted = self.cfg["optimisation"]
        checked = 0
        for folder in (".", "src/mpl", "src/mpi/romio", "modules/yaksa"):
            makefile = Path(self.start_dir) / folder / "Makefile"
            if not makefile.is_file():
                continue
            checked += 1
            found = level_of_makefile(read_file(str(makefile)))
            if found != wanted:
                raise EasyBuildError(
                    "%s: CFLAGS has %s, asked for -%s: the library would not be optimised as asked",
                    makefile,
                    f"-{found}" if found else "no -O at all",
                    wanted,
                )
        if not checked:
            raise EasyBuildError("no Makefile found below %s after configure", self.start_dir)

    def sanity_check_step(self, *args, **kwargs):
        """Compile C, C++ and Fortran 2008, launch two ranks, compare version, device, soname."""
        params = self.parameters()
        folder = tempfile.mkdtemp(prefix="mpi-sanity-")
        write_programs(folder)
        names = ["mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", "mpichversion"]
        if params["launcher"] not in FOREIGN_LAUNCHERS:
            names.append("mpiexec")
        if not has_driver(params["gpu"]):
            print_msg(
                "  no driver for %s here: programs are linked, and none is started",
                params["gpu"],
                log=self.log,
                silent=self.silent,
            )
            params["sanity_launch"], params["launcher"] = None, "none"
        elif os.getenv("MPIR_CVAR_ENABLE_GPU") == "0":
            # beside the stand-in for a driver (hooks.py) libfabric takes no GPU buffers
            line = launch_line(params["launcher"], params["sanity_launch"])
            params["sanity_launch"] = line and f"env MPIR_CVAR_CH4_OFI_ENABLE_HMEM=0 {line}"
        elif launch_line(params["launcher"], params["sanity_launch"]) is None:
            self.log.warning(
                "launcher %r belongs to the resource manager: two ranks were not "
                "started; set sanity_launch to do it",
                params["launcher"],
            )
        if self.cfg["omb"]:
            names.append("../" + OMB_FOLDERS[0] + "/osu_latency")
        custom_paths = {
            "files": [f"bin/{name}" for name in names] + ["include/mpi.h", "lib/libmpi.so"],
            "dirs": ["bin", "include", "lib"],
        }
        try:
            super(EB_MPICH, self).sanity_check_step(
                custom_paths=custom_paths,
                custom_commands=commands(
                    folder, self.name, self.version, params, self.cfg["soname"]
                ),
            )
            self.show(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def show(self, folder):
        """Print what the sanity check's programs said of the library: version, device, soname."""
        for name in ("soname.out", "world.out"):
            said = Path(folder) / name
            lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
            for line in lines:
                if re.match(r"soname|world of|\S+ (Version|Device|ABI)", line):
                    print_msg("  %s", " ".join(line.split()), log=self.log, silent=self.silent)

    def library_folders(self):
        """Folders of the libraries beneath that the loader does not look into by itself."""
        params = self.parameters()
        default = default_library_folders()
        found = []
        for name in BENEATH:
            root = str(params[name])
            word = {"libfabric": "ofi"}.get(name, name)
            if not root.startswith("/") or (name in TRANSPORTS and word not in params["device"]):
                continue
            for path in (Path(root) / "lib", Path(root) / "lib64"):
                if path.is_dir() and path.resolve() not in default:
                    found.append(str(path))
        return found

    def make_module_extra(self, *args, **kwargs):
        """MPI_HOME, the wrappers, the transport's folder, and one MPI at a time."""
        txt = super().make_module_extra(*args, **kwargs)
        generator = self.module_generator
        for variable in ("MPI_HOME", "MPI_ROOT"):
            txt += generator.set_environment(variable, self.installdir)
        for variable, wrapper in WRAPPERS.items():
            txt += generator.set_environment(variable, f"{self.installdir}/bin/{wrapper}")
        if self.cfg["omb"]:
            txt += generator.prepend_paths("PATH", list(OMB_FOLDERS))
        for folder in self.library_folders():
            txt += generator.prepend_paths("LD_LIBRARY_PATH", [folder], allow_abs=True)
        if isinstance(generator, ModuleGeneratorLua):
            txt += 'family("mpi")\n'
        else:
            txt += "conflict mpich mvapich mvapich2 openmpi\n"
        return txt


def options_of(name, version):
    """What this product's configure knows; LookupError when there is no table for it.

    The tables are imported only when an MPI is built, not whenever EasyBuild starts.
    """
    if name == "MPICH":
        from easybuild.easyblocks.generic.mpich_options import options_for

        return options_for(version)
    from easybuild.easyblocks.generic.mvapich_options import options_for

    return options_for(name, version)


def advice_of(name, version):
    """Two dictionaries: options that this version does not know, and those that it misreads."""
    if name == "MPICH":
        return {}, {}
    from easybuild.easyblocks.generic.mvapich_options import misread_in, unknown_in

    return unknown_in(name, version), misread_in(name, version)


def default_library_folders():
    """Folders in which the dynamic loader of this machine looks without being told.

    Read from ``ldconfig``, which prints each folder followed by a colon.
    """
    res = run_shell_cmd(
        "PATH=$PATH:/sbin:/usr/sbin ldconfig -N -v 2>/dev/null",
        hidden=True,
        fail_on_error=False,
        in_dry_run=True,
    )
    folders = [line.split(":")[0] for line in res.output.splitlines() if line.startswith("/")]
    return {Path(folder).resolve() for folder in folders}
