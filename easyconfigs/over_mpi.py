"""How one easyconfig of a package serves every MPI of the stack, and the compiler of every Linux.

A package is written by hand once, over MVAPICH and libfabric:
``HDF5-1.14.5-gmvapich-2026.11-ofi.eb``. The easyconfig over MPICH or a site's MVAPICH-Plus differs
in the name of its toolchain alone. What is built with the compiler alone is written by hand for one
version of it, ``MVAPICH-4.0-GCC-12.2.0-ofi.eb``: over that of another distribution it differs in
this version, and what stands for a library of the distribution in the library's. So there are no
copies: ``mvstack`` writes the text that a partition needs into its tree, and ``hooks.py`` does it
for an EasyBuild that is run by itself. Both ask here.

What needs MPICH, one netmod or one GCC is written by hand over that, and its own file goes first.
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
GCC_BY_HAND = "12.2.0"  # the compiler, of generation 2022b

# The compilers of distributions for which there is a way, by their first number, and why no others.
COMPILERS = range(9, 17)
OTHERS = (
    "of a distribution's compilers GCC 9 to 16 will do: older ones lack C++17 that applications "
    "use, for newer ones no flags were tried"
)

# The libraries that are taken from the distribution, each with pkg-config's name of it.
LIBRARIES = {"FFTW": "fftw3", "OpenBLAS": "openblas"}

_OVER = re.compile(
    r"-(gmvapich2?|mvfoss|gmvplus|mvpfoss|gmpich|mpfoss)-(\d{4}\.\d{2})-([a-z0-9]+)(?=[-.])"
)
_KNOWN = f"GCC|GCCcore|{'|'.join(LIBRARIES)}"
# GCC-12.2.0 in a name; a text may name a patch _fix-GCC-10.patch
_NAMED = re.compile(rf"\b({_KNOWN})-(\d+(?:\.\d+)*)")
# ('GCC', '12.2.0') or {'name': 'GCC', 'version': '12.2.0'} in a text
_AT = re.compile(rf"\b({_KNOWN})(', *(?:'version': *)?')(\d+(?:\.\d+)*)")
# ('CMake', '3.24.3'; of another generation than that by hand nothing is bare
_NEEDED = re.compile(r"\('([\w.+-]+)', '([^']+)'(, '-bare')?")
BARE = ", ''"


def with_gcc(version, **libraries):
    """What a distribution has, as the functions below take it: software → version."""
    return {"GCC": version, "GCCcore": version, **libraries}


def named_at(name, versions):
    """An easyconfig's file name with the compiler and libraries in these ``versions``."""
    return _NAMED.sub(lambda found: f"{found[1]}-{versions.get(found[1], found[2])}", name)


def at(text, versions):
    """An easyconfig's text with the compiler, and what it stands on, in these ``versions``."""

    def needed(found):
        version = versions.get(found[1], found[2])
        suffix = found[3] or ""
        return f"('{found[1]}', '{version}'{suffix if version == found[2] else suffix and BARE}"

    text = _AT.sub(lambda found: f"{found[1]}{found[2]}{versions.get(found[1], found[3])}", text)
    return _NEEDED.sub(needed, text)


def versions_in(name):
    """The versions of the compiler and of a library that the file name ``name`` bears."""
    found = {one[1]: one[2] for one in _NAMED.finditer(name)}
    gcc = found.get("GCC") or found.get("GCCcore")
    return with_gcc(gcc, **found) if gcc else found


def source(name, names):
    """The file among ``names`` from which the easyconfig ``name`` is made; None when none is."""
    if found := next((one for one in _over_mpis(name) if one in names), None):
        return found
    here = versions_in(name)
    if not _has_a_way(here):
        return None
    same = [one for one in names if named_at(one, here) == name]
    return max(same, key=lambda one: _numbers(versions_in(one)), default=None)  # the newest by hand


def text_over(text, source, name, versions=None):
    """The ``text`` of the easyconfig ``source`` with the toolchain that ``name`` bears.

    ``versions`` are those of what else is taken from the distribution, as of :func:`with_gcc`.
    """
    versions = {**(versions or {}), **versions_in(name)}
    old, new = _OVER.search(source), _OVER.search(name)
    if source != name and old and new:
        before, after = _toolchains(old[1]), _toolchains(new[1])
        words = {before[kind]: after[kind] for kind in before if kind in after}
        words[f"{old[2]}-{old[3]}"] = f"{new[2]}-{new[3]}"
        pattern = "|".join(rf"\b{re.escape(word)}\b" for word in words)
        text = re.sub(pattern, lambda match: words[match[0]], text)
    if own := versions.get(name.partition("-")[0]):
        text = re.sub(r"^version = '.*'$", f"version = '{own}'", text, flags=re.M)
    for library in set(versions) & set(LIBRARIES):
        # of the package's own version, where the distribution has another of the library
        if f"\nversion = '{versions[library]}'\n" not in text:
            text = text.replace(f"('{library}', version", f"('{library}', '{versions[library]}'")
    return at(text, versions)


def names_over(names, chains):
    """File name → the source among ``names``, of every package over the toolchains ``chains``.

    ``chains`` are such as ``mvfoss-2026.11-ucx``. What is written by hand over one is not listed.
    """
    found = {}
    for one in names:
        over = _OVER.search(one)
        for name in [one.replace(over[0], f"-{chain}", 1) for chain in chains] if over else []:
            if name not in names and source(name, names) == one:
                found[name] = one
    return found


def names_at(files, versions):
    """File name → the source among ``files`` of all whose name or text is another at ``versions``.

    ``files`` are paths by name. Without a way for the compiler there are none.
    """
    found = {}
    for one, path in files.items() if _has_a_way(versions) else ():
        name, text = named_at(one, versions), path.read_text()
        if source(name, files) == one and text_over(text, one, name, versions) != text:
            found[name] = one
    return found


def _over_mpis(name):
    """The file names under which the easyconfig ``name`` may be written, the nearest first."""
    found = _OVER.search(name)
    if not found:
        return [name]
    chain, release, _netmod = found.groups()
    kind = next(kind for kind, own in _toolchains(chain).items() if own == chain)
    over = [f"-{one}-{release}-{BY_HAND}" for one in (chain, kind)]
    return list(dict.fromkeys([name, *(name.replace(found[0], one, 1) for one in over)]))


def _has_a_way(versions):
    """Whether packages are built with such a GCC of a distribution."""
    return "GCC" in versions and _numbers(versions)[0] in COMPILERS


def _numbers(versions):
    """The version of GCC as numbers."""
    return [int(one) for one in versions["GCC"].split(".")]


def _toolchains(chain):
    """Those of the product that `chain` is over."""
    return next(kinds for kinds in TOOLCHAINS.values() if chain in kinds.values())
