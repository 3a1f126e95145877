"""The few words of Spack's spec language that plans and policy use. Pure, needs no Spack.

``builtin.mvapich@4.0:4.1 +cuda ~rocm netmod=ofi,ucx target=zen2 ^ucx@:1.8 ~rc``: a package with its
namespace, versions (``@=4.1`` exactly, ``@4.1`` all that begin so, ``@1:2`` from to, both with all
that begins so, alternatives by commas), variants (``netmod:=ucx`` for this value and no other),
target, and the same of packages that it needs.
Words that Spack knows and we do not (``%gcc``, ``@git.…``, flags, ``arch=``) are refused and not
passed over: a constraint that is read wrongly would let everything through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mvstack.model.spack_lock import Lock, Node, Value
from mvstack.support.errors import InvalidInput

NAME = r"[a-z0-9][a-z0-9_-]*"
VERSION = r"[0-9A-Za-z][0-9A-Za-z._-]*"
WORD = r"[A-Za-z0-9_.:+/~-]+"
RANGE = rf"={VERSION}|{VERSION}:{VERSION}|{VERSION}:|:{VERSION}|{VERSION}|:"

TOKEN = re.compile(
    rf"""\s*(?:
      \^\s*(?P<below>(?:{NAME}\.)?{NAME})
    | @(?P<versions>(?:{RANGE})(?:,(?:{RANGE}))*)
    | (?P<key>[A-Za-z_][A-Za-z0-9_-]*)(?P<sign>:?==?)(?P<value>'[^']*'|"[^"]*"|{WORD}(?:,{WORD})*)
    | (?P<switch>\+\+|~~|--|[+~]|(?<=\s)-)\s*(?P<flag>[A-Za-z_][A-Za-z0-9_-]*)
    )""",
    re.X,
)
FIRST = re.compile(rf"\s*(?P<name>(?:{NAME}\.)?{NAME})")


@dataclass(frozen=True)
class Constraint:
    """What one package must be; ``below`` are the constraints on what it needs.

    ``exact`` are the variants written with ``:=``, which have these values and no others.
    """

    name: str
    namespace: str = ""
    versions: tuple[str, ...] = ()
    variants: dict[str, Value] = field(default_factory=dict)
    target: str = ""
    below: tuple[Constraint, ...] = ()
    exact: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """The words again, in one order: what :func:`parse` reads as this constraint."""
        text = f"{self.namespace}.{self.name}" if self.namespace else self.name
        if self.versions:
            text += "@" + ",".join(self.versions)
        parts = [
            text,
            *(
                variant(key, value, ":=" if key in self.exact else "=")
                for key, value in sorted(self.variants.items())
            ),
        ]
        if self.target:
            parts.append(f"target={self.target}")
        return " ".join([*parts, *(f"^{one}" for one in self.below)])


def variant(key: str, value: Value, sign: str = "=") -> str:
    """One variant in Spack's words: ``+cuda``, ``netmod=ofi,ucx``."""
    if isinstance(value, bool):
        return f"{'+' if value else '~'}{key}"
    words = value if isinstance(value, str) else ",".join(value)
    plain = re.fullmatch(rf"{WORD}(,{WORD})*", words)
    return f"{key}{sign}{words}" if plain else f'{key}{sign}"{words}"'


def parse(text: str) -> Constraint:
    """The constraint that ``text`` writes down.

    Raises InvalidInput, with the place, for words that are none of the above, and for a variant
    that is given twice.
    """
    start = FIRST.match(text)
    if not start:
        raise _wrong(text, 0, "a package's name is expected")
    parts = [_Part(start["name"])]
    at = start.end()
    while text[at:].strip():
        token = TOKEN.match(text, at)
        if not token:
            raise _wrong(text, at, "is not a known word of a spec")
        if token["below"]:
            parts.append(_Part(token["below"]))
        elif token["versions"]:
            if parts[-1].versions:
                raise _wrong(text, at, "a package has its versions in one place")
            parts[-1].versions = tuple(token["versions"].split(","))
        else:
            key = token["key"] or token["flag"]
            value: Value = token["switch"] in ("+", "++") if token["switch"] else _words(token)
            if key in parts[-1].variants or (key == "target" and parts[-1].target):
                raise _wrong(text, at, f"{key} is given twice")
            if key == "target" and isinstance(value, str):
                parts[-1].target = value
            elif key in ("arch", "platform", "os", "cflags", "cxxflags", "fflags", "ldflags"):
                raise _wrong(text, at, "is not a known word of a spec")
            else:
                parts[-1].variants[key] = value
                if (token["sign"] or "").startswith(":"):
                    parts[-1].exact.add(key)
        at = token.end()
    below = tuple(part.done() for part in parts[1:])
    return parts[0].done(below)


