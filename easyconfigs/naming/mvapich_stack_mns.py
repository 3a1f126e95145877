"""Names of the stack's modules: one Lmod hierarchy, all lower case, the device in MPI's version.

    Core/gcc/12.2.0
    Compiler/gcc/12.2.0/mpich/4.0.2-ofi
    MPI/gcc/12.2.0/mpich/4.0.2-ofi/hpcc/1.5.0

Use it with ``--include-module-naming-schemes=<easyconfigs>/naming/*.py
--module-naming-scheme=MvapichStackMNS``. What only a build needs (GCCcore and the toolchains) gets
a version that begins with a dot: Lmod does not show such modules, and EasyBuild finds them all the
same, because it asks this class for their names.
"""

import re

from easybuild.tools.module_naming_scheme.hierarchical_mns import HierarchicalMNS

# Modules that nobody loads by hand.
HIDDEN = frozenset(
    ("GCCcore", "gmvapich", "gmvapich2", "mvfoss", "gmvplus", "mvpfoss", "gmpich", "mpfoss", "gfbf")
)


class MvapichStackMNS(HierarchicalMNS):
    """Hierarchical names in lower case, see above."""

    def det_short_module_name(self, ec):
        """`hpcc/1.5.0`; `gcccore/.12.2.0` for what is hidden."""
        version = self.det_full_version(ec)
        if ec["name"] in HIDDEN:
            version = f".{version}"
        return f"{ec['name']}/{version}".lower()

    def det_module_subdir(self, ec):
        """The part of the hierarchy in which the module stands; its first folder keeps capitals."""
        return lower_below_top(super().det_module_subdir(ec))

    def det_modpath_extensions(self, ec):
        """The parts of the hierarchy which the module opens."""
        return [lower_below_top(path) for path in super().det_modpath_extensions(ec)]

    def is_short_modname_for(self, short_modname, name):
        """Whether a module name such as `gcc/12.2.0` is one of the software `GCC`."""
        return bool(re.match(rf"^{re.escape(name.lower())}(/\S+)?$", short_modname))


def lower_below_top(path):
    """'Compiler/GCC/12.2.0' as 'Compiler/gcc/12.2.0'."""
    top, *rest = path.split("/")
    return "/".join([top] + [one.lower() for one in rest])
