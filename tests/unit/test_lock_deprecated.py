"""Which versions recipes call deprecated, read from their syntax trees."""

from __future__ import annotations

from pathlib import Path

import lock_files as locks
import pytest

from mvstack.builders.spack.gates import check
from mvstack.builders.spack.gates.deprecated import (
    deprecated_versions,
    module_name,
    standing,
)
from mvstack.model.gates import load_gates
from mvstack.plan.types import plan_of

RECIPE = '''
from spack.package import *

class Mvapich(AutotoolsPackage):
    """An MPI."""
    version("develop", branch="main")
    version("4.1", sha256="a")
    version("4.0", sha256="b", deprecated=False)
    version("3.1", sha256="c", deprecated=True)
    with default_args(deprecated=True):
        version("3.0", sha256="d")
        version("2.9", sha256="e", deprecated=False)
        with when("+old"):
            version("2.0", sha256="f")
    with default_args(type="build"):
        depends_on("gmake")
        version("4.0.1", sha256="g")
    if True:
        version("1.0", sha256="h", deprecated=True)
    else:
        version("1.1", sha256="i")
'''


def test_versions_are_deprecated_by_themselves_or_by_what_is_around_them() -> None:
    found = standing(RECIPE)
    assert found.deprecated == {"3.1", "3.0", "2.0", "1.0"}
    assert found.current == ("develop", "4.1", "4.0.1", "4.0", "2.9", "1.1")


def test_a_version_that_is_declared_twice_is_deprecated_when_one_says_so() -> None:
    found = standing('version("1", deprecated=True)\nversion("1")\nversion("2")')
    assert (found.deprecated, found.current) == ({"1"}, ("2",))


def test_recipes_are_found_in_the_folder_of_their_package(tmp_path: Path) -> None:
    data = locks.raw("good")
    for namespace, name, text in (
        ("mvapich_stack", "mvapich", 'version("4.1", deprecated=True)\nversion("4.2")\n'),
        ("builtin", "hpcc", 'version("1.5.0", deprecated=True)\n'),
        ("builtin", "compiler_wrapper", 'version("1.0")\n'),
        ("builtin", "openblas", "version(\n"),  # not Python: nothing can be said
    ):
        recipe = tmp_path / namespace / "packages" / name / "package.py"
        recipe.parent.mkdir(parents=True)
        recipe.write_text(text)
    lock = locks.lock(data)
    repos = {name: tmp_path / name for name in ("builtin", "mvapich_stack")}
    found = deprecated_versions(lock, repos)
    assert set(found) == {
        ("mvapich_stack", "mvapich"),
        ("builtin", "hpcc"),
        ("builtin", "compiler-wrapper"),
    }
    broken = check(lock, plan_of(locks.plan()), load_gates(), found)
    assert {(one.rule, one.package.partition("@")[0], one.passes) for one in broken} == {
        ("deprecated", "mvapich", "mvapich@=4.2"),
        ("deprecated", "hpcc", "none of builtin.hpcc: all its versions are deprecated"),
    }


def test_a_repository_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert deprecated_versions(locks.lock(locks.raw("good")), {"builtin": tmp_path / "no"}) == {}


@pytest.mark.parametrize(
    ("package", "module"),
    [("py-mpi4py", "py_mpi4py"), ("7zip", "_7zip"), ("pass", "_pass"), ("global", "_global")],
)
def test_folders_are_named_as_spack_names_them(package: str, module: str) -> None:
    assert module_name(package) == module
