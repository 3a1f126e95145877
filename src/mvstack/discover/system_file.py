"""The system file of a machine that was looked at: every line says how its value was found."""

from __future__ import annotations

import json
import re
from datetime import date

from mvstack.discover.machine import NOT_FOUND, Library, Machine
from mvstack.support.units import one_line

TAKEN = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""Words that YAML 1.1 or 1.2 reads as something other than text."""

COLUMN = 44
"""Where the comments begin."""


def system_yaml(
    machine: Machine, name: str = "local", today: date | None = None, builder: str = "easybuild"
) -> str:
    """``machine`` as a system file with one partition ``node``, to be edited by a person.

    Lines whose value was not found have none and say so; such a file does not pass
    `mvstack check` before they are filled in. ``today`` is the date in the first line.
    """
    day = (today or date.today()).isoformat()
    host = one_line(machine.hostname) or "a machine without a name"
    lines = [
        f"# Found by `mvstack discover` on {host} on {day}: edit freely; "
        "`mvstack check FILE` validates it.",
        *_remarks("Worth knowing:", machine.notes),
        _line(0, "name", _plain(name), ""),
        _line(0, "title", _text(_system_title(machine)), ""),
        _line(0, "builder", builder, "easybuild or spack: yours to choose"),
        _found(0, machine, "os", machine.os),
        _found(0, machine, "scheduler", machine.scheduler),
        "partitions:",
        "  node:",
        _line(4, "title", _text(_node_title(machine)), ""),
        _line(4, "nodes", "1", "this one; how many alike there are cannot be seen from here"),
        *_node(machine),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _node(machine: Machine) -> list[str]:
    keys = ("cores", "memory_gb", "target", "fabric", "nic", "gpu", "gpus", "launcher", "pmi")
    optional = ("nic", "pmi")
    values = {key: getattr(machine, key) for key in keys}
    lines = [
        _found(4, machine, key, value)
        for key, value in values.items()
        if value is not None or key not in optional
    ]
    how = machine.how.get("file_systems", "") if machine.file_systems else NOT_FOUND
    lines.append(_line(4, "file_systems", _flow(machine.file_systems), how))
    return [*lines, *_compiler(machine), *_externals(machine.externals)]


def _compiler(machine: Machine) -> list[str]:
    best = machine.compiler
    value = None
    if best is not None:
        value = f"{{name: {best.name}, version: {_text(best.version)}, origin: system}}"
    line = _found(4, machine, "compiler", value)
    if best is not None and not best.complete:
        companions = (("C++", best.cxx), ("Fortran", best.fortran))
        line += f"; without {' and '.join(what for what, path in companions if not path)}"
    others = [
        f"{other.name} {other.version} {other.path}"
        for other in machine.compilers
        if best is None or (other.name, other.version) != (best.name, best.version)
    ]
    return [line, *([f"    # also here: {one_line(', '.join(others))}"] if others else [])]


def _externals(libraries: list[Library]) -> list[str]:
    lines = ["    externals:" if libraries else "    externals: {}"]
    for item in libraries:
        fields = [f"version: {_text(item.version)}"] if item.version else []
        fields.append(f"prefix: {_text(item.prefix)}")
        for key in ("providers", "transports", "mpi"):
            values = getattr(item, key)
            fields += [f"{key}: {_flow(values)}"] if values else []
        fields += [f"variants: {_text(item.variants)}"] if item.variants else []
        how = "headers are there" if item.headers else "no headers: starts programs only"
        if item.idle:
            how += "; no controller answers" if item.name == "slurm" else ""
            how += f"; no adapter here for {', '.join(item.idle)}" if item.name != "slurm" else ""
        how += "" if item.version else f"; version {NOT_FOUND}"
        lines.append(_line(6, item.name, "{" + ", ".join(fields) + "}", how))
    return lines


def _found(indent: int, machine: Machine, key: str, value: object) -> str:
    """A line with its value and how it was found; or the key alone and why there is no value."""
    how = machine.how.get(key, "")
    if value is None:
        return _line(indent, key, "", NOT_FOUND + (f" ({how})" if how else ""))
    # A flow (list, mapping) is YAML already.
    text = _plain(value) if isinstance(value, str) and value[:1] not in ("[", "{") else str(value)
    return _line(indent, key, text, how)


def _line(indent: int, key: str, value: str, comment: str) -> str:
    text = f"{' ' * indent}{key}: {value}".rstrip()
    return f"{text:<{COLUMN}}  # {one_line(comment)}" if comment else text


def _remarks(title: str, notes: list[str]) -> list[str]:
    return [f"# {title}", *(f"#   - {one_line(note)}" for note in notes)] if notes else []


def _text(text: str) -> str:
    """A YAML string in double quotes: JSON's are that, on one line and without surprises."""
    return json.dumps(one_line(text), ensure_ascii=False)


def _flow(words: list[str]) -> str:
    return "[" + ", ".join(_plain(word) for word in words) + "]"


def _plain(word: str) -> str:
    """A word as YAML reads it back: in quotes where it would be taken for something else."""
    plain = re.fullmatch(r"[a-z][a-z0-9_.-]*", word) and word not in TAKEN
    return word if plain else _text(word)


def _system_title(machine: Machine) -> str:
    return f"{machine.hostname or 'This machine'}, {machine.os_title or machine.os or 'unknown OS'}"


def _node_title(machine: Machine) -> str:
    text = machine.cpu
    for item in machine.accelerators:
        text += f", {item.count} x {', '.join(item.models) or item.gpu}"
    return f"{text}, virtual ({machine.hypervisor})" if machine.hypervisor else text
