"""Runs inside Spack (`spack python`): what recipes say of specs that were written, not solved for.

Called with the paths of a request and of an answer, both JSON. The request is a list of
``{"spec": …, "ask": …, "spaces": […]}``, the answer a list of lists: what the recipe of the root
says in each of these package repositories. A spec names all that the recipe looks at; other
variants take their defaults. ``ask`` is one of: arguments (of configure), flags:<name> (added to
the compiler's), builder (the classes that build), refusals (what the solver would find broken),
call:<name> (a method or attribute), commit (that git checks out), libs:<name> (the libraries that
it finds of a dependency), run:<names> (these variables in the environment of users), any other word
with commas: these variables of the build's environment. ``prefixes`` gives packages other places
than /made-up.
"""

import json
import sys
from pathlib import Path

import spack.build_environment
import spack.builder
import spack.error
import spack.fetch_strategy
import spack.repo
from spack.context import Context
from spack.spec import ArchSpec, FlagMap, Spec, substitute_abstract_variants
from spack.util.environment import EnvironmentModifications


def concrete(text: str, prefixes: dict[str, str] | None = None) -> Spec:
    """A concrete spec of what the text names, below /made-up but for those in prefixes.

    Nothing is solved.
    """
    spec = Spec(text)
    for node in spec.traverse():
        recipe = spack.repo.PATH.get_pkg_class(node.fullname)
        node.namespace = recipe.namespace
        node.architecture = ArchSpec("linux-debian12-x86_64")
        node.set_prefix((prefixes or {}).get(node.name, f"/made-up/{node.name}"))
        for flags in FlagMap.valid_compiler_flags():
            node.compiler_flags.dict.setdefault(flags, [])
        substitute_abstract_variants(node)
        for when, variants in recipe.variants.items():
            for name, variant in variants.items():
                if name not in node.variants and node.satisfies(when):
                    node.variants[name] = variant.make_default()
    spec._mark_concrete()
    return spec


def refusals(spec: Spec) -> list[str]:
    """Which declarations of the root's recipe the spec breaks."""
    recipe, broken = type(spec.package), []
    for when, dependencies in recipe.dependencies.items():
        for name, dependency in dependencies.items():
            if name in spec and spec.satisfies(when) and not spec[name].satisfies(dependency.spec):
                broken.append(f"needs {dependency.spec}")
    for trigger, conflicts in recipe.conflicts.items():
        broken += [
            f"conflicts: {message}"
            for conflict, message in conflicts
            if spec.satisfies(trigger) and spec.satisfies(conflict)
        ]
    for when, requirements in recipe.requirements.items():
        broken += [
            f"requires: {message}"
            for allowed, _, message in requirements
            if spec.satisfies(when) and not any(spec.satisfies(one) for one in allowed)
        ]
    return broken


def environment(spec: Spec, names: list[str], *, run: bool = False) -> dict[str, str]:
    """What the variables are set to by the builder of the root, or for those who run it."""
    changes = EnvironmentModifications()
    if run:
        spec.package.setup_run_environment(changes)
    else:
        spack.builder.create(spec.package).setup_build_environment(changes)
    result: dict[str, str] = {}
    changes.apply_modifications(result)
    return {name: result[name] for name in names if name in result}


def answer(spec: Spec, ask: str) -> object:
    """What the recipe of the root says, its module set up as for a build."""
    spack.build_environment.set_package_py_globals(spec.package, context=Context.BUILD)
    for edge in spec.edges_to_dependencies():
        edge.spec.package.setup_dependent_package(spec.package.module, spec)
    if ask == "arguments":
        return list(spec.package.configure_args())
    if ask == "refusals":
        return refusals(spec)
    if ask == "builder":
        classes = type(spack.builder.create(spec.package)).__mro__
        return [f"{one.__module__}.{one.__name__}" for one in classes]
    if ask == "commit":
        return spack.fetch_strategy.for_package_version(spec.package).commit
    if ask.startswith("call:"):
        found = getattr(spec.package, ask.removeprefix("call:"))
        return found() if callable(found) else found
    if ask.startswith("libs:"):
        return list(spec[ask.removeprefix("libs:")].libs)
    if ask.startswith("run:"):
        return environment(spec, ask.removeprefix("run:").split(","), run=True)
    if ask.startswith("flags:"):
        return list(spec.package.flag_handler(ask.removeprefix("flags:"), [])[0])
    return environment(spec, ask.split(","))


def told(spec: Spec, ask: str) -> object:
    """The answer, or the error that the recipe ends with."""
    try:
        return answer(spec, ask)
    except spack.error.SpackError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text())
    found = [
        [
            told(concrete(f"{space}.{one['spec']}", one.get("prefixes", {})), one["ask"])
            for space in one["spaces"]
        ]
        for one in asked
    ]
    Path(sys.argv[2]).write_text(json.dumps(found))
