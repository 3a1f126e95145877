"""The kinds of text in hand-written files. What a person writes is hostile until validated.

Every free string is :data:`Text`; what becomes a path, a file, a module, a spec, a Unix group or a
compiler has a stricter kind. Whoever writes a value out quotes it besides.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import ErrorDetails

from mvstack.support.units import clean

LONGEST = 2000


def _plain(value: str) -> str:
    if value.isprintable():  # as most is: told in one step, not one for each character
        return value
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


WORDS: dict[str, str] = {"^/": "a path that begins with /"}
"""What each pattern stands for, for people."""

TYPES = {"bool_type": "true or false", "int_type": "a whole number, without quotes or a unit,"}
TYPES |= {"list_type": "a list such as [one, two]", "string_type": "text on one line"}
TYPES |= dict.fromkeys(("dict_type", "model_type"), "a mapping of `name: value`")
"""The same of each type, by the type of pydantic's error."""


def matching(pattern: str, words: str, longest: int = 80) -> StringConstraints:
    """Text that ``pattern`` matches as a whole; ``words`` tell people what is expected."""
    WORDS[f"^(?:{pattern})$"] = words
    return StringConstraints(pattern=f"^(?:{pattern})$", max_length=longest)


def expected(error: ErrorDetails) -> str:
    """The message of an error of pydantic's, in words where it has a pattern only."""
    words = WORDS.get(error.get("ctx", {}).get("pattern", "")) or TYPES.get(error["type"])
    return f"{words} is expected" if words else error["msg"].removeprefix("Value error, ")


Text = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_plain)]
Folder = Annotated[Text, StringConstraints(pattern=r"^/"), AfterValidator(_path)]
Root = Annotated[Folder, AfterValidator(_below)]
WORD = r"[0-9A-Za-z][0-9A-Za-z._+-]*"
WORD_SAYS = "letters, digits and . _ + -, beginning with a letter or digit,"
Name = Annotated[
    str,
    matching(
        r"[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*",
        "a name of lower-case letters, digits, _ and -, beginning with a letter,",
        40,
    ),
]
Version = Annotated[str, matching(WORD, WORD_SAYS)]
CompilerName = Annotated[  # the builders would take another for a GCC of that version
    str, matching("gcc", "gcc, of the site or one that the builder brings (`origin: spack`),")
]
PackageName = Annotated[str, matching(WORD, WORD_SAYS)]
ModuleName = Annotated[str, matching(f"{WORD}/{WORD}", "a module's name/version")]
Group = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_.@+-]*", "the name of a Unix group (not a number)", 64)
]
Device = Annotated[
    str,
    matching(r"(?:ch[34]|mtl)(?::[a-z0-9]+)+(?:,[a-z0-9:]+)*", "a device such as ch4:ofi"),
]
Variable = Annotated[str, matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
GpuArch = Annotated[
    str,
    matching(r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,4}", "an architecture such as sm_80 or gfx90a,"),
]
HcaName = Annotated[str, matching(r"[a-z][a-z0-9_]*", "an adapter's name, such as mlx5_0,", 40)]
Ratio = Annotated[str, matching(r"[0-9]+:[0-9]+", "a ratio such as 4:1", 10)]
Suffix = Annotated[str, matching(r"(?:-[0-9A-Za-z._+-]+)?", "a suffix such as -serial")]
Page = Annotated[
    Text, matching(r"(?:https?://\S+)?", "an address with http:// or https://", LONGEST)
]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
