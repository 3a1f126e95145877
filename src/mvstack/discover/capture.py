"""A capture: all that was looked at on a machine, as one YAML file that a person can read and mail.

What is found in a capture is what was found on the machine.
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mvstack.model.base import first_error
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import InvalidInput, relative, telling
from mvstack.support.files import write_atomically

TIMED_OUT: Literal["timed out"] = "timed out"
HEAD = """\
# What `mvstack discover --capture` looked at on {host}; `mvstack discover --root FILE` reads it.
# It holds the host's name and the mounts with their servers: read it before you send it.
"""
LARGEST = 8 << 20  # characters; a node with many processors and devices has some 100,000
# What is kept of the processors after the first in /proc/cpuinfo.
PLACE = ("processor", "physical id", "core id")


class Capture(BaseModel):
    """What a machine showed: path → text or link's target, command → output, and so on.

    ``there`` are other paths that exist, ``denied`` those without permission to read. ``failed`` is
    the exit status of a command whose status was not 0. ``target`` is archspec's name of the
    processor.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    target: str = ""
    environment: dict[str, str] = Field(default_factory=dict)
    tools: dict[str, str] = Field(default_factory=dict)
    failed: dict[str, int | Literal["timed out"]] = Field(default_factory=dict)
    outputs: dict[str, str] = Field(default_factory=dict)
    denied: set[str] = Field(default_factory=set)
    links: dict[str, str] = Field(default_factory=dict)
    there: set[str] = Field(default_factory=set)
    files: dict[str, str] = Field(default_factory=dict)


def read_capture(file: Path) -> Capture:
    """The capture in ``file``. Raises InvalidInput when it holds none."""
    data = read_yaml(file, LARGEST).data
    try:
        return Capture.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(
            "this is not a capture of a machine",
            relative(file),
            found=first_error(error),
            todo="make one with `mvstack discover --capture FILE`",
        ) from None


def must_be_new(file: Path) -> None:
    """Raise InvalidInput when there is something of that name."""
    if file.exists() or file.is_symlink():
        raise InvalidInput(
            "there is a file of that name already",
            relative(file),
            todo="name a file that does not exist yet",
        )


def write_capture(seen: Capture, file: Path) -> None:
    """Write ``seen``, less what is private. Raises InvalidInput when it cannot be written."""
    todo = "name a file on a disk that you may write to"
    with telling(InvalidInput, "the capture cannot be written", where=relative(file), todo=todo):
        write_atomically(file, as_text(seen), mode=None)


def as_text(seen: Capture) -> str:
    """A capture as YAML, with texts as blocks that can be read."""
    host = seen.files.get("/proc/sys/kernel/hostname", "").strip()
    lines = [HEAD.format(host=host if host.isprintable() and host else "a machine").rstrip()]
    known = {*seen.files, *seen.links}
    # a folder is there when something in it is
    bare = {path for path in seen.there if not any(one.startswith(f"{path}/") for one in known)}
    outputs = {name: _public(name, text) for name, text in seen.outputs.items()}
    files = dict(seen.files)
    if "/proc/cpuinfo" in files:
        files["/proc/cpuinfo"] = _cpuinfo(files["/proc/cpuinfo"])
    changed = {"outputs": outputs, "files": files, "there": bare - known}
    for name, rows in seen.model_copy(update=changed):
        if isinstance(rows, str):
            lines += [f"{name}: {_word(rows)}"] if rows else []
            continue
        if isinstance(rows, dict):
            items = [f"  {_word(key)}: {_value(value)}" for key, value in sorted(rows.items())]
        else:
            items = [f"  - {_word(one)}" for one in sorted(rows)]
        lines += [f"{name}:", *items] if items else []
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A number, a text of several lines as a block, and other text as a word."""
    if not isinstance(value, str):
        return str(value)
    if "\n" not in value or any(not char.isprintable() and char not in "\n\t" for char in value):
        return _word(value)
    body = value.removesuffix("\n")
    kept = "-" if body == value else "" if body and body[-1] != "\n" else "+"
    return "\n".join([f"|2{kept}", *(f"    {line}" if line else "" for line in body.split("\n"))])


def _word(text: str) -> str:
    """A path as it is, other text in quotes."""
    if re.fullmatch(r"/[\w./:@+-]*\w", text):
        return text
    safe = (char if char.isprintable() and char not in '"\\' else None for char in text)
    quoted = (one or f"\\U{ord(char):08x}" for one, char in zip(safe, text, strict=True))
    return f'"{"".join(quoted)}"'


def _public(command: str, text: str) -> str:
    """What a tool printed, less what is not looked at and is nobody's business."""
    if command.startswith("scontrol ") and "MpiDefault" in text:
        lines = text.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith(("MpiDefault", "SLURM_VERSION")))
    return re.sub(r"UUID: [A-Z]+-[0-9a-f-]+", "UUID: not kept", text)


def _cpuinfo(text: str) -> str:
    """/proc/cpuinfo with no more of the later processors than where they are."""
    first, *others = text.split("\n\n")
    kept = [
        "\n".join(line for line in other.split("\n") if line.partition(":")[0].strip() in PLACE)
        for other in others
    ]
    return "\n\n".join([first, *kept])
