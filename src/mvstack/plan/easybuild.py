"""The graph of what EasyBuild builds: one node for each easyconfig, in build order. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mvstack.plan import easyconfigs
from mvstack.plan.definitions import definitions
from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.plan.usage import NAME
from mvstack.support import hashes
from mvstack.support.home import home


def build_order(plan: Plan) -> list[Node]:
    """What EasyBuild is asked for, in order and without hashes; ``--robot`` finds what is below."""
    gcc = plan.compiler["version"]
    nodes = [
        _compiler(name, gcc, plan.compiler["origin"])
        for name in easyconfigs.compiler_file(gcc, plan.compiler["origin"])
    ]
    nodes += [_package(plan, one) for one in plan.packages if not one.mpi]
    for build in plan.mpi:
        chain = easyconfigs.toolchain_file(build.product, plan.release, build.device)
        file = f"Compiler/gcc/{gcc}/{build.module}.lua"
        mpi = Node(build.easyconfig, "mpi", build.software, build.version, why=build.why)
        nodes += [replace(mpi, module=build.module, file=file), _toolchain(chain, plan, build)]
        there = {chain, ""}
        for one in (package for package in plan.packages if package.mpi == build.module):
            if one.toolchain not in there:
                nodes.append(_toolchain(one.toolchain, plan, build))
                there.add(one.toolchain)
            nodes.append(_package(plan, one))
    return nodes


def easybuild_graph(plan: Plan, files: Mapping[str, str], repository: Path) -> Graph:
    """The nodes of ``plan`` with their hashes; ``files`` is what it renders.

    A hash covers the easyconfig, our code that builds it, the target, and what it stands on: so a
    changed MPI changes all that stands on it, and a changed comment changes nothing. Raises Refused
    for an easyconfig that ``repository`` does not have.
    """
    built_by = definitions(repository / "easyconfigs")
    text_of = _texts(plan, files, repository / "easyconfigs")
    pin = _easybuild(repository)
    nodes: dict[str, Node] = {}
    compilers: list[str] = []
    under: dict[str, str] = {}  # module of an MPI → what packages over it stand on
    packages: dict[tuple[str, str], str] = {}
    for node in build_order(plan):
        text, code = text_of(node), built_by(node)
        chain = node.toolchain if node.toolchain in nodes else under.get(node.mpi, "")
        direct = [chain] if node.mpi else list(compilers)
        if node.kind != "compiler":
            named = easyconfigs.dependencies(text)
            found = [packages.get((one, node.mpi)) or packages.get((one, "")) for one in named]
            direct += [key for key in found if key]
        without = NAME if node.kind == "mpi" else ""
        own = {
            "easyconfig": hashes.of(hashes.normalised(text, without=without)),
            "target": plan.target,
            "compiler options": plan.optimization,
            "easyblocks" if node.kind == "mpi" else "toolchain": code,
            "EasyBuild": pin,
        }
        own = {name: value for name, value in own.items() if value}
        needs = dict.fromkeys(key for one in direct for key in (*nodes[one].needs, one))
        content = hashes.of(own, [nodes[one].content for one in direct])
        nodes[node.key] = replace(node, content=content, needs=tuple(needs), ingredients=own)
        if node.kind == "compiler":
            compilers.append(node.key)
        elif node.kind == "package":
            packages[node.name, node.mpi] = node.key
        elif node.kind == "mpi":
            under[node.module] = node.key
        elif nodes[under[node.mpi]].kind == "mpi":  # the first toolchain is the plain one
            under[node.mpi] = node.key
    return Graph(f"{plan.system}/{plan.partition}", plan.builder, "easyconfigs", nodes)


def _texts(plan: Plan, files: Mapping[str, str], folder: Path) -> Callable[[Node], str]:
    """The easyconfig of a node: as rendered, else ours; a stock one is told by its name alone."""
    site = home().folders("easyconfigs")[:-1]
    ours = {path.name: path for one in (folder, *site) for path in sorted(one.rglob("*.eb"))}
    by_system, versions = plan.compiler["origin"] == "system", easyconfigs.versions_of(plan)

    def text_of(node: Node) -> str:
        if own := files.get(f"easyconfigs/{node.key}"):
            return own
        path = easyconfigs.source_of(node.key, ours)
        on_compiler = node.kind == "compiler" or (node.kind == "package" and not node.mpi)
        # what wraps a library of the distribution is for the distribution's compiler alone
        stock = path is None or (not by_system and path.is_relative_to(folder / "system"))
        if on_compiler and stock:
            return f"EasyBuild's own {node.key}"
        if path is None:
            raise easyconfigs.absent(node.key, f"{plan.system}/{plan.partition}", ours)
        return easyconfigs.text_over(node.key, path, versions)

    return text_of


def _easybuild(repository: Path) -> str:
    """The pinned version of EasyBuild: stock easyconfigs and easyblocks come with it."""
    file = repository / "requirements" / "runtime.txt"
    found = re.search(r"^easybuild==(\S+)", file.read_text(), re.M) if file.is_file() else None
    return found[1] if found else ""


def _compiler(key: str, version: str, origin: str) -> Node:
    name = key.partition("-")[0]
    hidden = "." if name == "GCCcore" else ""
    file = f"Core/{name.lower()}/{hidden}{version}.lua"
    why = f"the partition's compiler, of origin {origin}"
    return Node(key, "compiler", name, version, module=f"gcc/{version}", file=file, why=why)


def _package(plan: Plan, one: Package) -> Node:
    gcc = plan.compiler["version"]
    level = f"MPI/gcc/{gcc}/{one.mpi}" if one.mpi else f"Compiler/gcc/{gcc}"
    file = f"{level}/{one.module}.lua"
    node = Node(one.easyconfig, "package", one.name, one.version, mpi=one.mpi, why=one.title)
    return replace(node, module=one.module, toolchain=one.toolchain, file=file)


def _toolchain(key: str, plan: Plan, build: MpiBuild) -> Node:
    name, _, rest = key.removesuffix(".eb").partition("-")
    file = f"Core/{name.lower()}/.{rest}.lua"
    why = f"what packages over {build.module} are built with"
    return Node(key, "toolchain", name, plan.release, mpi=build.module, file=file, why=why)
