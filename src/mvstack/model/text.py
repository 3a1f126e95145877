"""The kinds of text in hand-written files. What a person writes is hostile until validated.

Every free string is :data:`Text`; what becomes a path, a file, a module, a spec, a Unix group or a
compiler has a stricter kind. Whoever writes a value out quotes it besides.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from mvstack.support.units import clean

LONGEST = 2000


def _plain(value: str) -> str:
    odd = sorted({char for char, shown in zip(value, clean(value), strict=True) if char != shown})
    odd += [char for char in "\n\t" if char in value]
    if odd:
        codes = ", ".join(f"U+{ord(char):04X}" for char in odd[:4])
        raise ValueError(f"plain text on one line is expected, and this holds {codes}")
    return value


def _path(value: str) -> str:
    if ".." in value.split("/"):
        raise ValueError("a path without .. is expected")
    return value


def _below(value: str) -> str:
    if not value.strip("/."):
        raise ValueError("a folder below / is expected: everything in it would be this tool's")
    return value


def _matching(pattern: str, longest: int = 80) -> StringConstraints:
    return StringConstraints(pattern=f"^(?:{pattern})$", max_length=longest)


Text = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_plain)]
Folder = Annotated[Text, StringConstraints(pattern=r"^/"), AfterValidator(_path)]
Root = Annotated[Folder, AfterValidator(_below)]
Name = Annotated[str, _matching(r"[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*", 40)]
Version = Annotated[str, _matching(r"[0-9A-Za-z][0-9A-Za-z._+-]*")]
CompilerName = Annotated[str, _matching(r"[a-z][a-z0-9+_-]*", 40)]
PackageName = Annotated[str, _matching(r"[0-9A-Za-z][0-9A-Za-z._+-]*")]
ModuleName = Annotated[str, _matching(r"[0-9A-Za-z][0-9A-Za-z._+-]*/[0-9A-Za-z][0-9A-Za-z._+-]*")]
Group = Annotated[str, _matching(r"[A-Za-z_][A-Za-z0-9_.@+-]*", 64)]
Device = Annotated[str, _matching(r"ch[34](?::[a-z0-9]+)+(?:,[a-z0-9:]+)*")]
Variable = Annotated[str, _matching(r"[A-Za-z_][A-Za-z0-9_]*")]
Suffix = Annotated[str, _matching(r"(?:-[0-9A-Za-z._+-]+)?")]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
