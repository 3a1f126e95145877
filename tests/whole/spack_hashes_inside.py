"""Runs inside Spack (`spack python`): which edits of a recipe does its hash see? Prints JSON.

The word after the file, as JSON: specs; specs with the modules that their recipes inherit from.
Each function of a recipe is edited alone, then each flag and each value outside functions that is
no directive's argument: directives count through the spec. A module is edited on disk.
"""

import ast
import json
import sys
from pathlib import Path

import spack.directives_meta
import spack.fetch_strategy
import spack.repo
from spack.spec import Spec
from spack.util.package_hash import package_hash

# What Spack leaves out: where sources are is in the spec, who maintains it decides nothing.
METADATA = {one.url_attr for one in spack.fetch_strategy.all_strategies} | {
    *("homepage", "url", "urls", "list_url", "extendable", "parallel", "make_jobs"),
    *("maintainers", "tags"),
}


def directive(node):
    """Whether a node is a call of a directive, or a loop, condition or block of nothing else."""
    if isinstance(node, (ast.For, ast.If, ast.With)):
        return all(map(directive, node.body))
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    name = getattr(node.value.func, "id", "") if calls else ""
    return name in spack.directives_meta.directive_names


def plain(node, docstrings, outside=True):
    """The constants below a node that decide something: flags, and all that is in no function."""
    if directive(node):
        return
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in METADATA:
        return
    flag = isinstance(node, ast.Constant) and str(node.value).startswith("-")
    if (flag or outside) and isinstance(node, ast.Constant) and node not in docstrings:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from plain(child, docstrings, outside and not isinstance(node, ast.FunctionDef))


def edits(text):
    """(what is edited, the text after it) for each function and each constant of a file."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in functions:
        node.body.append(ast.parse("edited = 1").body[0])
        yield f"function {node.name}", ast.unparse(tree)
        node.body.pop()
    strings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in list(plain(tree, strings)):
        held = node.value
        node.value = f"{held}-edited" if isinstance(held, str) else 4711
        yield f"line {node.lineno}: {held!r}", ast.unparse(tree)
        node.value = held


def unseen(text):
    """The edits of the recipe of a spec after which the hash of a spec is the same."""
    spec = Spec(text)
    file = Path(spack.repo.PATH.filename_for_package_name(spec.name))
    source = file.read_text()
    before = package_hash(spec, source=ast.unparse(ast.parse(source)).encode())
    assert before == package_hash(spec), "comments or layout count"
    tried, same = 0, []
    for what, changed in edits(source):
        tried += 1
        if package_hash(spec, source=changed.encode()) == before:
            same.append(what)
    return {"tried": tried, "unseen": same}


def content_hashes(text, edited):
    """The hash that goes into a spec, and that after an edit of each file that it inherits from."""
    spec = Spec(text)
    package = spack.repo.PATH.get_pkg_class(spec.name)(spec)
    found = {"": package.content_hash()}
    for name in edited:
        file = Path(sys.modules[name].__file__)
        kept = file.read_bytes()
        try:
            file.write_bytes(kept + b"\nEDITED = 1\n")
            found[name] = package.content_hash()
        finally:
            file.write_bytes(kept)
    return found


recipes, inheriting = json.loads(sys.argv[-1])
print(
    json.dumps(
        {
            "recipes": {name: unseen(name) for name in recipes},
            "inheriting": {one: content_hashes(one, files) for one, files in inheriting.items()},
        }
    )
)
