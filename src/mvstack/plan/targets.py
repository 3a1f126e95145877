"""What a compiler makes of a processor, by archspec's table, which is Spack's too. Pure."""

import archspec.cpu


def target_for(target: str, compiler: str, version: str) -> str:
    """The archspec target that programs for ``target`` are compiled for.

    It is ``target``, or the nearest older one for which archspec finds options of this version of
    the compiler: zen3 for a zen4 and gcc 12.2.0, because its rows for zen4 end at 12.2, begin again
    at 12.3, and 12.2.0 counts as newer than 12.2. Spack refuses what archspec does not find. A
    target that archspec does not know is left as it is.
    """
    return _compiled(target, compiler, version)[0]


def options_for(target: str, compiler: str, version: str) -> str:
    """The options that make ``compiler`` write for ``target``, or the nearest that it knows.

    "" when archspec knows none: the compiler then writes for its family.
    """
    return _compiled(target, compiler, version)[1]


def _compiled(target: str, compiler: str, version: str) -> tuple[str, str]:
    known = archspec.cpu.TARGETS.get(target)
    # x86_64_v4 and its like, which are no processor, come after all that are
    older = sorted(known.ancestors, key=lambda one: one.vendor == "generic") if known else []
    for candidate in [known, *older] if known else []:
        try:
            options = candidate.optimization_flags(compiler, version)
        except (archspec.cpu.UnsupportedMicroarchitecture, archspec.cpu.InvalidCompilerVersion):
            continue
        return str(candidate.name), str(options).strip()
    return target, ""


def family_of(target: str) -> str:
    """The family of ``target``, which every compiler knows: x86_64, aarch64, ppc64le."""
    known = archspec.cpu.TARGETS.get(target)
    return str(known.family.name) if known else target
