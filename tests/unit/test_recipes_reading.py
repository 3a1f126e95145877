"""Recipes are read without Spack, whatever way they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.model import Recipe, class_for
from recipes.reading import read_recipe, read_recipes

from mvstack.support.errors import InvalidInput

HEAD = """from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack.package import *
"""


def recipe(folder: Path, body: str, head: str = HEAD, bases: str = "AutotoolsPackage") -> Recipe:
    home = folder / "spack_repo" / "mvapich_stack" / "packages" / "my_pkg"
    home.mkdir(parents=True, exist_ok=True)
    lines = "\n".join("    " + line for line in body.splitlines())
    (home / "package.py").write_text(f'{head}\nclass MyPkg({bases}):\n    """Text."""\n{lines}\n')
    return read_recipe(home / "package.py")


def test_plain_directives(tmp_path: Path) -> None:
    found = recipe(
        tmp_path,
        'url = "https://example.org/my-1.0.tar.gz"\n'
        'license("MIT")\n'
        f'version("2.0", sha256="{"a" * 64}", deprecated=True)\n'
        f'version("1.0", sha256="{"b" * 64}", url="https://example.org/old/1.0.tgz")\n'
        'variant("shared", default=True, description="Shared")\n'
        'variant("mode", default="fast", values=("fast", "slow"), description="Mode")\n'
        'variant("any", default="x", description="Any word")\n'
        'depends_on("zlib@1.2:", when="+shared", type=("build", "run"))\n'
        'conflicts("mode=slow", when="+shared", msg="use mode=fast")\n'
        'requires("+shared", "mode=fast", msg="take one")\n'
        'provides("mpi@:3", when="@2:")\n'
        'patch("fix.patch", when="@1.0")\n',
    )
    assert (found.name, found.class_name, found.licence) == ("my-pkg", "MyPkg", "MIT")
    two, one = found.versions
    assert (two.name, two.sha256) == ("2.0", "a" * 64)
    assert found.url_for(two) == "https://example.org/my-2.0.tar.gz"
    assert found.url_for(one) == "https://example.org/old/1.0.tgz"
    assert found.variant_values() == {
        "shared": {"true", "false"},
        "mode": {"fast", "slow"},
        "any": set(),
    }
    assert [v.words() for v in found.variants][:2] == [
        ["+shared", "~shared"],
        ["mode=fast", "mode=slow"],
    ]
    assert [(c.kind, c.spec, c.message) for c in found.conflicts] == [
        ("conflicts", "mode=slow", "use mode=fast"),
        ("requires", "+shared or mode=fast", "take one"),
    ]
    assert (found.provides, found.patches) == (("mpi@:3",), (("fix.patch", "@1.0"),))


def test_blocks_loops_constants_and_functions(tmp_path: Path) -> None:
    head = HEAD + (
        'FABRICS = {"tcp": "", "efa": "fabrics=efa"}\n'
        "def _gpu(name, what='GPU'):\n"
        "    variant(name, default=False, description=f'{what} {name}')\n"
    )
    found = recipe(
        tmp_path,
        'with when("@4:"):\n'
        '    with default_args(when="+x", level=1):\n'
        '        patch("old.patch")\n'
        "for _fabric, _needed in FABRICS.items():\n"
        "    if _needed:\n"
        '        patch(f"{_fabric}.patch", when=f"fabrics={_fabric}")\n'
        'variant("fabrics", default="tcp", values=tuple(FABRICS), multi=True, description="Nets")\n'
        "_gpu('cuda')\n"
        "_gpu('rocm', what='AMD')\n"
        "_words = ['netmod=' + one for one in ('ofi', 'ucx') if one != 'ucx']\n"
        'requires(*_words, "netmod=both", msg="use one")\n',
        head,
    )
    assert [(p, when) for p, when in found.patches] == [
        ("old.patch", "@4: +x"),
        ("efa.patch", "fabrics=efa"),
    ]
    assert found.variant_values()["fabrics"] == {"tcp", "efa"}
    assert [v.description for v in found.variants][1:] == ["GPU cuda", "AMD rocm"]
    assert found.conflicts[0].spec == "netmod=ofi or netmod=both"


def test_sets_of_values(tmp_path: Path) -> None:
    found = recipe(
        tmp_path,
        'variant("pm", values=disjoint_sets(("auto",), ("a", "b")).with_error("alone")'
        '.with_default("auto").with_non_feature_values("auto"), description="Managers")\n'
        'variant("fs", values=auto_or_any_combination_of("nfs", "ufs"), description="Files")\n'
        'variant("inside", values=any_combination_of("ucx"), description="Inside")\n'
        'variant("c", default="x", values=("x", conditional("y", "z", when="@2:")), '
        'description="C")\n',
    )
    assert found.variant_values() == {
        "pm": {"auto", "a", "b", "none"},
        "fs": {"auto", "nfs", "ufs"},
        "inside": {"none", "ucx"},
        "c": {"x", "y", "z"},
    }
    assert [v.default for v in found.variants] == ["auto", "auto", "none", "x"]
    assert found.variants[3].conditional == {"y": "@2:", "z": "@2:"}


def test_what_it_inherits(tmp_path: Path) -> None:
    head = HEAD + (
        "from spack_repo.builtin.packages.zlib.package import Zlib\n"
        "from spack_repo.builtin.packages.mpich.package import MpichEnvironmentModifications\n"
    )
    mending = recipe(tmp_path, "pass", head, "Zlib")
    assert (mending.builtin, mending.helpers) == ("zlib", ())
    whole = "import spack_repo.builtin.packages.zlib.package as builtin\n"
    assert recipe(tmp_path, "pass", whole, "builtin.Zlib").builtin == "zlib"
    own = recipe(tmp_path, "pass", head, "MpichEnvironmentModifications, CudaPackage")
    assert own.builtin == ""
    assert own.variant_values() == {"cuda": {"true", "false"}, "cuda_arch": set()}


def test_a_file_beside_it_is_read_as_well(tmp_path: Path) -> None:
    shared = tmp_path / "spack_repo" / "mvapich_stack" / "build_systems"
    shared.mkdir(parents=True)
    (shared / "mine.py").write_text(
        "from spack.package import *\n"
        'NAMES = ("a", "b")\n'
        "class Mine(PackageBase):\n"
        "    manual_download = True\n"
        '    variant("shared", default=False, description="From the mixin")\n'
    )
    home = tmp_path / "spack_repo" / "mvapich_stack" / "packages" / "my_pkg"
    home.mkdir(parents=True)
    (home / "words.py").write_text('WORDS = ("x", "y")\n')
    head = HEAD + (
        "from spack_repo.mvapich_stack.build_systems.mine import NAMES, Mine\n"
        "from .words import WORDS\n"
    )
    found = recipe(
        tmp_path,
        'variant("name", default="a", values=NAMES, description="N")\n'
        'variant("word", default="x", values=WORDS, description="W")\n',
        head,
        "Mine",
    )
    assert found.manual
    assert found.variant_values() == {
        "shared": {"true", "false"},
        "name": {"a", "b"},
        "word": {"x", "y"},
    }


@pytest.mark.parametrize(
    "line",
    [
        'version(open("version").read())',
        'variant("x", default=1, values=lambda v: v > 0, description="D")',
        "for _one in some_module.things():\n    depends_on(_one)",
        "a_function_from_elsewhere()",
        "version()",
    ],
)
def test_what_cannot_be_told_is_an_error_at_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read without Spack") as caught:
        recipe(tmp_path, f"x = 1\n{line}")
    assert caught.value.problems[0].where.endswith("package.py:8")


def test_what_stands_below_the_class_is_not_run(tmp_path: Path) -> None:
    head = HEAD + "import os\nTOP = os.path.join('a', 'b')\n"
    body = 'license("MIT")\n\nfor one in MyPkg.requirements[Spec("+x")]:\n    one()'
    text = recipe(tmp_path, "license('MIT')", head).path.read_text()
    path = tmp_path / "spack_repo" / "mvapich_stack" / "packages" / "my_pkg" / "package.py"
    path.write_text(text + "\n" + body.partition("\n\n")[2] + "\n")
    assert read_recipe(path).licence == "MIT"


def test_a_recipe_gets_nothing_of_the_machine(tmp_path: Path) -> None:
    for line in ("import os\nos.remove('x')", "open('x', 'w')", "__import__('os').getcwd()"):
        with pytest.raises(InvalidInput, match="cannot be read without Spack"):
            recipe(tmp_path, line)


def test_files_that_are_no_recipe_are_named_all_at_once(tmp_path: Path) -> None:
    for name, text in (("one", "def ("), ("two", "x = 1\n"), ("three", "\0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "package.py").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_recipes(tmp_path)
    message = str(caught.value)
    assert message.count("package.py") == 3
    assert "one/package.py:1: it cannot be read as Python" in message
    assert "class Two" in message


def test_class_names() -> None:
    assert class_for("mvapich2_x") == "Mvapich2X"
    assert class_for("_3proxy") == "_3proxy"
    assert class_for("py-horovod") == "PyHorovod"
