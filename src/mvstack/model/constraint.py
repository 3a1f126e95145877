"""The few words of Spack's spec language that plans and policy use. Pure, needs no Spack.

``builtin.mvapich@4.0:4.1 +cuda ~rocm netmod=ofi,ucx target=zen2 ^ucx@:1.8 ~rc``: a package with its
namespace, versions (``@=4.1`` exactly, ``@4.1`` all that begin so, ``@1:2`` from to, both with all
that begins so, alternatives by commas), variants (``netmod:=ucx`` for this value and no other),
target, and the same of packages that it needs.
Words that Spack knows and we do not (``%gcc``, ``@git.…``, flags, ``arch=``) are refused and not
passed over: a constraint that is read wrongly would let everything through.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

from mvstack.model.spack_lock import Lock, Node, Value
from mvstack.model.text import Text
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
NOT_READ = ("arch", "platform", "os", "cflags", "cxxflags", "fflags", "ldflags")
FIRST = re.compile(rf"\s*(?P<name>(?:{NAME}\.)?{NAME})")


@dataclass
class Constraint:
    """What one package must be; ``below`` are the constraints on what it needs.

    ``exact`` are the variants written with ``:=``, which have these values and no others.
    """

    name: str
    namespace: str = ""
    versions: tuple[str, ...] = ()
    variants: dict[str, Value] = field(default_factory=dict)
    target: str = ""
    below: "tuple[Constraint, ...]" = ()
    exact: frozenset[str] = frozenset()


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
    whole = part = _named(start["name"])
    at = start.end()
    while text[at:].strip():
        token = TOKEN.match(text, at)
        if not token:
            raise _wrong(text, at, "is not a known word of a spec")
        key = token["key"] or token["flag"]
        if token["below"]:
            part = _named(token["below"])
            whole.below += (part,)
        elif token["versions"]:
            if part.versions:
                raise _wrong(text, at, "a package has its versions in one place")
            part.versions = tuple(token["versions"].split(","))
        elif key in part.variants or (key == "target" and part.target):
            raise _wrong(text, at, f"{key} is given twice")
        elif key in NOT_READ:
            raise _wrong(text, at, "is not a known word of a spec")
        elif token["switch"]:
            part.variants[key] = token["switch"] in ("+", "++")
        elif key == "target" and "," not in token["value"]:
            part.target = token["value"].strip("'\"")
        else:
            value = token["value"].strip("'\"")
            part.variants[key] = tuple(value.split(",")) if "," in value else value
            part.exact |= {key} if token["sign"].startswith(":") else set()
        at = token.end()
    return whole


def _named(name: str) -> Constraint:
    namespace, _, name = name.rpartition(".")
    return Constraint(name, namespace)


def _spec(value: str) -> str:
    """``value`` if it is empty or a spec, in which ``{cuda_arch}`` stands for a number."""
    try:
        if value:
            parse(value.replace("{cuda_arch}", "80"))
    except InvalidInput as error:
        raise ValueError(error.problems[0].message) from None
    return value


def _words(value: str) -> str:
    _spec(f"any {value}")
    return value


Spec = Annotated[Text, AfterValidator(_spec)]
SpecWords = Annotated[Text, AfterValidator(_words)]
"""What follows the name in a spec, e.g. ``+cuda ^ucx+cuda``."""


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
