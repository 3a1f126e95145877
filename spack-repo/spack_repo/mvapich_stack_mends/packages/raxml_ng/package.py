"""RAxML-NG, of bytes that can be proved."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.raxml_ng.package import RaxmlNg as BuiltinRaxmlNg
except Exception as error:
    BuiltinRaxmlNg = gone("raxml-ng", error)


class RaxmlNg(Mend, BuiltinRaxmlNg):
    """The phylogenetics program RAxML-NG, over MVAPICH.

    Builtin's versions name neither a tag nor a commit: whichever is asked for, the head of
    upstream's branch is cloned. (Spack 1.1.0, fetch_strategy.py: `submodules` alone means git.)
    """

    version("2.0.1", commit="a7d61b56d2e0e6e263e4686bcbd0017659b37711", submodules=True)
    version("1.2.2", commit="805318cef87bd5d67064efa299b5d1cf948367fd", submodules=True)
    version("1.1.0", commit="9b8150852c21fd0caa764752797e17382fc03aa0", submodules=True)
