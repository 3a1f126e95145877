"""From a plan to its Spack environment: spack.yaml and what it includes. Pure.

One environment a partition, and a second small one for a compiler that Spack builds. Both are for a
person to read: what is asked for stands with its reason.
"""

from typing import Any

from mvstack.model.spack import spack_pins
from mvstack.plan.targets import family_of, target_for
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.render.templates import template

FILES = ("spack", "packages", "concretizer", "config", "mirrors", "modules")


def spack_files(plan: Plan) -> dict[str, str]:
    """The files of the Spack environment of ``plan`` by name: ``{"spack/spack.yaml": "…", …}``."""
    compiler = compiler_of(plan)
    names = [f"spack/{name}.yaml" for name in FILES]
    if compiler["built"]:
        names.append("spack/compiler/spack.yaml")
    return {
        name: template(
            name,
            plan=plan,
            pins=spack_pins(),
            compiler=compiler,
            target=target_for(plan.target, plan.compiler["name"], plan.compiler["version"]),
            family=family_of(plan.target),
            found=spack_pins().found_on(plan.os),
            externals={one["package"]: one for one in plan.externals if one["package"] != "gcc"},
            common=common_words,
            transports=transports,
            root=lambda build: root(plan, build),
            mpi_of=lambda package: mpi_of(plan, package),
            selector=selector,
        )
        for name in names
    }


def compiler_of(plan: Plan) -> dict[str, Any]:
    """Where the compiler stands, whether Spack builds it first, and why it is as it is.

    A compiler that is not of the system is built in an environment of its own and reached by a view
    whose path does not change: so the partition concretizes before the compiler is there.
    """
    name, version = plan.compiler["name"], plan.compiler["version"]
    if plan.compiler["origin"] in ("system", "external"):
        why = f"{name} {version} of the {plan.compiler['origin']}, as the system's file says"
        return {"built": False, "prefix": plan.compiler["prefix"], "why": why}
    why = f"{name} {version}, built by compiler/spack.yaml"
    return {"built": True, "prefix": f"{plan.tree}/compiler/{name}-{version}", "why": why}


def root(plan: Plan, build: MpiBuild) -> str:
    """The spec by which roots name an MPI build: long enough to tell the builds apart."""
    name = f"{build.spack['package']}@={build.version}"
    if len(plan.mpi) == 1:
        return name
    shared = set(common_words(plan.mpi).split())
    own = [word for word in build.spack["spec"].split() if word not in shared]
    return " ".join([name, *(word for word in own if word != name)])


def common_words(builds: list[MpiBuild]) -> str:
    """What all MPI builds of the partition are asked for alike, the version first."""
    specs = [build.spack["spec"].split() for build in builds]
    first = [word for word in specs[0] if all(word in other for other in specs)]
    return " ".join(word.removeprefix(builds[0].spack["package"]) for word in first)


def transports(builds: list[MpiBuild]) -> dict[str, dict[str, str]]:
    """Package → what the builds need of the library beneath them, and why."""
    found: dict[str, dict[str, str]] = {}
    for build in builds:
        under = build.spack["transport"]
        words = under["spec"].removeprefix(under["package"]).strip() if under else ""
        if words:
            row = {"words": words, "device": build.device, "why": build.why}
            found.setdefault(under["package"], row)
    return found


def mpi_of(plan: Plan, package: Package) -> MpiBuild:
    """The MPI build that ``package`` stands on."""
    return next(build for build in plan.mpi if build.module == package.mpi)


def selector(build: MpiBuild) -> str:
    """The spec by which modules.yaml knows one MPI build from another of the same version."""
    words = build.spack["spec"].split()
    return " ".join([words[0], *(w for w in words if w.startswith(("netmod:=", "fabrics:=")))][:2])
