"""Inside Spack: is the lock of an environment what was asked for?

By hand, for any environment, `spack -e DIR python verify.py` prints each difference and ends
with 1 where there is one. `mvstack` runs `spack -e DIR python verify.py REQUEST ANSWER`:

REQUEST  {"specs": [what the plan asks for, …], "all": what it asks of every package,
          "compiler": what compiles}
ANSWER   {"differences": [{"hash", "package", "gate", "field", "found", "planned"}]}

What is asked of a package is said by the plan, packages.yaml, the words of the roots, the recipes
of those that need it, the compiler, and its own recipe. Where none of them speaks, its recipe's
default holds. What the site provides is what packages.yaml says. Nothing is solved for.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import spack.config
import spack.deptypes as dt
import spack.environment
import spack.error
import spack.externals
import spack.hash_types
import spack.repo
from spack.spec import SPECFILE_FORMAT_VERSION, Spec

LANGUAGES = frozenset({"c", "cxx", "fortran"})
Row = tuple[str, str, Any, Any]  # gate, field, found, planned


def main(request: str = "", answer: str = "") -> int:
    """Answer one request, or print what differs; the exit status."""
    plan = json.loads(Path(request).read_text(encoding="utf-8")) if request else {}
    environment = spack.environment.active_environment()
    found = differences(environment, plan)
    if answer:
        Path(answer).write_text(json.dumps({"differences": found}), encoding="utf-8")
        return 0
    if not list(environment.all_specs()):
        print("nothing is concretized here: run `spack concretize` first")
        return 1
    for one in found:
        print("{package}/{hash:.7}: {gate}: {field} {found}, planned {planned}".format(**one))
    print(f"{len(list(environment.all_specs()))} packages, {len(found)} differences")
    return 1 if found else 0


def differences(environment: Any, plan: dict[str, Any]) -> list[dict[str, str]]:
    """What differs in the lock of an environment, each as a row of the answer."""
    unknown = [one for one in environment.all_specs() if not known(one)]
    asked = None if unknown else Asked(environment, plan)
    names = ("hash", "package", "gate", "field", "found", "planned")
    lost = ("recipe", "namespace and name", "none", "one that has a recipe")
    rows = [
        (node.dag_hash(), node.format("{name}{@version}"), *words, text(found), text(planned))
        for node in (asked.nodes if asked else unknown)
        for *words, found, planned in (asked.differences(node) if asked else [lost])
        if text(found) != text(planned) or (found is None) != (planned is None)
    ]
    return [dict(zip(names, row, strict=True)) for row in dict.fromkeys(rows)]


def text(value: Any) -> str:
    """A value as people read it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "none")


def known(node: Spec) -> bool:
    """Whether a package has a recipe here."""
    try:
        return recipe(node) is not None
    except spack.error.SpackError:
        return False


def recipe(node: Spec) -> Any:
    """The class of a package's recipe."""
    return spack.repo.PATH.get_pkg_class(node.fullname)


def package_hash(node: Spec) -> str:
    """The hash of a recipe and of what it fetches and patches with."""
    try:
        return str(node.package.content_hash())
    except spack.error.SpackError as error:  # a patch that the recipe does not know
        return str(error)


def hash_of(node: Spec) -> str:
    """The hash of a package as it was read; an external is hashed before it has a namespace."""
    again = node.copy(deps=True)
    again.namespace = None if node.external else node.namespace
    return again.spec_hash(spack.hash_types.dag_hash)


def required(entry: dict[str, Any]) -> Iterator[list[Spec]]:
    """What packages.yaml requires of a package: one of each list."""
    rows = entry.get("require", [])
    for row in [rows] if isinstance(rows, str) else rows:
        said = row if isinstance(row, str) else row.get("spec") or row.get("one_of", row["any_of"])
        yield [Spec(one) for one in ([said] if isinstance(said, str) else said)]


