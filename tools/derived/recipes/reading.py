"""Read package.py files without Spack: they run, with directives of ours that write down.

A recipe is Python, as an easyconfig is; `spack` runs it and so do we. But it gets none of Python's
functions that touch the machine, and whatever it imports from outside this repository is an empty
name (:mod:`mvstack.recipes.directives`). What it would need of Spack to say what it declares is an
error that names the line: nothing is skipped silently.
"""

import __future__

import ast
import builtins
import inspect
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from mvstack.support.errors import InvalidInput, MvstackError, gathered, relative, together
from mvstack.support.home import DATA
from recipes.directives import Directives, Outside, Said, outside
from recipes.model import Recipe, class_for

REPOSITORIES = DATA / "spack-repo" / "spack_repo"
RECIPES = REPOSITORIES / "mvapich_stack" / "packages"
MENDS = REPOSITORIES / "mvapich_stack_mends" / "packages"
_OURS = "spack_repo.mvapich_stack"
_BUILTIN = "spack_repo.builtin.packages."
_CONSTANTS = (ast.Assign, ast.AnnAssign)
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Try)
_METHODS = (FunctionType, property, classmethod, staticmethod)
_PYTHON = (
    *("all", "any", "bool", "dict", "enumerate", "float", "frozenset", "int", "isinstance", "len"),
    *("list", "max", "min", "range", "set", "sorted", "str", "super", "tuple", "type", "zip"),
    *("classmethod", "property", "staticmethod", "object", "Exception", "ValueError"),
)


def read_recipes(*folders: Path) -> list[Recipe]:
    """Every recipe below ``folders``, else of both our repositories; sorted in each.

    Raises InvalidInput with all that cannot be read.
    """
    found: list[Recipe] = []
    errors: list[MvstackError] = []
    for path in (p for f in folders or (RECIPES, MENDS) for p in sorted(f.glob("*/package.py"))):
        with gathered(errors):
            found.append(read_recipe(path))
    if errors:
        raise together(errors)
    return found


def read_recipe(path: Path) -> Recipe:
    """The recipe in ``path``. Raises InvalidInput when it cannot be read or holds no package."""
    run = _Run(path)
    package = _package_class(path, run.module(path), run.said)
    inherited = _inherited(package)
    own = [one for one in inherited if one in run.said]
    constants = {key: value for one in own for key, value in vars(one).items()}
    builtin, helpers = "", []
    for origin in (vars(one).get("origin", "") for one in inherited if isinstance(one, Outside)):
        folder = origin.removeprefix(_BUILTIN).partition(".")[0]
        if origin.startswith(_BUILTIN) and origin.endswith(f".{class_for(folder)}"):
            builtin = folder.removeprefix("_").replace("_", "-")
        elif origin:
            helpers.append(origin.rpartition(".")[2])
    said: dict[str, tuple[Any, ...]] = {
        name: tuple(each for one in own for each in run.said[one][name])
        for name in ("licence", "versions", "variants", "conflicts", "provides", "patches", "needs")
    }
    return Recipe(
        path=path,
        class_name=package.__name__,
        line=run.lines[package],
        docstring=inspect.cleandoc(package.__doc__ or ""),
        builtin=builtin,
        helpers=tuple(dict.fromkeys(helpers)),
        url=str(constants.get("url") or ""),
        manual=bool(constants.get("manual_download", False)),
        methods=frozenset(key for key, value in constants.items() if isinstance(value, _METHODS)),
        licence=(said.pop("licence") or ("",))[-1],
        **said,
    )


