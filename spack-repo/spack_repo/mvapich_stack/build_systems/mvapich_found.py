"""What a build of MVAPICH 3 or 4 says of itself, as variants of the recipe."""

import os
import re

from spack_repo.mvapich_stack.build_systems.mpich_found import MpichFound

from spack.package import *


class MvapichFound(MpichFound):
    """Variants from `mpichversion` and from the libraries that libmpi.so needs.

    Which fabrics the transport beneath drives cannot be seen: state `fabrics` by hand.
    """

    @classmethod
    def determine_version(cls, exe):
        """The version, from `mpichversion`; None for MPICH's, or MVAPICH2's.

        MVAPICH-Plus says the same of itself; its folders tell, as they do to its own recipe.
        """
        if re.search(r"mvapich[-_/]?plus", os.path.realpath(exe)):
            return None
        text = Executable(exe)(output=str, error=str)
        said = re.search(r"^MVAPICH Version\s*:\s*(\S+)", text, re.M)
        return said.group(1) if said else None

    @classmethod
    def variants_said(cls, text, needed):
        """Variants from the text of `mpichversion` and the libraries that libmpi.so needs."""
        options = cls.options_said(text)
        device = re.search(r"^MVAPICH Device\s*:\s*ch4:(.*)$", text, re.M)
        # Asked for ch4:ucx,ofi, the library says "ch4:ucx ofi"; the first is its default.
        words = re.split("[ ,:]+", device.group(1).strip()) if device else []
        netmod = words[0] if words else ""

        def linked(stem):
            return any(name.startswith(stem + ".so") for name in needed)

        said = [f"netmod={netmod}"] if netmod else []
        inside = [
            name
            for name, stem, wanted in (
                ("hwloc", "libhwloc", True),
                ("libfabric", "libfabric", netmod == "ofi"),
                ("ucx", "libucp", netmod == "ucx"),
            )
            if needed and wanted and not linked(stem)
        ]
        said.append("embedded=" + (",".join(inside) or "none"))
        said += cls.launcher_said(options)
        old = re.search(r"^MVAPICH Version\s*:\s*3\.", text, re.M)
        said += cls.common_said(options, "all" if old else "runtime")
        said.append(f"datatype_engine={options.get('--with-datatype-engine') or 'auto'}")
        for variant, stem in (*cls.linked_for.items(), ("xpmem", "libxpmem")):
            said.append(("+" if linked(stem) else "~") + variant)
        said.append("+fortran" if cls.is_on(options, "fortran", True) else "~fortran")
        pathless = options.get("--with-wrapper-dl-type") == "none"
        said.append("~wrapperrpath" if pathless else "+wrapperrpath")
        return said

    @staticmethod
    def launcher_said(options):
        """The variants pmi and process_managers, from options of configure."""
        pmi, manager = options.get("--with-pmi", ""), options.get("--with-pm", "")
        word = pmi.split("/")[0]
        if options.get("--with-pmix") or pmi == "pmix":
            word = "pmix"
        elif pmi == "cray" or "cray" in options.get("--with-pmi2", ""):
            word = "cray"
        elif options.get("--with-pmi2"):
            word = "pmi2"
        elif pmi == "slurm":
            word = "pmi1"
        elif word not in ("pmi1", "pmi2"):
            word = "simple"
        # --with-slurm alone tells hydra where Slurm's lists of hosts come from.
        if "slurm" in (manager, pmi, options.get("--with-pmilib")):
            return [f"pmi={word}", "process_managers=slurm"]
        if manager in ("no", "none"):
            return [f"pmi={word}", "process_managers=none"]
        named = ",".join(one for one in re.split("[:,]", manager) if one not in ("", "mpirun"))
        return [f"pmi={word}", *([f"process_managers={named}"] if named else [])]
