"""How one easyconfig of a package serves every MPI of the stack.

A package is written by hand once, over MVAPICH and libfabric:
``HDF5-1.14.5-gmvapich-2026.11-ofi.eb``. The easyconfig over MPICH or a site's MVAPICH-Plus differs
in the name of its toolchain alone. So there are no copies: ``mvstack`` writes the text over the MPI
of a partition into its tree, and ``hooks.py`` does it for an EasyBuild that is run by itself. Both
ask here.

What needs MPICH, or one netmod, is written by hand over that, and its own file goes first.
"""

import re

# For each MPI product: the toolchain of GCC and MPI, and that with linear algebra and FFT.
TOOLCHAINS = {
    "mvapich": {"gmvapich": "gmvapich", "mvfoss": "mvfoss"},
    "mpich": {"gmvapich": "gmpich", "mvfoss": "mpfoss"},
    "mvapich-plus": {"gmvapich": "gmvplus", "mvfoss": "mvpfoss"},
    "mvapich2": {"gmvapich": "gmvapich2"},
}
BY_HAND = "ofi"  # the netmod over which a package is written

_OVER = re.compile(
    r"-(gmvapich2?|mvfoss|gmvplus|mvpfoss|gmpich|mpfoss)-(\d{4}\.\d{2})-([a-z0-9]+)(?=[-.])"
)


def sources(name):
    """The file names under which the easyconfig ``name`` may be written, the nearest first."""
    found = _OVER.search(name)
    if not found:
        return [name]
    chain, release, _netmod = found.groups()
    kind = next(kind for kind, own in _toolchains(chain).items() if own == chain)
    over = [f"-{one}-{release}-{BY_HAND}" for one in (chain, kind)]
    return list(dict.fromkeys([name, *(name.replace(found[0], one, 1) for one in over)]))


def text_over(text, source, name):
    """The ``text`` of the easyconfig ``source`` with the toolchain that ``name`` bears."""
    old, new = _OVER.search(source), _OVER.search(name)
    if source == name or not old or not new:
        return text
    before, after = _toolchains(old[1]), _toolchains(new[1])
    words = {before[kind]: after[kind] for kind in before if kind in after}
    words[f"{old[2]}-{old[3]}"] = f"{new[2]}-{new[3]}"
    pattern = "|".join(rf"\b{re.escape(word)}\b" for word in words)
    return re.sub(pattern, lambda match: words[match[0]], text)


def names_over(names, chains):
    """File name → the source among ``names``, of every package over the toolchains ``chains``.

    ``chains`` are such as ``mvfoss-2026.11-ucx``. What is written by hand over one is not listed.
    """
    found = {}
    for source in names:
        over = _OVER.search(source)
        for chain in chains if over else []:
            name = source.replace(over[0], f"-{chain}", 1)
            first = next((one for one in sources(name) if one in names), None)
            if first == source and name != source:
                found[name] = source
    return found


def _toolchains(chain):
    """Those of the product that `chain` is over."""
    return next(kinds for kinds in TOOLCHAINS.values() if chain in kinds.values())
