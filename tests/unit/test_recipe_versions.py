"""Which versions a recipe has, read from its syntax tree."""

from __future__ import annotations

import pytest

from mvstack.recipes.rows import module_name, versions

RECIPE = '''
from spack.package import *

class Mvapich(AutotoolsPackage):
    """An MPI."""
    version("develop", branch="main")
    version("4.1", sha256="a")
    version("3.1", sha256="c", deprecated=True)
    with default_args(deprecated=True):
        version("3.0", sha256="d")
        with when("+old"):
            version("2.0", sha256="f")
    if True:
        version("1.0", sha256="h", deprecated=True)
    else:
        version("1.1", sha256="i")
    depends_on("zlib", when="@4:")
'''


def test_every_version_counts_wherever_it_stands_the_newest_first() -> None:
    assert versions(RECIPE) == ["develop", "4.1", "3.1", "3.0", "2.0", "1.1", "1.0"]
    assert versions('version("1", deprecated=True)\nversion("1")\nversion("2")') == ["2", "1"]


@pytest.mark.parametrize(
    ("package", "module"),
    [("py-mpi4py", "py_mpi4py"), ("7zip", "_7zip"), ("pass", "_pass"), ("global", "_global")],
)
def test_folders_are_named_as_spack_names_them(package: str, module: str) -> None:
    assert module_name(package) == module