class _Run:
    """The recipe in ``path`` and the files of this repository that it imports, as they run."""

    def __init__(self, path: Path) -> None:
        self.directives = Directives(str(path))
        self.said: dict[type, Said] = {}
        self.lines: dict[type, int] = {}
        self.modules: dict[Path, dict[str, Any]] = {}

    def module(self, path: Path) -> dict[str, Any]:
        """The names of the file at ``path`` after it ran."""
        if path in self.modules:
            return self.modules[path]
        python = {name: getattr(builtins, name) for name in _PYTHON}
        python |= {"__import__": self._importer(path), "__build_class__": self._class}
        names = self.modules[path] = {"__builtins__": python, "__name__": path.stem}
        try:
            for constant, code in _statements(path, path.read_text(encoding="utf-8")):
                with suppress(*([Exception] if constant else [])):  # who uses the name meets it
                    exec(code, names)
        except InvalidInput:
            raise
        except (SyntaxError, ValueError, OSError) as error:
            line = getattr(error, "lineno", None) or _line_of(error, path)
            message = f"it cannot be read as Python: {getattr(error, 'msg', error)}"
            raise InvalidInput(message, _where(path, line)) from None
        except Exception as error:
            raise InvalidInput(
                "this cannot be read without Spack, so CI could not check it",
                _where(path, _line_of(error, path)),
                found=f"{type(error).__name__}: {error}",
                todo="write it with literals, constants, loops over them, `when` or `default_args`",
            ) from None
        return names

    def _class(self, body: Callable[[], Any], name: str, *bases: type, **more: Any) -> Any:
        with self.directives.body() as said:
            made = builtins.__build_class__(body, name, *bases, **more)
        self.said[made], self.lines[made] = said, body.__code__.co_firstlineno
        return made

    def _importer(self, path: Path) -> Callable[..., Any]:
        def get(name: str, _: Any = None, __: Any = None, wanted: Any = (), level: int = 0) -> Any:
            file = _beside(path, name, level)
            if file is not None and file.is_file():
                names = self.module(file)
                return SimpleNamespace(**{k: v for k, v in names.items() if k[:2] != "__"})
            if name == "spack.package":
                return SimpleNamespace(**self.directives.names())
            return outside(name if wanted else name.partition(".")[0])

        return get


@cache
def _statements(path: Path, text: str) -> list[tuple[bool, CodeType]]:
    """Of what stands outside classes: imports, definitions, and (True) the constants it can tell.

    The rest changes what builtin's recipes declare, which only Spack knows. Dozens of recipes
    import one file, which is compiled once.
    """
    # annotations name classes of Spack's, which are not there
    later = __future__.annotations.compiler_flag
    return [
        (isinstance(one, _CONSTANTS), compile(ast.Module([one], []), str(path), "exec", later))
        for one in ast.parse(text, str(path)).body
        if isinstance(one, (*_CONSTANTS, *_DEFINITIONS))
    ]


def _package_class(path: Path, names: dict[str, Any], own: dict[type, Said]) -> type:
    """The class that Spack takes: the one named after the folder, else the last with bases."""
    wanted = class_for(path.parent.name)
    classes = [
        one
        for one in names.values()
        if isinstance(one, type) and one in own and one.__module__ == path.stem
    ]
    if not classes:
        todo = f"write `class {wanted}(…)`"
        raise InvalidInput("there is no package class in it", relative(path), todo=todo)
    return next((one for one in classes if one.__name__ == wanted), classes[-1])


def _inherited(package: type) -> list[type]:
    """The class and all that it inherits, bases first."""
    return [one for base in package.__bases__ for one in _inherited(base)] + [package]


def _beside(path: Path, origin: str, level: int) -> Path | None:
    """The file that ``from <dots><origin> import …`` in ``path`` means; None for Spack's own."""
    if level:
        return path.parents[level - 1].joinpath(*origin.split(".")).with_suffix(".py")
    root = next((one for one in path.parents if one.name == "spack_repo"), None)
    if root is None or not origin.startswith(_OURS):
        return None
    return root.parent.joinpath(*origin.split(".")).with_suffix(".py")


def _line_of(error: BaseException, path: Path) -> int | None:
    """The last line of ``path`` that ran."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((frame.lineno for frame in frames if frame.filename == str(path)), None)


def _where(path: Path, line: int | None) -> str:
    return f"{relative(path)}:{line}" if line else relative(path)
