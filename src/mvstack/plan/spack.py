"""The graph of what Spack is asked for, while no lock file says what it answers. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvstack.model.yamlfile import parse_yaml
from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.support import hashes
from mvstack.support.home import DATA, home

RECIPES = Path("spack-repo") / "spack_repo" / "mvapich_stack"
MENDS = RECIPES.with_name("mvapich_stack_mends")
MADE_BY_HAND = (".py", ".eb", ".patch", ".yaml", ".lua", ".c", ".f90", ".txt")


def spack_graph(plan: Plan, files: Mapping[str, str], repository: Path) -> Graph:
    """The MPIs and packages of ``plan``; ``files`` is what it renders.

    A node's hash covers its spec, its recipe, the requirements on it, and all that the others
    share: target, compiler, externals, the pinned Spack.
    """
    recipes = _recipes([repository / RECIPES, repository / MENDS, *site_repositories().values()])
    required = _yaml("packages.yaml", files.get("spack/packages.yaml", "")).get("packages", {})
    policy = replace(home(), data=repository).file("policy", "spack.yaml")
    pins = _yaml(policy, policy.read_text() if policy.is_file() else "")
    named = {*map(package_of, plan.mpi), *map(package_of, plan.packages)}
    shared = {
        "target": plan.target,
        "compiler": hashes.of(plan.compiler),
        "externals and requirements": hashes.of(
            {key: value for key, value in required.items() if key not in named}
        ),
        "pinned Spack": hashes.of(
            [pins.get(x, {}).get("commit", "") for x in ("spack", "packages")]
        ),
        "helpers of the recipes": recipes.pop("", ""),
    }

    nodes: dict[str, Node] = {}

    def add(node: Node, package: str, spec: str, transport: str = "") -> None:
        own = {
            "spec": spec,
            "recipe": recipes.get(package, ""),
            "requirements": hashes.of(required.get(package)),
            **shared,
            "transport": transport,
        }
        own = {name: value for name, value in own.items() if value}
        below = [[nodes[one].content for one in node.needs]] if node.kind == "package" else []
        content = hashes.of(node.name, node.version, own, *below)
        nodes[node.key] = replace(node, content=content, ingredients=own)

    for build in plan.mpi:
        key, transport = build.module, (build.spack.get("transport") or {}).get("spec", "")
        node = Node(key, "mpi", build.product, build.version, module=key, why=build.why)
        add(node, package_of(build), build.spack.get("spec", ""), transport)
    for one in plan.packages:
        key, needs = f"{one.mpi} {one.module}".lstrip(), (one.mpi,) if one.mpi else ()
        node = Node(key, "package", one.name, one.version, mpi=one.mpi, needs=needs)
        add(replace(node, module=one.module, why=one.title), package_of(one), one.spack)
    others = {key: value for key, value in recipes.items() if key not in named}
    name = f"{plan.system}/{plan.partition}"
    return Graph(name, plan.builder, "plan", nodes, others=others)


def package_of(one: MpiBuild | Package) -> str:
    """The name in Spack of an MPI or a package of a plan."""
    if isinstance(one, MpiBuild):
        return str(one.spack.get("package") or one.product)
    return one.spack.partition("@")[0].split()[0] if one.spack else one.name.lower()


def site_repositories() -> dict[str, Path]:
    """The site's package repositories by namespace."""
    folders = home().folders("spack-repo")[:-1]
    found = [path.parent for one in folders for path in one.glob("spack_repo/*/repo.yaml")]
    return {path.name: path for path in sorted(found)}


def own_repositories() -> dict[str, Path]:
    """The package repositories of this one: the recipes, and the mends of builtin's."""
    both = (DATA / MENDS, DATA / RECIPES)
    return {path.name: path for path in both if (path / "repo.yaml").is_file()}


def _recipes(repositories: list[Path]) -> dict[str, str]:
    """The hash of every recipe by package; "" for what recipes share (``build_systems/``).

    A recipe of a later repository stands for that of an earlier one.
    """
    shared = [path for one in repositories for path in one.glob("build_systems/**/*.py")]
    found = {"": hashes.of_files(sorted(shared))}
    for folder in (path for one in repositories for path in sorted(one.glob("packages/*/"))):
        files = [
            path
            for path in folder.rglob("*")
            if path.is_file()
            and path.suffix in MADE_BY_HAND
            and path.relative_to(folder).parts[0] not in ("test", "__pycache__")
        ]
        if files:
            name = folder.name.lstrip("_").replace("_", "-")
            found[name] = hashes.of([path.name for path in sorted(files)], hashes.of_files(files))
    return found


def _yaml(path: Path | str, text: str) -> dict[str, Any]:
    data = parse_yaml(text, Path(path)).data if text else {}
    return data if isinstance(data, dict) else {}
