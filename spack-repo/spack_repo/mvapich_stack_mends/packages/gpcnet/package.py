"""GPCNeT, of bytes that can be proved."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.gpcnet.package import Gpcnet as BuiltinGpcnet
except Exception as error:
    BuiltinGpcnet = gone("gpcnet", error)


class Gpcnet(Mend, BuiltinGpcnet):
    """The congestion benchmark GPCNeT, over MVAPICH.

    Builtin's only version is the head of a branch: not what was measured last year, and nothing
    that a lock could name. Upstream has no tags; its README of this commit says 1.3.
    """

    version("1.3", commit="c56fd950ae6552ffce7a55cfa6d5617454e983e3")