class _Part:
    """A constraint while it is being read."""

    def __init__(self, name: str) -> None:
        self.namespace, _, self.name = name.rpartition(".")
        self.versions: tuple[str, ...] = ()
        self.variants: dict[str, Value] = {}
        self.target = ""
        self.exact: set[str] = set()

    def done(self, below: tuple[Constraint, ...] = ()) -> Constraint:
        return Constraint(
            self.name,
            self.namespace,
            self.versions,
            self.variants,
            self.target,
            below,
            frozenset(self.exact),
        )


def _words(token: re.Match[str]) -> Value:
    text = token["value"].strip("'\"")
    return tuple(text.split(",")) if "," in text else text


def words(value: Value | None) -> frozenset[str]:
    """A variant's value as a set of words; a boolean is ``True`` or ``False``."""
    if value is None:
        return frozenset()
    return frozenset([str(value)] if isinstance(value, (bool, str)) else value)


def matches_version(version: str, wanted: tuple[str, ...]) -> bool:
    """Whether ``version`` is one of ``wanted``, none of which means any."""
    return not wanted or any(_in_range(version, one) for one in wanted)


def _in_range(version: str, wanted: str) -> bool:
    if wanted.startswith("="):
        return version == wanted[1:]
    low, colon, high = wanted.partition(":")
    if not colon:
        high = low
    have = sort_key(version)
    if low and (*have, END) < (*sort_key(low), END):
        return False
    if not high:
        return True
    end = sort_key(high)
    if any(rank == PRE for rank, _, _ in end):  # a release candidate is alone
        return (*have, END) <= (*end, END)
    # 4.1 as an upper end takes 4.1.2 along, as Spack's ranges do
    return have[: len(end)] <= end


PRE, END, ALPHA, NUMBER, ENDLESS = 0, (1, 0, ""), 2, 3, 4
"""How parts of versions sort: 3.0rc1 before 3.0 before 3.0a before 3.0.1, develop after all."""
ENDLESS_WORDS = ("stable", "nightly", "trunk", "head", "master", "main", "develop")


def sort_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """A version's parts in the order in which Spack sorts them."""
    parts = re.findall(r"[0-9]+|[A-Za-z]+", version)
    return tuple(_part(part) for part in parts)


def _part(part: str) -> tuple[int, int, str]:
    if part.isdigit():
        return (NUMBER, int(part), "")
    if part in ENDLESS_WORDS:
        return (ENDLESS, ENDLESS_WORDS.index(part), part)
    return (PRE, 0, part) if part in ("alpha", "beta", "rc") else (ALPHA, 0, part)


def mismatches(node: Node, wanted: Constraint, exact: frozenset[str] = frozenset()) -> list[str]:
    """How ``node`` alone is not what is wanted: names of the fields that differ.

    ``name``, ``namespace``, ``version``, ``target`` and variants' names. A variant with several
    words holds when all wanted ones are among those it has; for those in ``exact`` when it has
    no others. What is ``below`` is not looked at.
    """
    found = []
    if node.name != wanted.name:
        found.append("name")
    if wanted.namespace and node.namespace != wanted.namespace:
        found.append("namespace")
    if not matches_version(node.version, wanted.versions):
        found.append("version")
    if wanted.target and node.target != wanted.target:
        found.append("target")
    for key, value in wanted.variants.items():
        have, need = words(node.variants.get(key)), words(value)
        alone = key in exact or key in wanted.exact
        if not (have == need if alone else need and need <= have):
            found.append(key)
    return found


def satisfies(lock: Lock, node: Node, wanted: Constraint) -> bool:
    """Whether ``node`` and what it needs are as wanted, in Spack's sense of the word."""
    if mismatches(node, wanted):
        return False
    if not wanted.below:
        return True
    needed = [one for one in lock.closure([node]) if one.hash != node.hash]
    return all(any(not mismatches(one, below) for one in needed) for below in wanted.below)


def _wrong(text: str, at: int, message: str) -> InvalidInput:
    rest = text[at:].strip()
    return InvalidInput(
        f"spec: {rest}: {message}" if rest else f"spec: {message}",
        found=text,
        allowed="name@version +on ~off key=words ^what-it-needs@version …",
    )