class Compiled:
    """What compilers ask of all that they compile; stands where Spack's solver takes it down."""

    def __init__(self, compilers: Iterable[Spec]) -> None:
        self.package, self.needs, self.required = "", [], []
        for one in compilers:
            if hasattr(recipe(one), "runtime_constraints"):
                recipe(one).runtime_constraints(spec=one, pkg=self)
            by = f"{one.name}@{one.versions}"
            self.depends_on("libc", when=f"%[deptypes=build] {by}", type="link")
            for word in LANGUAGES:
                when = f"%[deptypes=build virtuals={word}] {by}"
                self.depends_on("compiler-wrapper", when=when, type="build")

    def __call__(self, package: str) -> "Compiled":
        self.package = package
        return self

    def depends_on(self, need: str, *, when: str, type: str, **_: Any) -> None:
        """As in a recipe."""
        self.needs.append((Spec(when), Spec(need), dt.canonicalize(type), {}))

    def requires(self, words: str, *, when: str) -> None:
        """As in a recipe."""
        self.required.append((self.package, Spec(when), [Spec(words)]))

    def propagate(self, *_: Any, **__: Any) -> None:
        """Of what else may be below; the gate `unique` is stricter."""


class Asked:
    """What is asked of each package of a lock, by its hash."""

    def __init__(self, environment: Any, plan: dict[str, Any]) -> None:
        self.compiler, self.by_hand = plan.get("compiler", ""), not plan
        self.nodes = list(environment.all_specs())
        self.packages = spack.config.get("packages")
        site = spack.externals.extract_dicts_from_configuration(self.packages)
        self.site = spack.externals.ExternalSpecsParser(site)
        self.words: dict[str, list[Spec]] = defaultdict(list)
        self.edges: dict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(
            lambda: (set(), set())
        )
        self.patches: dict[str, set[Any]] = defaultdict(set)
        self.missed: dict[str, list[Row]] = defaultdict(list)
        edges = [edge for node in self.nodes for edge in node.edges_to_dependencies()]
        self.compiled = Compiled({one.spec for one in edges if LANGUAGES & {*one.virtuals}})
        planned = [Spec(one) for one in plan.get("specs", [])]
        for asked, root in environment.concretized_specs():
            same = [spec for spec in planned if spec.name == root.name]
            # of two planned of one name (an MPI over each of its devices) that which this root is
            its_own = [spec for spec in same if root.satisfies(spec.copy(deps=False))]
            for one in [asked, *(its_own or same)]:
                self.add(one, root)
            if asked not in list(environment.user_specs):
                every = ", ".join(map(str, environment.user_specs))
                lost = ("asked", "root", str(asked), every)
                self.missed[root.dag_hash()].append(lost)
        for node in self.nodes:
            for place in ("all", node.name):
                every = [[Spec(plan["all"])]] if plan.get("all") else []
                self.one_of([*every, *required(self.packages.get(place, {}))], node)
            if not node.external:
                self.by_recipe(node)

    def add(self, words: Spec, node: Spec) -> None:
        """``words`` are asked of ``node`` and of what it needs."""
        self.words[node.dag_hash()].append(words.copy(deps=False))
        for edge in words.edges_to_dependencies():
            for below in node.traverse(root=False):
                if below.name == edge.spec.name:
                    self.add(edge.spec, below)

    def one_of(self, rows: Iterable[list[Spec]], node: Spec) -> None:
        """Of each of ``rows`` what ``node`` is, or, if it is nothing of it, the first."""
        for row in rows:
            for one in [one for one in row if node.satisfies(one)] or row[:1]:
                self.add(one, node)

    def by_recipe(self, node: Spec) -> None:
        """What the recipe of ``node`` and its compiler ask of it and of what it needs."""
        cls, key = recipe(node), node.dag_hash()
        rows = [
            (when, need.spec, need.depflag, need.patches)
            for when, by_name in cls.dependencies.items()
            for need in by_name.values()
        ]
        for when, need, types, patches in [*rows, *self.compiled.needs]:
            if types == dt.TEST or not node.satisfies(when):
                continue
            edges = node.edges_to_dependencies()
            below = [one for one in edges if need.name in (one.spec.name, *one.virtuals)]
            if not below:
                self.missed[key].append(("dependencies", "needs", None, need))
            for one in below:
                as_types, as_virtuals = self.edges[key, one.spec.dag_hash()]
                as_types.update({*dt.flag_to_tuple(types)} - {"test"})
                if need.name != one.spec.name:
                    as_virtuals.add(need.name)
                    self.one_of(required(self.packages.get(need.name, {})), one.spec)
                    if self.compiler and need.name in LANGUAGES:
                        self.one_of([[Spec(self.compiler)]], one.spec)
                self.add(need, one.spec)
                for condition, found in patches.items():
                    if one.spec.satisfies(condition):
                        self.patches[one.spec.dag_hash()].update(found)
        for when, found in cls.patches.items():
            if node.satisfies(when):
                self.patches[key].update(found)
        for when, groups in cls.requirements.items():
            if node.satisfies(when):
                self.one_of([list(specs) for specs, _, _ in groups], node)
        for name, when, specs in self.compiled.required:
            if node.name == name and node.satisfies(when):
                self.one_of([specs], node)

    def differences(self, node: Spec) -> Iterator[Row]:
        """Every field of ``node`` that may differ, with what it is and what it should be."""
        yield from self.missed[node.dag_hash()]
        for one in self.words[node.dag_hash()]:
            if not node.satisfies(one):
                yield from unsatisfied(node, one)
        yield "flags", "flags", flags([node]), flags(self.words[node.dag_hash()])
        place = spack.repo.PATH.repo_for_pkg(node.name).namespace
        yield "recipe", "namespace", node.namespace, place
        yield "recipe", "package_hash", node._package_hash, package_hash(node)
        yield "hash", "hash of what Spack reads", node.dag_hash(), hash_of(node)
        version = node.annotations.original_spec_format
        yield "recipe", "annotations", version, SPECFILE_FORMAT_VERSION
        yield "target", "platform", str(node.platform), "linux"
        yield from self.of_site(node) if node.external else self.built(node)

    def of_site(self, node: Spec) -> Iterator[Row]:
        """An external is one of packages.yaml, whole."""
        known = self.site.get_specs_for_package(node.name)
        if not known and self.by_hand and node.package.provides("libc"):
            return  # Spack found it by itself; a plan names it
        rows = [[*zip(FIELDS, fields(node), fields(one), strict=True)] for one in known]
        differ = [[row for row in one if row[1] != row[2]] for one in rows]
        nothing = [("path", node.external_path, "nothing: packages.yaml has no external of it")]
        for field, found, planned in min(differ, key=len, default=nothing):
            yield "external", field, found, planned

    def built(self, node: Spec) -> Iterator[Row]:
        """A package that is built: as its recipe has it, and with its defaults."""
        key, cls = node.dag_hash(), recipe(node)
        if not self.packages.get(node.name, {}).get("buildable", True):
            yield "external", "path", None, "the site's (buildable: false)"
        patches = sorted(
            (*one.ordering_key, one.sha256) for one in self.patches[key] if one.ordering_key
        )
        have = node.variants.get("patches")
        order = list(getattr(have, "_patches_in_order_of_appearance", ()))
        yield "recipe", "patches", order, [sha256 for _, _, sha256 in patches]
        if have is not None:
            yield "recipe", "patches", sorted(have.values), sorted(order)
        for one in node.edges_to_dependencies():
            types, virtuals = self.edges[key, one.spec.dag_hash()]
            found = {*dt.flag_to_tuple(one.depflag)} - {"test"}
            yield "dependencies", f"{one.spec.name}'s types", sorted(found), sorted(types)
            name = f"{one.spec.name}'s virtuals"
            yield "dependencies", name, sorted(one.virtuals), sorted(virtuals)
            yield "dependencies", f"{one.spec.name}'s direct", one.direct, False
        if cls.versions and node.version not in cls.versions:
            yield "recipe", "version", node.version, list(cls.versions)
        if cls.versions.get(node.version, {}).get("deprecated"):
            good = [one for one, about in cls.versions.items() if not about.get("deprecated")]
            yield "deprecated", "version", node.version, good
        yield "recipe", "conflict", conflict(node, cls), ""
        if "commit" in node.variants:
            planned = cls.version_or_package_attr("commit", node.version, "")
            yield "recipe", "commit", node.variants["commit"].value, planned
        variants = active(node)
        named = {*node.variants} - {"patches", "commit"}
        for name in sorted(named ^ {*variants}):
            plain = variants[name].make_default() if name in variants else None
            yield "recipe", "variant", node.variants.get(name), plain
        for name in sorted(named & {*variants}):
            yield from self.default(node, name, variants[name])

    def default(self, node: Spec, name: str, definition: Any) -> Iterator[Row]:
        """A variant has its default, but for what was asked or what the default would break."""
        have, plain = node.variants[name], definition.make_default()
        asked = [one.variants[name] for one in self.words[node.dag_hash()] if name in one.variants]
        extra = values(have) - values(plain) - {one for each in asked for one in values(each)}
        if values(have) == values(plain) or not (extra or all(map(plain.satisfies, asked))):
            return
        other = node.copy(deps=False)
        other._mark_concrete(False)
        for edge in node.edges_to_dependencies():
            other._add_dependency(edge.spec, depflag=edge.depflag, virtuals=edge.virtuals)
        other.variants.substitute(plain)
        if self.may_be(other, node):
            yield "default", "variant", have, plain

    def may_be(self, other: Spec, node: Spec) -> bool:
        """Whether ``other`` could stand for ``node`` beside the packages of this lock."""
        cls, lacks = recipe(node), []
        for name, definition in active(other).items():
            if name not in other.variants:
                other.variants[name] = definition.make_default()
            allowed = definition.values if isinstance(definition.values, tuple) else ()
            for one in allowed:
                when = getattr(one, "when", None)
                if str(one) in values(other.variants[name]) and isinstance(when, Spec):
                    lacks.append(not other.satisfies(when))
        lacks += [bool(conflict(other, cls))]
        lacks += [refused_by(parent, other) for parent in node.dependents()]
        for when, by_name in cls.dependencies.items():
            if other.satisfies(when) and not node.satisfies(when):
                for need in by_name.values():
                    there = [one for one in self.nodes if one.satisfies(need.spec)]
                    lacks.append(need.depflag != dt.TEST and not there)
        return not any(lacks)


