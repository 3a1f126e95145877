"""How a build of a site's own becomes an external: what it says of itself, as variants.

It reads, and decides nothing of what is built: Spack's package hash is of package.py alone.
"""

import os
import re

from spack.package import *

# Other words of configure for values of the recipes.
SPELLINGS = {
    "threads": {"runtime": "multiple", "yes": "multiple", "default": "multiple", "no": "single"},
    "error_checking": {"yes": "all", "none": "no"},
}


class MpichFound(PackageBase):
    """Variants that MVAPICH and MVAPICH2 have in common.

    The recipe has `known_file_systems`, and its kind's class `variants_said`.
    """

    @classmethod
    def determine_variants(cls, exes, version):
        """The variants of each build, from what it says of itself, its library and its files."""
        found = []
        for exe in exes:
            prefix = os.path.dirname(os.path.dirname(os.path.realpath(exe)))
            omb = os.path.isdir(os.path.join(prefix, "libexec", "osu-micro-benchmarks"))
            text = Executable(exe)(output=str, error=str)
            said = cls.variants_said(text, cls.needed_by_libmpi(prefix))
            found.append(" ".join([*said, "+omb" if omb else "~omb"]))
        return found

    @staticmethod
    def needed_by_libmpi(prefix):
        """The sonames that the libmpi.so below a prefix names."""
        for folder in ("lib", "lib64"):
            library = os.path.join(prefix, folder, "libmpi.so")
            if os.path.exists(library):
                with open(library, "rb") as elf:
                    parsed = parse_elf(elf, dynamic_section=True)
                return [name.decode() for name in parsed.dt_needed_strs]
        return []

    @staticmethod
    def options_said(text):
        """Options of configure from the text of `mpichversion`: name → value, "" where none."""
        line = re.search(r"^MVAPICH2? configure\s*:\s*(.*)$", text, re.M)
        options = {}
        # configure says its words bare or in quotes, and quotes that are none of a pair among them
        for word in line[1].split() if line else []:
            name, _, value = word.strip("'\"").partition("=")
            if value == "no" and name.startswith("--with-") and name != "--with-pm":
                name, value = name.replace("--with-", "--without-", 1), ""
            options[name] = value
        return options

    @staticmethod
    def is_on(options, name, default):
        """Whether a feature is switched on, said as --enable, --disable or =no."""
        if f"--disable-{name}" in options:
            return False
        return options.get(f"--enable-{name}", "" if default else "no") != "no"

    @classmethod
    def common_said(cls, options, checking):
        """Threads, checks of arguments (`checking`, where nothing is said), MPI-IO and symbols."""
        said = []
        for variant, default in (("threads", "multiple"), ("error_checking", checking)):
            option = variant.replace("_", "-")
            value = options.get(f"--enable-{option}") or default
            value = value if cls.is_on(options, option, True) else "no"
            said.append(f"{variant}={SPELLINGS[variant].get(value, value)}")
        # ROMIO takes an argument of a file system after a colon
        named = [one.partition(":")[0] for one in options.get("--with-file-system", "").split("+")]
        systems = ",".join(sorted({*named} & {*cls.known_file_systems})) or "auto"
        said.append("file_systems=" + (systems if cls.is_on(options, "romio", True) else "none"))
        symbols = {"debug", "dbg", "all", "most", "yes"}
        debug = symbols & {*options.get("--enable-g", "").split(",")}
        return [*said, "+debug" if debug else "~debug"]
