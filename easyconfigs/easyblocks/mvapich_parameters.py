"""Checks of the parameters that the MVAPICH easyblock takes, before anything is built.

What each version knows comes from its own configure, see ``mvapich_options.py``. A word that is not
known is an error here: configure itself warns at best, and builds something else than was asked.
"""

import difflib

THREAD_LEVELS = ("single", "funneled", "serialized", "multiple", "runtime")
ERROR_CHECKING = ("no", "runtime", "all")
DATATYPE_ENGINES = ("auto", "yaksa", "dataloop")
OPTIMISATIONS = ("O0", "O1", "O2", "O3")

# Launchers that leave it to the resource manager's own program to start the ranks: no mpiexec.
FOREIGN_LAUNCHERS = ("slurm", "jsm", "flux", "none")

# PMI words that mean "the library speaks what the resource manager brings".
FOREIGN_PMI = ("slurm", "cray", "pmix")


def nearest(word, allowed):
    """The member of `allowed` closest to `word`, or an empty string when none is close."""
    found = difflib.get_close_matches(str(word), [str(one) for one in allowed], n=1, cutoff=0.4)
    return found[0] if found else ""


def complaint(product, parameter, found, allowed, because=""):
    """One error as text: parameter, what was found, what this version allows, nearest word, why."""
    lines = [
        f"parameter {parameter} does not fit {product}",
        f"    found     {found!r}",
        f"    allowed   {', '.join(str(one) for one in allowed) or '(nothing: leave it out)'}",
    ]
    close = nearest(found, allowed)
    if close:
        lines.append(f"    nearest   {close}")
    if because:
        lines.append(f"    because   {because}")
    return "\n".join(lines)


def _check_device(product, params, options):
    device = params["device"]
    if device in options.devices:
        return []
    return [complaint(product, "device", device, sorted(options.devices))]


def _check_launcher(product, params, options):
    found = []
    launcher, pmi = params["launcher"], params["pmi"]
    launchers = sorted(options.pm)
    if launcher not in options.pm:
        found.append(
            complaint(
                product,
                "launcher",
                launcher,
                launchers,
                "these are the process managers in its source",
            )
        )
    if pmi not in options.pmi:
        found.append(complaint(product, "pmi", pmi, sorted(options.pmi)))
    elif pmi in FOREIGN_PMI and launcher not in FOREIGN_LAUNCHERS and not found:
        fitting = [one for one in launchers if one in FOREIGN_LAUNCHERS]
        found.append(
            complaint(
                product,
                "launcher",
                launcher,
                fitting,
                f"pmi={pmi!r} is the resource manager's: ranks that another "
                "launcher starts would each be a world of one",
            )
        )
    return found


def _check_gpu(product, params, options):
    if params["gpu"] in options.gpu:
        return []
    return [complaint(product, "gpu", params["gpu"], sorted(options.gpu))]


def _check_file_systems(product, params, options):
    allowed = sorted(options.file_systems)
    return [
        complaint(product, "file_systems", one, allowed)
        for one in params["file_systems"] or []
        if one not in options.file_systems
    ]


def _check_words(product, params, options):
    found = []
    for name, allowed in (
        ("thread_level", THREAD_LEVELS),
        ("error_checking", ERROR_CHECKING),
        ("optimisation", OPTIMISATIONS),
    ):
        if params[name] not in allowed:
            found.append(complaint(product, name, params[name], allowed))
    engine = params["datatype_engine"]
    if engine is not None:
        known = "--with-datatype-engine" in options.flags
        if engine not in DATATYPE_ENGINES or not known:
            found.append(
                complaint(product, "datatype_engine", engine, DATATYPE_ENGINES if known else ())
            )
    if params["omb"] and "--disable-omb" not in options.flags:
        found.append(
            complaint(
                product, "omb", params["omb"], (False,), "its source brings no OSU Micro-Benchmarks"
            )
        )
    if params["xpmem"] and "--with-xpmem" not in options.flags:
        found.append(
            complaint(
                product,
                "xpmem",
                params["xpmem"],
                (False,),
                "its configure does not know --with-xpmem",
            )
        )
    return found


def _check_provisions(product, params, options):
    """Where libfabric, UCX and hwloc come from: 'system', 'embedded', or an absolute path."""
    found = []
    for library in ("libfabric", "ucx", "hwloc"):
        value = params[library]
        if value in (None, "system", "embedded") or str(value).startswith("/"):
            continue
        found.append(complaint(product, library, value, ("system", "embedded", "/absolute/path")))
    own = params["libfabric"] == "embedded" and product.startswith("MVAPICH 4")
    if not params["adapters"] and not own:
        why = "only the libfabric in MVAPICH 4's source is built by it: libfabric = 'embedded'"
        found.append(complaint(product, "adapters", params["adapters"], (True,), why))
    return found


def check_configopts(name, version, asked, options, unknown, misread):
    """What is wrong with the option names and option=value words in `asked`, as texts.

    `unknown` and `misread` say, for words that recipes are known to pass, what to do instead.
    """
    found = []
    for word in asked:
        option = word.partition("=")[0]
        if word in misread:
            found.append(f"configopts {word}: {name} {version} misreads it: it {misread[word]}")
        elif option not in options.flags:
            instead = unknown.get(option) or (
                nearest(option, options.flags) or "nothing like it is known"
            )
            found.append(
                f"configopts {option}: the configure of {name} {version} does not know it "
                f"and would ignore it\n    instead   {instead}"
            )
    return found


def check_parameters(name, version, params, options):
    """All that is wrong with `params` for this product, as a list of texts; empty when it fits.

    `params` maps parameter names to values, `options` is what ``options_for(name, version)`` gave.
    """
    product = f"{name} {version}"
    found = []
    for check in (
        _check_device,
        _check_launcher,
        _check_gpu,
        _check_file_systems,
        _check_words,
        _check_provisions,
    ):
        found.extend(check(product, params, options))
    return found
