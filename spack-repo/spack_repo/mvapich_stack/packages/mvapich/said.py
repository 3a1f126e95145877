"""From what an installed MVAPICH says of itself to the variants of the recipe. Pure."""

import re

# Other words of configure for values of the recipe.
SPELLINGS = {
    "threads": {"runtime": "multiple", "yes": "multiple", "default": "multiple", "no": "single"},
    "error_checking": {"yes": "all", "none": "no"},
}


def options_said(text):
    """The options of configure in the text of `mpichversion`: name → value, "" when none."""
    line = re.search(r"^MVAPICH configure\s*:\s*(.*)$", text, re.M)
    options = {}
    # configure says its words bare or in quotes, and quotes that are none of a pair among them
    for word in line.group(1).split() if line else []:
        name, _, value = word.strip("'\"").partition("=")
        options[name] = value
    return options


def netmods_said(text):
    """The netmods in its device line, in the order there; empty when it is not ch4."""
    device = re.search(r"^MVAPICH Device\s*:\s*ch4:(.*)$", text, re.M)
    # Asked for ch4:ucx,ofi, the library says "ch4:ucx ofi".
    words = re.split("[ ,]+", device.group(1).strip()) if device else []
    return [word.split(":")[0] for word in words if word]


def launcher_said(options):
    """The variants pmi and process_managers."""
    pmi, manager = options.get("--with-pmi", ""), options.get("--with-pm", "")
    if options.get("--with-pmix") or pmi == "pmix":
        found = ["pmi=pmix"]
    elif pmi == "cray" or "cray" in options.get("--with-pmi2", ""):
        found = ["pmi=cray"]
    elif options.get("--with-pmi2"):
        found = ["pmi=pmi2"]
    elif pmi == "slurm":
        found = ["pmi=pmi1"]
    else:
        word = pmi.split("/")[0]
        found = ["pmi=" + (word if word in ("pmi1", "pmi2") else "simple")]
    # --with-slurm alone tells hydra where Slurm's lists of hosts come from.
    if "slurm" in (manager, pmi, options.get("--with-pmilib")):
        return [*found, "process_managers=slurm"]
    if manager in ("no", "none"):
        return [*found, "process_managers=none"]
    named = [name for name in re.split("[:,]", manager) if name not in ("", "mpirun")]
    return [*found, *(["process_managers=" + ",".join(named)] if named else [])]


def variants_said(text, needed):
    """All variants from the text of `mpichversion` and the libraries that libmpi.so needs.

    Which fabrics the transport drives cannot be told from either.
    """
    options, netmods = options_said(text), netmods_said(text)

    def linked(stem):
        return any(name.startswith(stem + ".so") for name in needed)

    def off(name):
        return f"--disable-{name}" in options or options.get(f"--enable-{name}") == "no"

    found = ["netmod=" + ",".join(sorted(netmods))] if netmods else []
    inside = [
        name
        for name, stem, wanted in (
            ("hwloc", "libhwloc", True),
            ("libfabric", "libfabric", "ofi" in netmods),
            ("ucx", "libucp", "ucx" in netmods),
        )
        if needed and wanted and not linked(stem)
    ]
    found.append("embedded=" + (",".join(inside) or "none"))
    found += launcher_said(options)
    old = re.search(r"^MVAPICH Version\s*:\s*3\.", text, re.M)
    for variant, option, default in (
        ("threads", "threads", "multiple"),
        ("error_checking", "error-checking", "all" if old else "runtime"),
    ):
        value = "no" if off(option) else options.get(f"--enable-{option}") or default
        found.append(f"{variant}={SPELLINGS[variant].get(value, value)}")
    found.append(f"datatype_engine={options.get('--with-datatype-engine') or 'auto'}")
    systems = sorted(filter(None, options.get("--with-file-system", "").split("+")))
    found.append("file_systems=" + ("none" if off("romio") else ",".join(systems) or "auto"))
    for variant, stem in (
        ("cuda", "libcudart"),
        ("rocm", "libamdhip64"),
        ("level_zero", "libze_loader"),
        ("xpmem", "libxpmem"),
    ):
        found.append(("+" if linked(stem) else "~") + variant)
    found.append("~fortran" if off("fortran") else "+fortran")
    found.append("+debug" if "dbg" in options.get("--enable-g", "") else "~debug")
    pathless = options.get("--with-wrapper-dl-type") == "none"
    found.append("~wrapperrpath" if pathless else "+wrapperrpath")
    return found