def unsatisfied(node: Spec, words: Spec) -> Iterator[Row]:
    """What of ``words`` does not hold of ``node``."""
    rows: list[Row] = []
    serves = {one for edge in node.edges_from_dependents() for one in edge.virtuals}
    asked = "compiler" if LANGUAGES & serves else "asked"
    if words.name == node.name or not words.name:
        if not node.satisfies(Spec(f"@{words.versions}")):
            rows.append((asked, "version", node.version, words.versions))
        for name, value in words.variants.items():
            have = node.variants.get(name)
            if have is None or not have.satisfies(value):
                rows.append((asked, "variant", have, value))
        for key, gate, have in (("os", "os", node.os), ("target", "target", node.target)):
            want = words.architecture and getattr(words, key)
            if want and not node.satisfies(Spec(f"{key}={want}")):
                rows.append((gate, key, have, want))
    yield from rows or [(asked, "package", node.format("{name}{@version}{variants}"), words)]


def active(node: Spec) -> dict[str, Any]:
    """The variants that a recipe has for ``node``, by name; a later definition goes first."""
    cls = recipe(node)
    rows = {name: reversed(cls.variant_definitions(name)) for name in cls.variant_names()}
    found = {
        name: [one for when, one in row if node.satisfies(when)] for name, row in rows.items()
    }
    return {name: those[0] for name, those in found.items() if those}


