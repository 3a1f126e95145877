"""From a plan to the files that builders, modules and checks read. Pure: same plan, same bytes."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from pprint import pformat

from mvstack.model.tuning import table
from mvstack.plan import easyconfigs
from mvstack.plan.easybuild import build_order
from mvstack.plan.graph import Node
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.render.spack import spack_files
from mvstack.render.templates import generated, template
from mvstack.support.errors import Refused
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA, home
from mvstack.support.units import one_line

RENDERED = DATA / "environments" / "rendered"


def render(plan: Plan) -> dict[str, str]:
    """The files of one partition, by name: ``{"plan.json": "…", "easystack.yaml": "…", …}``.

    Raises Refused when the plan needs an easyconfig, or a source, that is not there.
    """
    for build in (one for one in plan.mpi if one.gone):
        what = f"{build.product} {build.version} cannot be had, so nothing is made of it"
        own = f"`externals: {{{build.product}: {{version: {build.version}, prefix: …}}}}`"
        todo = f"a site that has it names it in its system's file: {own}"
        where = f"{plan.system}/{plan.partition}, release {plan.release}"
        raise Refused(what, where, because=build.gone, todo=todo)
    readable = {"generated": generated(plan), **plan.as_dict()}
    files = {
        "plan.json": json.dumps(readable, indent=1) + "\n",
        f"modules/mvapich-stack/{plan.release}.lua": template("mvapich-stack.lua", plan=plan),
    }
    files |= spack_files(plan)
    for row in (row for build in plan.mpi for row in build.tuning.values()):
        if path := table(row.get("table", "")):
            files[row["value"]] = path.read_text()
    if also := BY_BUILDER.get(plan.builder):
        files |= also(plan)
    return dict(sorted(files.items()))


def _easybuild_files(plan: Plan) -> dict[str, str]:
    """What EasyBuild is asked for, and the easyconfigs that this partition decides something of."""
    there, where = easyconfigs.index(), f"{plan.system}/{plan.partition}"
    for one in (build.easyconfig for build in plan.mpi if not build.provided):
        # EasyBuild's own compiler has what packages stand on in a known generation alone
        if plan.compiler["origin"] != "system" and one not in there and not plan.beneath:
            raise Refused(
                f"no generation of EasyBuild's toolchains has gcc {plan.compiler['version']}",
                where,
                allowed="what `gcc:` is in environments/policy/generations.yaml",
                todo=f"take one of these, add a row there, or write {one}; the compiler that the "
                "system has is of `origin: system`",
            )
    order = build_order(plan)
    files = {"easystack.yaml": template("easystack.yaml", plan=plan, order=order)}
    for build in plan.mpi:
        files[f"easyconfigs/{build.easyconfig}"] = mpi_easyconfig(plan, build)
    for node in order:
        if node.kind == "toolchain":
            files[f"easyconfigs/{node.key}"] = toolchain_easyconfig(plan, node)
    for package in plan.packages:
        if package.mpi:
            easyconfigs.find(package.easyconfig, where)
        if decided := _package_lines(package, plan):
            name = package.easyconfig
            files[f"easyconfigs/{name}"] = easyconfig(plan, name, decided)
    return files


BY_BUILDER: dict[str, Callable[[Plan], dict[str, str]]] = {"easybuild": _easybuild_files}
"""What is rendered for one builder alone; Spack's files are of use to every Spack user."""


def package_easyconfigs(plan: Plan) -> dict[str, str]:
    """By file name, every package's easyconfig over the compiler and MPI builds of ``plan``.

    They go into the tree alone, for EasyBuild to find; of these, :func:`render` has what the site
    decides something of. One that is written by hand for this MPI is found where it stands.
    """
    chains = [
        easyconfigs.toolchain_file(build.product, plan.release, build.device, kind)
        for build in plan.mpi
        for kind in easyconfigs.TOOLCHAINS.get(build.product, {})
    ]
    system = plan.compiler["origin"] == "system"
    versions = easyconfigs.versions_of(plan) if system or plan.beneath else None
    over = [chain.removesuffix(".eb") for chain in chains]
    names = easyconfigs.names_over(over, versions, distribution=system)
    decided = {package.easyconfig: _package_lines(package, plan) for package in plan.packages}
    return {f"easyconfigs/{name}": easyconfig(plan, name, decided.get(name, [])) for name in names}


def easyconfig(plan: Plan, name: str, decided: list[str]) -> str:
    """The easyconfig ``name`` as it is by hand, and after it the lines that the partition decides.

    Raises Refused when there is none.
    """
    where = f"{plan.system}/{plan.partition}"
    file = easyconfigs.find(name, where)
    text = easyconfigs.text_over(name, file, easyconfigs.versions_of(plan))
    lines = [f"# {generated(plan, home().named(file))}", text.rstrip()]
    if decided:
        lines += ["", f"# What partition {where} decides:", *decided]
    return "\n".join(lines) + "\n"


