"""GPCNeT, of bytes that can be proved."""

from spack_repo.builtin.packages.gpcnet.package import Gpcnet as BuiltinGpcnet

from spack.package import *


class Gpcnet(BuiltinGpcnet):
    """The congestion benchmark GPCNeT, over MVAPICH.

    Builtin's only version is the head of a branch: not what was measured last year, and nothing
    that a lock could name. Upstream has no tags; its README of this commit says 1.3.
    """

    version("1.3", commit="c56fd950ae6552ffce7a55cfa6d5617454e983e3")
