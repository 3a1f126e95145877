"""What a build of MVAPICH2 that is already there says of itself."""

import os
import re

from spack.package import *

from .words import DEVICES, MRAIL

# Other words of configure for values of the recipe.
THREADS = {"runtime": "multiple", "yes": "multiple", "no": "single"}


class Finding:
    """Part of the recipe: `spack external find mvapich2`."""

    @classmethod
    def determine_version(cls, exe):
        """The version, from `mpichversion`; None for MPICH's, MVAPICH's, MVAPICH2-X's or -GDR's."""
        said = re.search(
            r"^MVAPICH2 Version\s*:\s*(\S+)", Executable(exe)(output=str, error=str), re.M
        )
        return said[1] if said else None

    @classmethod
    def determine_variants(cls, exes, version):
        """The variants of each build, from the text of its `mpichversion`."""
        found = []
        for exe in exes:
            prefix = os.path.dirname(os.path.dirname(os.path.realpath(exe)))
            omb = os.path.isdir(os.path.join(prefix, "libexec", "osu-micro-benchmarks"))
            said = cls.variants_said(Executable(exe)(output=str, error=str))
            found.append(" ".join([*said, "+omb" if omb else "~omb"]))
        return found

    @classmethod
    def variants_said(cls, text):
        """Variants from the text of `mpichversion`."""
        line = re.search(r"^MVAPICH2 configure\s*:\s*(.*)$", text, re.M)
        device = re.search(r"^MVAPICH2 Device\s*:\s*(\S+)", text, re.M)
        options = {}
        for word in line[1].split() if line else []:
            name, _, value = word.strip("'\"").partition("=")
            options[name] = value

        def on(name, default):
            """Whether a feature is switched on, said as --enable, --disable or =no."""
            if f"--disable-{name}" in options:
                return False
            if f"--enable-{name}" in options:
                return options[f"--enable-{name}"] != "no"
            return default

        # The configure line has the networks of nemesis; the device may be a default, unsaid.
        asked = options.get("--with-device") or (device[1] if device else "ch3:mrail")
        fabrics = [one for one, known in DEVICES.items() if known == asked]
        if asked == "ch3:psm" and "--with-psm" not in options:
            fabrics = ["psm2"]
        said = ["fabrics=" + fabrics[0]] if fabrics else []

        pm = re.split("[:,]", options.get("--with-pm") or "hydra,mpirun")
        said.append("process_managers=" + (",".join(sorted(pm)) if pm != ["no"] else "none"))
        if pm == ["slurm"]:
            word = options.get("--with-pmi", "pmi2").split("/")[0]
            said.append("pmi_version=" + {"simple": "pmi1"}.get(word, word))
        threads = "no" if not on("threads", True) else options.get("--enable-threads")
        said.append("threads=" + THREADS.get(threads or "", threads or "multiple"))
        said.append("ch3_rank_bits=" + options.get("--with-ch3-rank-bits", "16"))
        checking = options.get("--enable-error-checking") or "all"
        checking = "no" if not on("error-checking", True) else checking
        said.append("error_checking=" + {"yes": "all"}.get(checking, checking))
        if not on("romio", True):
            said.append("file_systems=none")
        else:
            systems = options.get("--with-file-system", "").split("+")
            said.append("file_systems=" + (",".join(sorted(filter(None, systems))) or "auto"))
        debug = bool({"dbg", "all", "yes", "most"} & set(options.get("--enable-g", "").split(",")))
        for name, value in (
            ("debug", debug),
            ("wrapperrpath", on("wrapper-rpath", True)),
            ("alloca", on("alloca", False)),
            ("regcache", on("registration-cache", True)),
            ("hwlocv2", options.get("--with-hwloc") == "v2"),
        ):
            said.append(("+" if value else "~") + name)
        said += cls.mrail_said(options) if fabrics == ["mrail"] else ["~cuda"]
        return said

    @classmethod
    def mrail_said(cls, options):
        """Variants of fabrics=mrail that the configure line decides; others stay unsaid."""
        said = []
        cuda = options.get("--enable-cuda", "no") if "--enable-cuda" in options else "no"
        said.append("~cuda" if cuda == "no" else "+cuda")
        if cuda != "no":
            said.append("~cuda_kernels" if cuda == "basic" else "+cuda_kernels")
        for name, (enable, disable) in MRAIL.items():
            # Where one spelling says nothing, whatever is said means the other, see words.py.
            option = (enable or disable).split("-", 3)[-1]
            any_way = [f"--{way}-{option}" in options for way in ("enable", "disable")]
            off = f"--disable-{option}" in options or options.get(f"--enable-{option}") == "no"
            if name in ("cma", "limic2"):
                without = f"--without-{name}" in options or options.get(f"--with-{name}") == "no"
                asked = f"--with-{name}" in options or name == "cma"
                said.append(("+" if asked and not without else "~") + name)
            elif not disable:
                said.append(("+" if any(any_way) else "~") + name)
            elif not enable:
                said.append(("~" if any(any_way) else "+") + name)
            elif any(any_way):
                said.append(("~" if off else "+") + name)
        return said