def conflict(node: Spec, cls: Any) -> str:
    """What a recipe refuses in ``node``, and why; "" if it does not."""
    for when, rows in cls.conflicts.items():
        for one, message in rows:
            if node.satisfies(when) and node.satisfies(one):
                return f"{one} {when} ({message})"
    return ""


def refused_by(parent: Spec, other: Spec) -> bool:
    """Whether ``parent``, as it is here, has a conflict with ``other`` beneath it."""
    for when, rows in recipe(parent).conflicts.items():
        for one, _ in rows:
            said = (when, one)
            below = [edge.spec for each in said for edge in each.edges_to_dependencies()]
            about = [each for each in below if each.name == other.name]
            if (
                about
                and all(map(other.satisfies, about))
                and all(parent.satisfies(each.copy(deps=False)) for each in said)
                and all(
                    any(dependency.satisfies(each) for dependency in parent.dependencies())
                    for each in below
                    if each.name != other.name
                )
            ):
                return True
    return False


def values(variant: Any) -> set[str]:
    """The values of a variant; a default may have them in one word."""
    return set(",".join(map(str, variant.values)).split(","))


def flags(specs: Iterable[Spec]) -> list[str]:
    """The compilers' flags of all of ``specs``."""
    kinds = [row for each in specs for row in each.compiler_flags.items()]
    return sorted({f'{kind}="{one}"' for kind, found in kinds for one in found})


FIELDS = ("version", "variants", "path", "module", "extra_attributes", "needs")


def fields(node: Spec) -> list[Any]:
    """What packages.yaml says of an external."""
    named = sorted(edge.spec.name for edge in node.edges_to_dependencies())
    variants = sorted(map(str, node.variants.values()))
    place = [node.external_path, node.external_modules, node.extra_attributes]
    return [str(node.version), variants, *place, named]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
