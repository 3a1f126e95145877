"""From the variants of mvapich2 to the command line of its configure."""

import os
import re

from spack.package import *

from .words import DEVICES, FILE_SYSTEMS, MANAGERS, MRAIL

# Folders whose configure scripts belong to tests, or to the kernel module.
FOREIGN = ("test", "maint", "limic2-0.5.6", "osu_benchmarks")


class Configuring:
    """Part of the recipe: what configure is given, and whether it takes it."""

    @property
    def optimisation(self):
        """The level of the whole library: that of the user's cflags, or O2; O0 with +debug."""
        asked = [flag[1:] for flag in self.spec.compiler_flags.get("cflags", ())]
        levels = [flag for flag in asked if re.fullmatch("O[0-3]", flag)]
        return levels[-1] if levels else ("O0" if self.spec.satisfies("+debug") else "O2")

    @property
    def fabric(self):
        """The value of the variant `fabrics`."""
        return self.spec.variants["fabrics"].value

    @property
    def managers(self):
        """Process managers of the source to build, in configure's words; the first is primary."""
        named = self.spec.variants["process_managers"].value
        if "auto" in named:
            return ["hydra", "mpirun"]
        if named in (("slurm",), ("jsm",), ("flux",)):
            return list(named)
        return [one for one in MANAGERS if one in named]

    def library_folder(self, name, library):
        """Where a dependency keeps `library`; its lib where it lies on the compiler's own path."""
        for folder in ("lib64", "lib"):
            path = join_path(self.spec[name].prefix, folder)
            if os.path.exists(join_path(path, library)):
                return path
        return self.spec[name].prefix.lib

    def launcher_args(self):
        """--with-pm and the PMI that goes with it."""
        spec = self.spec
        args = ["--with-pm=" + (":".join(self.managers) or "no")]
        if spec.satisfies("process_managers=slurm"):
            pmi = spec.variants["pmi_version"].value
            args += [f"--with-slurm={spec['slurm'].prefix}", f"--with-pmi={pmi}"]
        elif spec.satisfies("process_managers=jsm"):
            args.append("--with-pmi=pmix")
        elif spec.satisfies("process_managers=flux"):
            args += [f"--with-flux={spec['flux-core'].prefix}", "--with-pmi=simple"]
        else:
            args.append("--with-pmi=simple")
        if "--with-pmi=pmix" in args:
            args.append(f"--with-pmix={spec['pmix'].prefix}")
        return args

    def device_args(self):
        """--with-device, and where the libraries that drive it are."""
        spec, fabric = self.spec, self.fabric
        args = [f"--with-device={DEVICES[fabric]}"]
        if fabric == "psm":
            args.append(f"--with-psm={spec['psm'].prefix}")
        elif fabric == "psm2":
            args.append(f"--with-psm2={spec['opa-psm2'].prefix}")
        elif fabric == "nemesisofi":
            args.append(f"--with-ofi={spec['libfabric'].prefix}")
        elif fabric == "mrail":
            # Said in full: configure would otherwise put /usr/local/ofed before Spack's.
            folder = self.library_folder("rdma-core", "libibverbs.so")
            args += [
                "--with-rdma=gen2",
                f"--with-ib-include={spec['rdma-core'].prefix.include}",
                f"--with-ib-libpath={folder}",
                *self.mrail_args(),
            ]
        elif "ib" in fabric.removeprefix("nemesis"):
            args.append(f"--with-ibverbs={spec['rdma-core'].prefix}")
        return args

    def mrail_args(self):
        """Options that the device mrail alone reads."""
        spec = self.spec
        args = [MRAIL[name][0 if spec.satisfies("+" + name) else 1] for name in MRAIL]
        if spec.satisfies("+cuda"):
            # basic leaves out the kernels that pack on the GPU, and needs no nvcc.
            kernels = "yes" if spec.satisfies("+cuda_kernels") else "basic"
            args += [f"--enable-cuda={kernels}", f"--with-cuda={spec['cuda'].prefix}"]
        else:
            args.append("--disable-cuda")
        return [one for one in args if one]

    def hwloc_args(self):
        """For the hwloc within: v1 or v2, and no library of the host that the spec lacks."""
        args = ["--with-hwloc=" + ("v2" if self.spec.satisfies("+hwlocv2") else "v1")]
        args += ["--disable-libudev"]
        if self.spec.satisfies("~hwloc_graphics"):
            args += ["--disable-opencl", "--disable-gl", "--disable-nvml"]
        return args

    def configure_args(self):
        """Every option that configure is given."""
        spec = self.spec
        systems = [one for one in FILE_SYSTEMS if spec.satisfies(f"file_systems={one}")]
        io = ["--disable-romio" if spec.satisfies("file_systems=none") else "--enable-romio"]
        if systems:
            io.append("--with-file-system=" + "+".join(systems))
        debug = spec.satisfies("+debug")
        args = [
            *self.device_args(),
            *self.launcher_args(),
            *self.hwloc_args(),
            "--enable-shared",
            "--disable-static",
            "--disable-silent-rules",
            # mpicc leaves to the linker whether a program gets DT_RPATH or DT_RUNPATH.
            "--disable-new-dtags",
            "--enable-cxx",
            "--enable-fortran=all",
            *io,
            "--enable-threads=" + spec.variants["threads"].value,
            "--with-ch3-rank-bits=" + spec.variants["ch3_rank_bits"].value,
            "--enable-error-checking=" + spec.variants["error_checking"].value,
            # The level is always said: `ndebug` alone would leave out any -O.
            "--enable-fast=" + self.optimisation + ("" if debug else ",ndebug"),
            *(["--enable-g=dbg", "--enable-debuginfo"] if debug else []),
            "--enable-wrapper-rpath=" + ("yes" if spec.satisfies("+wrapperrpath") else "no"),
            "--enable-alloca" if spec.satisfies("+alloca") else "--disable-alloca",
            # Read by the devices that register memory, and known to all.
            f"--{'enable' if spec.satisfies('+regcache') else 'disable'}-registration-cache",
        ]
        if spec.satisfies("~omb"):
            args.append("--disable-omb")
        return args

    def unknown_to(self, source):
        """Those of the options that no configure script of the source tree takes."""
        known = set()
        for folder, folders, files in os.walk(source):
            if os.path.relpath(folder, source).startswith(FOREIGN):
                folders[:] = []
            elif "configure" in files:
                with open(os.path.join(folder, "configure"), errors="replace") as script:
                    block = re.search(r"^ac_user_opts='(.*?)'$", script.read(), re.M | re.S)
                known.update(block.group(1).split() if block else [])
        unknown = []
        for word in self.configure_args():
            name = word.split("=")[0][2:].replace("-", "_")
            name = re.sub("^disable_", "enable_", re.sub("^without_", "with_", name))
            if name not in known:
                unknown.append(word)
        return unknown

    def unoptimised(self, source):
        """Makefiles whose CFLAGS end with another -O level than the one asked for, or with none."""
        wrong = []
        # Not src/mpl: its Makefile never says a level, the compiler wrapper adds it (flag_handler).
        for part in (".", "src/mpi/romio", "src/pm/hydra"):
            makefile = os.path.join(source, part, "Makefile")
            if not os.path.exists(makefile):
                continue
            with open(makefile, errors="replace") as made:
                line = re.search(r"^CFLAGS\s*=(.*)$", made.read(), re.M)
            levels = re.findall(r"(?:^|\s)-(O[0-9sgz]?|Ofast)(?=\s|$)", line[1]) if line else []
            if not levels or levels[-1] != self.optimisation:
                wrong.append(f"{makefile}: CFLAGS says {levels or 'no -O at all'}")
        return wrong
