"""What the directives in a class body say."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

from mvstack.recipes.model import Conflict, Dependency, Variant, Version, class_for
from mvstack.recipes.modules import Module
from mvstack.recipes.values import Unread, arguments_of, as_words, bound, value_of

_BUILTIN = "spack_repo.builtin.packages."
_DIRECTIVES = {
    "version",
    "variant",
    "depends_on",
    "conflicts",
    "requires",
    "provides",
    "license",
    "patch",
}
# Directives and calls that say nothing which is checked here.
_OTHER = {
    "maintainers",
    "extends",
    "resource",
    "filter_compiler_wrappers",
    "can_splice",
    "build_system",
    "redistribute",
    "register",
    "run_after",
    "run_before",
    "sanity_check_is_file",
    "tags",
    "print",
}


class Body:
    """The directives of a class and of those that it inherits in this repository."""

    def __init__(self, home: Module) -> None:
        self.home = home
        self.builtin = ""
        self.helpers: list[str] = []
        self.constants: dict[str, Any] = {}
        self.licence = ""
        self.versions: list[Version] = []
        self.variants: list[Variant] = []
        self.dependencies: list[Dependency] = []
        self.conflicts: list[Conflict] = []
        self.provides: list[str] = []
        self.patches: list[tuple[str, str]] = []
        self.methods: set[str] = set()
        self.unread: list[tuple[int, str]] = []

    def take(self, node: ast.ClassDef, home: Module | None = None) -> None:
        """Read the bases that are of this repository, then the class itself."""
        home = home or self.home
        for base in node.bases:
            if not isinstance(base, (ast.Name, ast.Attribute)):
                continue
            name = ast.unparse(base)
            if name in home.classes:
                owner, inner = home.classes[name]
                self.take(inner, owner)
                continue
            first, dot, rest = name.partition(".")
            origin = home.imports.get(first, first) + dot + rest
            folder = origin.removeprefix(_BUILTIN).partition(".")[0]
            if origin.startswith(_BUILTIN) and origin.endswith(f".{class_for(folder)}"):
                self.builtin = folder.removeprefix("_").replace("_", "-")
            else:
                self.helpers.append(name)
        self._run(node.body, dict(home.names), "", {}, home)

    # --- statements ------------------------------------------------------------------------

    def _run(
        self,
        body: list[ast.stmt],
        names: dict[str, Any],
        when: str,
        defaults: dict[str, Any],
        home: Module,
    ) -> None:
        for statement in body:
            match statement:
                case ast.Expr(value=ast.Call() as call):
                    self._call(call, names, when, defaults, home)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    with suppress(Unread):
                        names[name] = self.constants[name] = value_of(value, names)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    with suppress(Unread):
                        names[name] = self.constants[name] = value_of(value, names)
                case ast.FunctionDef(name=name):
                    self.methods.add(name)
                case ast.With():
                    self._with(statement, names, when, defaults, home)
                case ast.For():
                    self._for(statement, names, when, defaults, home)
                case ast.If():
                    for branch in _branches(statement, names):
                        self._run(branch, names, when, defaults, home)

    def _with(
        self,
        node: ast.With,
        names: dict[str, Any],
        when: str,
        defaults: dict[str, Any],
        home: Module,
    ) -> None:
        for item in node.items:
            call = item.context_expr
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                self._cannot(call)
                continue
            try:
                if call.func.id == "when":
                    when = _both(when, str(value_of(call.args[0], names)))
                elif call.func.id == "default_args":
                    more = {k.arg: value_of(k.value, names) for k in call.keywords if k.arg}
                    when = _both(when, str(more.pop("when", "")))
                    defaults = {**defaults, **more}
                else:
                    self._cannot(call)
            except Unread:
                self._cannot(call)
        self._run(node.body, names, when, defaults, home)

    def _for(
        self,
        node: ast.For,
        names: dict[str, Any],
        when: str,
        defaults: dict[str, Any],
        home: Module,
    ) -> None:
        try:
            for item in value_of(node.iter, names):
                self._run(node.body, bound(node.target, item, names), when, defaults, home)
        except (Unread, TypeError, ValueError):
            self._cannot(node.iter)

    # --- calls -----------------------------------------------------------------------------

    def _call(
        self,
        call: ast.Call,
        names: dict[str, Any],
        when: str,
        defaults: dict[str, Any],
        home: Module,
    ) -> None:
        if not isinstance(call.func, ast.Name) or call.func.id in _OTHER:
            return
        name = call.func.id
        if name in home.functions:
            owner, function = home.functions[name]
            self._function(function, call, names, when, defaults, owner)
            return
        if name not in _DIRECTIVES:
            self._cannot(call)
            return
        try:
            arguments = arguments_of(call, names)
            options = {
                **defaults,
                **{k.arg: value_of(k.value, names) for k in call.keywords if k.arg},
            }
        except Unread:
            self._cannot(call)
            return
        options["when"] = _both(when, str(options.get("when") or ""))
        try:
            getattr(self, f"_{name}")(call.lineno, arguments, options)
        except (IndexError, TypeError):
            self._cannot(call)

    def _function(
        self,
        function: ast.FunctionDef,
        call: ast.Call,
        names: dict[str, Any],
        when: str,
        defaults: dict[str, Any],
        home: Module,
    ) -> None:
        """A function of ours that declares: its body with its arguments known.

        ``home`` is the file that it is of, whose names it sees.
        """
        parameters = [one.arg for one in function.args.args]
        try:
            inner = dict(home.names)
            for one, value in zip(
                reversed(parameters), reversed(function.args.defaults), strict=False
            ):
                inner[one] = value_of(value, home.names)
            inner |= dict(zip(parameters, arguments_of(call, names), strict=False))
            inner |= {k.arg: value_of(k.value, names) for k in call.keywords if k.arg}
        except Unread:
            self._cannot(call)
            return
        self._run(function.body, inner, when, defaults, home)

    def _cannot(self, node: ast.expr) -> None:
        found = (node.lineno, ast.unparse(node)[:120])
        if found not in self.unread:
            self.unread.append(found)

    # --- directives ------------------------------------------------------------------------

    def _version(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        sha256 = options.get("sha256") or (arguments[1] if len(arguments) > 1 else "")
        self.versions.append(
            Version(
                str(arguments[0]),
                str(sha256 or ""),
                str(options.get("url") or ""),
                line,
                bool(options.get("deprecated", False)),
                str(options.get("commit") or ""),
            )
        )

    def _variant(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        default = options.get("default", arguments[1] if len(arguments) > 1 else None)
        given = options.get("values")
        conditional: dict[str, str] = {}
        values: tuple[str, ...] = ("true", "false")
        if given is not None and given is not bool:
            words = as_words(given)
            values, conditional = tuple(words), words.conditional
            default = words.default if default is None else default
        elif given is None and not isinstance(default, (bool, type(None))):
            values = ()
        if isinstance(default, (tuple, list)):
            default = ",".join(map(str, default))
        self.variants.append(
            Variant(
                str(arguments[0]),
                str(default).lower() if isinstance(default, bool) else str(default or ""),
                values,
                " ".join(str(options.get("description") or "").split()),
                line,
                options["when"],
                bool(options.get("multi", given is not None and hasattr(given, "conditional"))),
                conditional,
            )
        )

    def _depends_on(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        types = options.get("type", ("build", "link"))
        types = (types,) if isinstance(types, str) else tuple(types)
        self.dependencies.append(Dependency(str(arguments[0]), options["when"], types, line))

    def _conflicts(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        self.conflicts.append(
            Conflict(
                "conflicts",
                str(arguments[0]),
                options["when"],
                " ".join(str(options.get("msg") or "").split()),
                line,
            )
        )

    def _requires(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        self.conflicts.append(
            Conflict(
                "requires",
                " or ".join(map(str, arguments)),
                options["when"],
                " ".join(str(options.get("msg") or "").split()),
                line,
            )
        )

    def _provides(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        self.provides += [str(one) for one in arguments]

    def _license(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        self.licence = str(arguments[0])

    def _patch(self, line: int, arguments: list[Any], options: dict[str, Any]) -> None:
        self.patches.append((str(arguments[0]), options["when"]))


def _branches(node: ast.If, names: dict[str, Any]) -> list[list[ast.stmt]]:
    """The branch that is taken; both where that depends on the platform."""
    try:
        return [node.body if value_of(node.test, names) else node.orelse]
    except Unread:
        return [node.body, node.orelse]


def _both(one: str, other: str) -> str:
    return " ".join(part for part in (one, other) if part)