def mpi_easyconfig(plan: Plan, build: MpiBuild) -> str:
    """The easyconfig of the MPI, as this partition wants it built."""
    parameters = {} if build.provided else build.parameters
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    if build.environment:
        for name, setting in build.environment.items():
            lines.append("# " + one_line(f"{name}: {setting['why']} ({setting['source']})"))
        values = {name: setting["value"] for name, setting in build.environment.items()}
        lines.append(f"modextravars = {pformat(values)}")
    lines += _other_bytes(build)
    lines.append(f"usage = {_quoted(template('mpi_usage.txt', plan=plan, build=build).strip())}")
    if build.provided:
        return _site_easyconfig(plan, build, lines)
    return easyconfig(plan, build.easyconfig, lines)


def _site_easyconfig(plan: Plan, build: MpiBuild, decided: list[str]) -> str:
    """The easyconfig of an MPI that the site has: a module over what is there."""
    about = f"{build.software}: the site's own MPI, below {build.provided}."
    values = {
        "easyblock": "MvapichSite",
        "name": build.software,
        "version": build.version,
        "versionsuffix": f"-{easyconfigs.netmod(build.device)}",
        "homepage": "https://mvapich.cse.ohio-state.edu/",
        "description": about,
        "toolchain": {"name": "GCC", "version": plan.compiler["version"]},
        "prefix": build.provided,
        "moduleclass": "mpi",
    }
    lines = [f"{name} = {value!r}" for name, value in values.items()]
    return "\n".join([f"# {generated(plan)}", *lines, *decided]) + "\n"


def toolchain_easyconfig(plan: Plan, node: Node) -> str:
    """The toolchain, over the very MPI of this partition."""
    text = easyconfigs.find(node.key, f"{plan.system}/{plan.partition}").read_text()
    build = next(one for one in plan.mpi if one.module == node.mpi)
    gcc = plan.compiler["version"]
    suffix = f"-{easyconfigs.netmod(build.device)}"
    # a toolchain of more than these two keeps what else its easyconfig lists
    more = set(easyconfigs.dependencies(text)) - {"GCC", build.software}
    lines = [
        "dependencies = [",
        f"    ('GCC', '{gcc}'),",
        f"    ('{build.software}', '{build.version}', '{suffix}', ('GCC', '{gcc}')),",
        *(["    *dependencies[2:],"] if more else []),
        "]",
    ]
    return easyconfig(plan, node.key, lines)


def _package_lines(package: Package, plan: Plan) -> list[str]:
    """What the site decides of a package: other bytes, who may read it, its fabric's verbs."""
    readers = [f"group = {package.readers!r}"] if package.readers else []
    usage = [f"usage = {_quoted(other_bytes(package))}"] if package.accepted_sha256 else []
    return [*_other_bytes(package), *usage, *readers, *_verbs(package, plan)]


def _verbs(package: Package, plan: Plan) -> list[str]:
    """What a UCX beneath the MPI is told to build for a fabric that has verbs."""
    built = [one.transport for one in plan.mpi if one.transport["provision"] == "built"]
    under = {one["library"]: one["variants"] for one in built}
    words = "" if package.mpi else under.get(package.name.lower(), "")
    found = re.findall(r"\+(verbs|rc|ud|dc|mlx5|rdmacm)(?:_dv)?\b", words)
    asked = " ".join(f"--with-{one}" for one in found)
    need = [("libibverbs-dev", "rdma-core-devel"), ("librdmacm-dev", "rdma-core-devel")]
    return [f"configopts += '{asked} '", f"osdependencies = {need}"] if asked else []


def other_bytes(one: Package) -> str:
    """What a module's help says of a package that is not built from upstream's bytes, or ""."""
    hashes = ", ".join(filter(None, one.accepted_sha256))
    said = f"{one_line(one.not_upstream)} (sha256 {hashes})."
    return f"Source: not upstream's bytes: {said}" if one.accepted_sha256 else ""


def _other_bytes(one: MpiBuild | Package) -> list[str]:
    if not (taken := one.accepted_sha256):
        return []
    rows = ", ".join(repr(row) if row else f"checksums[{at}]" for at, row in enumerate(taken))
    return [
        "# " + one_line(f"not upstream's bytes: {one.not_upstream}"),
        f"checksums = [{rows}, *checksums[{len(taken)}:]]",
    ]


def _quoted(text: str) -> str:
    """A Python literal over several lines, whatever the text holds."""
    body = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = "".join(
        char if char == "\n" or char.isprintable() else char.encode("unicode_escape").decode()
        for char in body
    )
    return f'"""\n{body}\n"""'


def write(files: Mapping[str, str], folder: Path, *, remove: bool = True) -> None:
    """Write rendered files below ``folder``, and ``remove`` what is rendered no more."""
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            write_atomically(path, text, mode=None)
    for name in stray(files, folder) if remove else ():
        (folder / name).unlink()


def stray(files: Mapping[str, str], folder: Path) -> list[str]:
    """Files below ``folder`` that are not among ``files``."""
    there = [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]
    return sorted(set(there) - set(files))


def stale(files: Mapping[str, str], folder: Path) -> list[str]:
    """How the files below ``folder`` differ from ``files``, one line each."""
    found = []
    for name, text in files.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name}: missing")
        elif path.read_bytes() != text.encode():
            found.append(f"{name}: not what its inputs give now")
    return found + [f"{name}: nothing renders it any more" for name in stray(files, folder)]
