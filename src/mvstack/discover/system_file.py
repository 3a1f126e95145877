"""The system file of a machine that was looked at: every line says how its value was found."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from mvstack.discover.libraries import above_bin
from mvstack.discover.machine import NOT_FOUND, Library, Machine
from mvstack.support.units import one_line
from mvstack.support.words import TAKEN

COLUMN = 44
"""Where the comments begin."""


@dataclass(frozen=True)
class Nodes:
    """Nodes of one kind: one of them as it was found, and how many there are.

    ``options`` are the scheduler's for a job on them; ``remarks`` stand above them as comments.
    """

    machine: Machine
    count: int = 1
    counted: str = "this one; how many alike there are cannot be seen from here"
    options: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def system_yaml(
    machine: Machine, name: str = "local", today: date | None = None, builder: str = "easybuild"
) -> str:
    """``machine`` as a system file with one partition ``node``, to be edited by a person.

    Lines whose value was not found have none and say so; such a file does not pass
    `mvstack check` before they are filled in. ``today`` is the date in the first line.
    """
    return cluster_yaml(machine, {"node": Nodes(machine)}, name, builder, today)


def cluster_yaml(
    login: Machine,
    parts: Mapping[str, Nodes],
    name: str,
    builder: str,
    today: date | None = None,
    command: str = "discover",
) -> str:
    """The same of a cluster: ``login`` is the node where jobs are started, ``parts`` all others."""
    day = (today or date.today()).isoformat()
    host = one_line(login.hostname) or "a machine without a name"
    remarks = [f"#   - {one_line(note)}" for note in login.notes]
    title = f"{login.hostname or 'This machine'}, {login.os_title or login.os or 'unknown OS'}"
    lines = [
        f"# Found by `mvstack {command}` on {host} on {day}: edit freely; "
        "`mvstack check FILE` validates it.",
        *(["# Worth knowing:", *remarks] if remarks else []),
        _line(0, "name", name),
        _line(0, "title", title),
        _line(0, "builder", builder, "easybuild or spack: yours to choose"),
        _found(0, login, "os"),
        _found(0, login, "scheduler"),
        "partitions:",
        *(line for key, nodes in parts.items() for line in _partition(key, nodes, login)),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _partition(key: str, nodes: Nodes, login: Machine) -> list[str]:
    machine, options = nodes.machine, list(nodes.options)
    return [
        *(f"  # {one_line(remark)}" for remark in nodes.remarks),
        f"  {key}:",
        _line(4, "title", _node_title(machine)),
        _line(4, "nodes", nodes.count, nodes.counted),
        *([_line(4, "scheduler_options", options, "of every job")] if options else []),
        *([_found(4, machine, "os")] if machine.os not in (None, login.os) else []),
        *(_found(4, machine, key) for key in ("cores", "memory_gb", "target", "fabric")),
        *([] if machine.cma else [_found(4, machine, "cma")]),
        *([_found(4, machine, "nic")] if machine.nic else []),
        *(_found(4, machine, key) for key in ("gpu", "gpus")),
        *(_found(4, machine, key) for key in ("gpu_arch", "gpu_buffers") if getattr(machine, key)),
        _found(4, machine, "launcher"),
        *([_found(4, machine, "pmi")] if machine.pmi else []),
        _found(4, machine, "file_systems"),
        *_compiler(machine),
        *_externals(machine.externals),
    ]


def _node_title(machine: Machine) -> str:
    text = machine.cpu
    for item in machine.accelerators:
        text += f", {item.count} x {', '.join(item.models) or item.gpu}"
    return f"{text}, virtual ({machine.hypervisor})" if machine.hypervisor else text


def _compiler(machine: Machine) -> list[str]:
    best = machine.compiler
    if best is None:
        line, known = _found(4, machine, "compiler"), None
    else:
        found = {"name": best.name, "version": best.version, "origin": "system"}
        if (prefix := above_bin(best.path)) not in ("", "/usr"):  # a module's, a toolset's
            found["prefix"] = prefix
        lacking = [
            what for what, path in (("C++", best.cxx), ("Fortran", best.fortran)) if not path
        ]
        how = machine.how.get("compiler", "")
        how += f"; without {' and '.join(lacking)}" if lacking else ""
        line, known = _line(4, "compiler", found, how), (best.name, best.version)
    others = [
        f"{other.name} {other.version} {other.path}"
        for other in machine.compilers
        if (other.name, other.version) != known
    ]
    return [line, *([f"    # also here: {one_line(', '.join(others))}"] if others else [])]


def _externals(libraries: list[Library]) -> list[str]:
    lines = ["    externals:" if libraries else "    externals: {}"]
    for item in libraries:
        how = "headers are there" if item.headers else "no headers: starts programs only"
        if item.idle:
            idle = f"no adapter here for {', '.join(item.idle)}"
            how += f"; {'no controller answers' if item.name == 'slurm' else idle}"
        how += "" if item.version else f"; version {NOT_FOUND}"
        how += f"; {item.told}" if item.told else ""
        fields = ("version", "prefix", "providers", "transports", "mpi", "variants")
        found = {key: value for key in fields if (value := getattr(item, key))}
        lines.append(_line(6, item.name, found, how))
    return lines


def _found(indent: int, machine: Machine, key: str) -> str:
    """A line with its value and how it was found; or the key alone and why there is no value."""
    value, how = getattr(machine, key), machine.how.get(key, "")
    if value in (None, []):
        how = f"{NOT_FOUND} ({how})" if how else NOT_FOUND
    return _line(indent, key, value, how)


def _line(indent: int, key: str, value: Any, comment: str = "") -> str:
    text = f"{' ' * indent}{key}: {_flow(value)}".rstrip()
    return f"{text:<{COLUMN}}  # {one_line(comment)}" if comment else text


def _flow(value: Any) -> str:
    """``value`` on one line of YAML, text in quotes where it would be taken for something else."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, int) or (re.fullmatch(r"[a-z][a-z0-9_.-]*", value) and value not in TAKEN):
        return str(value)
    # JSON's strings are YAML's: on one line and without surprises
    return json.dumps(one_line(value), ensure_ascii=False)
