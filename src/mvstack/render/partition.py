"""From a plan to the files that builders, modules and checks read. Pure: same plan, same bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat

from mvstack.model.load import REPOSITORY
from mvstack.plan import easyconfigs
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.render.spack import spack_files
from mvstack.render.templates import generated, template
from mvstack.support.units import one_line

RENDERED = REPOSITORY / "environments" / "rendered"


def render(plan: Plan) -> dict[str, str]:
    """The files of one partition, by name: ``{"plan.json": "…", "easystack.yaml": "…", …}``.

    Raises Refused when the plan needs an easyconfig that is not there.
    """
    files = {
        "plan.json": json.dumps(_readable(plan), indent=1) + "\n",
        "reframe_settings.py": template("reframe_settings.py", plan=plan.as_dict()),
        f"modules/mvapich-stack/{plan.release}.lua": template("core.lua", plan=plan),
    }
    files |= spack_files(plan)
    if plan.builder == "easybuild":
        files["easystack.yaml"] = template("easystack.yaml", plan=plan, order=build_order(plan))
        for build in plan.mpi:
            files[f"easyconfigs/{build.easyconfig}"] = mpi_easyconfig(plan, build)
        for node in build_order(plan):
            if node.kind == "toolchain":
                text = toolchain_easyconfig(plan, node)
                files[f"easyconfigs/{node.easyconfig}"] = text
        for package in plan.packages:
            if package.accepted_sha256 or package.readers:
                files[f"easyconfigs/{package.easyconfig}"] = package_easyconfig(plan, package)
    return dict(sorted(files.items()))


def _readable(plan: Plan) -> dict[str, object]:
    return {"generated": generated(plan), **plan.as_dict()}


@dataclass(frozen=True)
class Node:
    """One easyconfig of the build order: its file, the module it makes, and what it is.

    ``toolchain`` is the easyconfig of the toolchain that a package is built with.
    """

    easyconfig: str
    name: str
    version: str
    module: str
    mpi: str
    kind: str
    toolchain: str = ""


def build_order(plan: Plan) -> list[Node]:
    """What EasyBuild is asked for, in order; what these need itself it finds by --robot."""
    gcc = plan.compiler["version"]
    nodes = [
        Node(name, name.partition("-")[0], gcc, f"gcc/{gcc}", "", "compiler")
        for name in easyconfigs.compiler_file(gcc, plan.compiler["origin"])
    ]
    nodes += [_package(one) for one in plan.packages if not one.mpi]
    for build in plan.mpi:
        chain = easyconfigs.toolchain_file(build.product, plan.release, build.device)
        nodes += [
            Node(build.easyconfig, build.software, build.version, build.module, "", "mpi"),
            _toolchain(chain, plan, build),
        ]
        there = {chain}
        for one in plan.packages:
            if one.mpi != build.module:
                continue
            if one.toolchain and one.toolchain not in there:
                nodes.append(_toolchain(one.toolchain, plan, build))
                there.add(one.toolchain)
            nodes.append(_package(one))
    return nodes


def _package(one: Package) -> Node:
    return Node(
        one.easyconfig, one.name, one.version, one.module, one.mpi, "package", one.toolchain
    )


def _toolchain(name: str, plan: Plan, build: MpiBuild) -> Node:
    return Node(name, name.partition("-")[0], plan.release, "", build.module, "toolchain")


def mpi_easyconfig(plan: Plan, build: MpiBuild) -> str:
    """The hand-written easyconfig of the MPI, and after it what this partition decides."""
    base = easyconfigs.find(build.easyconfig, f"{plan.system}/{plan.partition}")
    lines = [
        f"# {generated(plan, f'easyconfigs/{base.relative_to(easyconfigs.FOLDER)}')}",
        base.read_text().rstrip(),
        "",
        f"# What partition {plan.system}/{plan.partition} decides:",
    ]
    lines += [f"{name} = {value!r}" for name, value in build.parameters.items()]
    if build.environment:
        for name, setting in build.environment.items():
            lines.append("# " + one_line(f"{name}: {setting['why']} ({setting['source']})"))
        values = {name: setting["value"] for name, setting in build.environment.items()}
        lines.append(f"modextravars = {pformat(values)}")
    if build.accepted_sha256:
        lines.append("# " + one_line(f"not upstream's bytes: {build.not_upstream}"))
        lines.append(f"checksums = [{build.accepted_sha256!r}, *checksums[1:]]")
    usage = template("usage.txt", plan=plan, build=build).strip()
    lines.append(f"usage = {_quoted(usage)}")
    return "\n".join(lines) + "\n"


def toolchain_easyconfig(plan: Plan, node: Node) -> str:
    """The toolchain, over the very MPI of this partition."""
    base = easyconfigs.find(node.easyconfig, f"{plan.system}/{plan.partition}")
    build = next(one for one in plan.mpi if one.module == node.mpi)
    gcc = plan.compiler["version"]
    suffix = f"-{easyconfigs.netmod(build.device)}"
    compiler = f"('GCC', '{gcc}')"
    mpi = f"('{build.software}', '{build.version}', '{suffix}', ('GCC', '{gcc}'))"
    plain = [f"    {compiler},", f"    {mpi},"]
    # a toolchain of more than these two keeps what else its easyconfig lists
    more = set(easyconfigs.dependencies(base.read_text())) - {"GCC", build.software}
    last = ["    *dependencies[2:],"] if more else []
    return "\n".join(
        [
            f"# {generated(plan, f'easyconfigs/{base.relative_to(easyconfigs.FOLDER)}')}",
            base.read_text().rstrip(),
            "",
            f"# What partition {plan.system}/{plan.partition} decides:",
            "dependencies = [",
            *plain,
            *last,
            "]",
            "",
        ]
    )


def package_easyconfig(plan: Plan, package: Package) -> str:
    """The easyconfig of a package with what the site decided: other bytes, who may read it."""
    base = easyconfigs.find(package.easyconfig, f"{plan.system}/{plan.partition}")
    decided = []
    if package.accepted_sha256:
        decided.append("# " + one_line(f"not upstream's bytes: {package.not_upstream}"))
        decided.append(f"checksums = [{package.accepted_sha256!r}, *checksums[1:]]")
    if package.readers:
        decided.append(f"group = {package.readers!r}")
    return "\n".join(
        [
            f"# {generated(plan, f'easyconfigs/{base.relative_to(easyconfigs.FOLDER)}')}",
            base.read_text().rstrip(),
            "",
            f"# What partition {plan.system}/{plan.partition} decides:",
            *decided,
            "",
        ]
    )


def _quoted(text: str) -> str:
    """A Python literal over several lines, whatever the text holds."""
    body = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = "".join(
        char if char == "\n" or char.isprintable() else char.encode("unicode_escape").decode()
        for char in body
    )
    return f'"""\n{body}\n"""'


def write(files: dict[str, str], folder: Path) -> None:
    """Write rendered files below ``folder`` and remove what is rendered no more."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    for name in stray(files, folder):
        (folder / name).unlink()


def stray(files: dict[str, str], folder: Path) -> list[str]:
    """Files below ``folder`` that are not among ``files``."""
    there = [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]
    return sorted(set(there) - set(files))


def stale(files: dict[str, str], folder: Path) -> list[str]:
    """How the files below ``folder`` differ from ``files``, one line each."""
    found = []
    for name, text in files.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name}: missing")
        elif path.read_bytes() != text.encode():
            found.append(f"{name}: not what its inputs give now")
    return found + [f"{name}: nothing renders it any more" for name in stray(files, folder)]
