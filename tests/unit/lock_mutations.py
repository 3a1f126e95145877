"""Every change of one field of a lock file, and the hashes as Spack would write them then."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from mvstack.model.spack_lock import digest

NOT_LOOKED_AT = {
    ("spack", "type"): "says whether Spack was a clone or a release; its version and commit count",
    ("_meta", "specfile-version"): "Spack reads a lock by its lockfile-version, which counts",
}
"""Fields that a gate need not know, each with its reason."""


class Mutation(NamedTuple):
    """A lock with one field changed: ``package`` and ``field`` are what a message must name."""

    title: str
    package: str
    field: str
    data: dict[str, Any]


def other(value: Any) -> Any:
    """Something of the same kind that is not ``value``."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}x" if value else "x"
        case list():
            return [*value, "x"] if value else ["x"]
        case dict():
            return {**value, "x": "y"}
    return "x"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, those of lists and of empty ones whole."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, one in enumerate(value):
            yield from leaves(one, (*path, number))
    else:
        yield path


def changed(data: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of ``data`` with another value at ``path``."""
    made: dict[str, Any] = {**data}
    place: Any = made
    for key in path[:-1]:
        place[key] = copy.copy(place[key])
        place = place[key]
    place[path[-1]] = value
    return made


def rehashed(data: dict[str, Any]) -> dict[str, Any]:
    """The lock with the hashes that Spack gives to what its nodes say now, all the way up."""
    made = json.loads(json.dumps(data))
    old, new = made["concrete_specs"], {}
    names: dict[str, str] = {}

    def name(key: str) -> str:
        if key not in names:
            node = old[key]
            for edge in node.get("dependencies", []):
                edge["hash"] = name(edge["hash"])
            node.pop("hash", None)
            names[key] = digest(node)
            new[names[key]] = {**node, "hash": names[key]}
        return names[key]

    for key in old:
        name(key)
    for root in made["roots"]:
        root["hash"] = names.get(root["hash"], root["hash"])
    return {**made, "concrete_specs": new}


def field_of(path: tuple[Any, ...]) -> str:
    """What a message calls a field of a node."""
    match path:
        case ("parameters", "patches") | ("arch", "target", "vendor" | "features" | "parents"):
            return "hash of what Spack reads"
        case ("arch", "target", "generation" | "cpupart"):
            return "hash of what Spack reads"
        case ("parameters", name):
            return str(name)
        case ("arch", "platform_os"):
            return "os"
        case ("arch", "target", "name"):
            return "target"
        case ("arch", first, *_):
            return str(first)
        case ("external", name, *_):
            return str(name)
        case ("dependencies", *_):
            return "dependencies"
        case ("name",):
            return ""
    return str(path[0])


def of_nodes(data: dict[str, Any]) -> Iterator[Mutation]:
    """One field of one node is another; the hashes are as they were."""
    for key, node in data["concrete_specs"].items():
        for path in leaves(node):
            value: Any = node
            for step in path:
                value = value[step]
            title = f"{node['name']} {'.'.join(map(str, path))}"
            made = changed(data, ("concrete_specs", key, *path), other(value))
            yield Mutation(title, node["name"], field_of(path), made)


def of_edges(data: dict[str, Any]) -> Iterator[Mutation]:
    """An edge is gone, or one is there that was not."""
    keys = {node["name"]: key for key, node in data["concrete_specs"].items()}
    for key, node in data["concrete_specs"].items():
        edges = node.get("dependencies", [])
        for number, edge in enumerate(edges):
            left = [one for one in edges if one is not edge]
            made = changed(data, ("concrete_specs", key, "dependencies"), left)
            yield Mutation(
                f"{node['name']} without {edge['name']}", node["name"], "dependencies", made
            )
            for types in (["link"], ["build"], ["run"], ["build", "link", "run"]):
                if types != edge["parameters"]["deptypes"]:
                    path = ("concrete_specs", key, "dependencies", number, "parameters", "deptypes")
                    made = changed(data, path, types)
                    title = f"{node['name']} needs {edge['name']} for {types}"
                    yield Mutation(title, node["name"], edge["name"], made)
        more = {"name": "slurm", "hash": keys["slurm"]}
        more["parameters"] = {"deptypes": ["link"], "virtuals": []}
        if "external" in node and node["name"] != "slurm":
            made = changed(data, ("concrete_specs", key, "dependencies"), [more])
            yield Mutation(f"{node['name']} needs more", node["name"], "needs", made)


def of_the_graph(data: dict[str, Any]) -> Iterator[Mutation]:
    """A node is gone, is there twice, or under another key; a root is gone, another or more."""
    for key, node in data["concrete_specs"].items():
        without = copy.deepcopy(data)
        del without["concrete_specs"][key]
        yield Mutation(f"{node['name']} gone", node["name"], "", without)
        twice = copy.deepcopy(data)
        twice["concrete_specs"]["z" * 32] = {**copy.deepcopy(node), "hash": "z" * 32}
        yield Mutation(f"{node['name']} twice", node["name"], "hash", twice)
        renamed = copy.deepcopy(data)
        renamed["concrete_specs"]["y" * 32] = renamed["concrete_specs"].pop(key)
        yield Mutation(f"{node['name']} under another key", node["name"], "", renamed)
    for number, root in enumerate(data["roots"]):
        name = data["concrete_specs"][root["hash"]]["name"]
        gone = copy.deepcopy(data)
        del gone["roots"][number]
        yield Mutation(f"root {name} gone", name, "", gone)
        for key, node in data["concrete_specs"].items():
            if key not in [one["hash"] for one in data["roots"]]:
                made = changed(data, ("roots", number, "hash"), key)
                yield Mutation(f"root {name} is {node['name']}", name, "", made)
    for key, node in data["concrete_specs"].items():
        if key not in [one["hash"] for one in data["roots"]]:
            more = copy.deepcopy(data)
            more["roots"].append({"hash": key, "spec": node["name"]})
            yield Mutation(f"{node['name']} is a root", node["name"], "", more)


def of_roots(data: dict[str, Any]) -> Iterator[Mutation]:
    """A root was asked for with other words."""
    for number, root in enumerate(data["roots"]):
        name = data["concrete_specs"][root["hash"]]["name"]
        made = changed(data, ("roots", number, "spec"), f"{root['spec']} target=zen2")
        yield Mutation(f"root {name} asked for otherwise", name, "root", made)


def of_the_file(data: dict[str, Any]) -> Iterator[Mutation]:
    """What the file says beside its nodes."""
    for part in ("_meta", "spack"):
        for name, value in data[part].items():
            if (part, name) not in NOT_LOOKED_AT:
                made = changed(data, (part, name), other(value))
                yield Mutation(f"{part} {name}", "", "", made)


def of_issue(data: dict[str, Any]) -> Iterator[tuple[Mutation, str]]:
    """What once passed, each with the gate that refuses it now: whole locks, hashes made anew."""

    def node(made: dict[str, Any], name: str) -> dict[str, Any]:
        return next(one for one in made["concrete_specs"].values() if one["name"] == name)

    def change(title: str, name: str, gate: str, **more: Any) -> tuple[Mutation, str]:
        made = json.loads(json.dumps(data))
        for part, value in more.items():
            one = node(made, name)
            one[part] = {**one[part], **value} if isinstance(value, dict) and part in one else value
        return Mutation(title, name, more.pop("field", ""), rehashed(made)), gate

    for key, value in (
        ("threads", "single"),
        ("cuda", True),
        ("debug", True),
        ("datatype_engine", "dataloop"),
        ("error_checking", "all"),
    ):
        yield change(f"{key}={value}", "mvapich", "default", parameters={key: value})
    for name in ("mvapich", "hpcc", "ucx"):
        flags = {"cflags": ["-O0"]}
        yield change(f"{name} cflags=-O0", name, "flags", parameters=flags)
    place = {"path": "/opt/elsewhere", "module": None, "extra_attributes": {}}
    for name in ("mvapich", "ucx"):
        yield change(f"{name} elsewhere", name, "external", external=place, dependencies=[])
    for name in ("slurm", "rdma-core", "lustre"):
        yield change(f"{name} at another prefix", name, "external", external={"path": "/opt/x"})
        yield change(f"{name} of another version", name, "external", version="99.1")
    attributes = {"extra_attributes": {"compilers": {"c": "/usr/bin/gcc"}}}
    yield change("another C compiler", "gcc", "external", external=attributes)
    yield change("other patches", "findutils", "recipe", patches=["0" * 64])
    yield change("another recipe", "mvapich", "recipe", package_hash="0" * 52 + "====")
    made = json.loads(json.dumps(data))
    for one in made["concrete_specs"].values():
        one["arch"] = {**one["arch"], "platform_os": "debian12"}
    yield Mutation("another operating system", "hpcc", "os", rehashed(made)), "os"
    for target in ("x86_64_v3", "zen3"):
        made = json.loads(json.dumps(data))
        node(made, "hpcc")["arch"]["target"] = target
        yield Mutation(f"hpcc for {target}", "hpcc", "target", rehashed(made)), "target"
