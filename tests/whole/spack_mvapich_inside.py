"""Runs inside Spack (`spack python`): asks the recipe of mvapich, without the solver; prints JSON.

The words after the file: programs that answer as mpichversion.
"""

import json
import sys

import spack.deptypes as dt
import spack.fetch_strategy
import spack.package_base
import spack.repo
from spack.spec import Spec, substitute_abstract_variants
from spack.util.environment import EnvironmentModifications

QUESTIONS, *PROGRAMS = sys.argv[-5:]
asked = json.loads(QUESTIONS)
recipe = spack.repo.PATH.get_pkg_class("mvapich")
PREFIXES = [
    *("libfabric", "ucx", "hwloc", "pmix", "slurm", "cray-pmi"),
    *("cuda", "hip", "oneapi-level-zero", "xpmem", "lustre"),
]


def defaults():
    """variant → its default in spec words, of those without a condition."""
    found = {}
    for name in recipe.variant_names():
        for when, variant in recipe.variant_definitions(name):
            if not str(when) or str(when) in ("@4.0:", "+cuda", "+rocm"):
                found[name] = (str(when), str(variant.default))
    return found


DEFAULTS = defaults()


def package(text, gcc="12.2.0"):
    """The package of a spec that looks concrete: all variants, every dependency at /of/NAME."""
    spec = Spec(text)
    for name, (when, value) in DEFAULTS.items():
        if name in spec.variants or (when and not spec.satisfies(when)):
            continue
        words = {"True": f"+{name}", "False": f"~{name}"}.get(value, f"{name}={value}")
        spec.constrain(words)
    substitute_abstract_variants(spec)
    for name in PREFIXES:
        if spec.satisfies(f"embedded={name}"):
            continue
        dependency = Spec(name)
        dependency.set_prefix(f"/of/{name}")
        spec._add_dependency(dependency, depflag=dt.LINK, virtuals=())
    compiler = Spec(f"gcc@={gcc}")
    spec._add_dependency(compiler, depflag=dt.BUILD, virtuals=("c", "cxx", "fortran"))
    spec.set_prefix("/of/mvapich")
    spec._mark_concrete()
    return spec.package


def arguments(text):
    return package(text).configure_args()


def required(text):
    """Dependencies that a spec brings, and of each requirement about one what is preferred."""
    spec = package(text).spec
    asked = [
        str(dependency.spec)
        for when, dependencies in recipe.dependencies.items()
        if spec.satisfies(when)
        for dependency in dependencies.values()
    ]
    for when, requirements in recipe.requirements.items():
        if spec.satisfies(when):
            asked += [str(wanted[0]).removeprefix("^") for wanted, _, _ in requirements]
    return sorted(asked)


def forbidden(text):
    """What a spec may not be built over: the conflicts that hold for it."""
    spec = package(text).spec
    return sorted(
        str(refused)
        for when, conflicts in recipe.conflicts.items()
        if spec.satisfies(when)
        for refused, _ in conflicts
    )


def refusals(text):
    """Messages of the conflicts and requirements that refuse a spec."""
    spec = package(text).spec
    said = []
    for when, conflicts in recipe.conflicts.items():
        if spec.satisfies(when):
            said += [message for refused, message in conflicts if spec.satisfies(refused)]
    for when, requirements in recipe.requirements.items():
        if spec.satisfies(when):
            said += [
                message
                for wanted, _, message in requirements
                if not any(spec.satisfies(one) for one in wanted)
            ]
    return said


def variables(text, method, gcc="12.2.0"):
    """What a method of the recipe sets in an environment."""
    env = EnvironmentModifications()
    getattr(package(text, gcc), method)(env)
    made = {"F90": "x", "F90FLAGS": "x", "PATH": "/bin"}
    env.apply_modifications(made)
    return made


def flags(gcc, version):
    return package(f"mvapich@={version}", gcc).flag_handler("cflags", ["-g"])[0]


def found_builds():
    return [
        [recipe.determine_version(one), recipe.determine_variants([one], "4.0")] for one in PROGRAMS
    ]


print(
    json.dumps(
        {
            "namespace": recipe.namespace,
            "licences": sorted(str(one) for one in recipe.licenses.values()),
            "executables": recipe.executables,
            "versions": {str(key): value["sha256"] for key, value in recipe.versions.items()},
            "provides": {
                str(when): sorted(map(str, provided)) for when, provided in recipe.provided.items()
            },
            "splices": {
                str(when): str(target) for when, (target, _) in recipe.splice_specs.items()
            },
            "tests": sorted(name for name in dir(recipe) if name.startswith("test_")),
            "arguments": {text: arguments(text) for text in asked["arguments"]},
            "required": {text: required(text) for text in asked["required"]},
            "forbidden": {text: forbidden(text) for text in asked["required"]},
            "refusals": {text: refusals(text) for text in asked["refusals"]},
            "build": {
                gcc: variables("mvapich@=4.0", "setup_build_environment", gcc)
                for gcc in ("9.5.0", "12.2.0", "14.1.0")
            },
            "old": variables("mvapich@=3.0", "setup_build_environment"),
            "cuda": variables("mvapich@=4.0 +cuda cuda_arch=80", "setup_build_environment"),
            "run": {text: variables(text, "setup_run_environment") for text in asked["run"]},
            "flags": {
                version: {gcc: flags(gcc, version) for gcc in ("12.2.0", "14.1.0", "15.1.0")}
                for version in ("3.0", "4.0")
            },
            "hip": {
                text: package(text).flag_handler("cppflags", [])[0]
                for text in ("mvapich@=4.0", "mvapich@=4.0 +rocm amdgpu_target=gfx90a")
            },
            "found": found_builds(),
        }
    )
)
