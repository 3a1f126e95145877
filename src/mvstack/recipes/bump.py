"""A package's new version: its hash by all who know it, its row and easyconfig. Writes nothing."""

import ast
import contextlib
import difflib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mvstack.model.load import load_release
from mvstack.model.release import Package, Release
from mvstack.plan import easyconfigs
from mvstack.recipes.elsewhere import Elsewhere, current, order, spack_name
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SourceSpec, known_sources
from mvstack.support.errors import InvalidInput, Problem, Refused, SourceError, relative
from mvstack.support.home import checkout, home
from mvstack.support.words import listed, nearest

_PAIR = re.compile(r"""\(\s*['"]([^'"]+)['"],\s*['"]([^'"]+)['"]""")  # a dependency


@dataclass(frozen=True)
class Asked:
    """What is asked for; ``download`` brings a source and says its SHA-256 and from where."""

    name: str
    version: str
    there: Elsewhere
    download: Callable[[SourceSpec], tuple[str, str]]
    sha256: str = ""
    why: str = ""


@dataclass
class Bump:
    """The new text of each file (None: it goes), what it was made from; words for a person."""

    files: dict[Path, str | None] = field(default_factory=dict)
    made_from: dict[Path, Path] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)

    def text(self, path: Path) -> str:
        """The text of a file as it is to be."""
        return self.files.get(path) or path.read_text("utf-8")

    def diff(self) -> Iterator[str]:
        """What changes, as `diff -u` says it."""
        for path, text in sorted(self.files.items()):
            old = self.made_from.get(path, path)
            was, now = (x.splitlines() for x in (old.read_text("utf-8"), text or ""))
            if text is not None:
                names = relative(old), relative(path)
                yield from difflib.unified_diff(was, now, *names, n=1, lineterm="")

    def still(self, old: str, path: Path, first: int, lines: list[str]) -> None:
        """Ask about each of ``lines``, of which ``first`` is the number, that names ``old``."""
        for number, line in enumerate(lines, first):
            if re.search(rf"(?<![\w.]){re.escape(old)}(?![\w.])", line):
                self.by_hand.append(f"{relative(path)}:{number}: {line.strip()}")


class _Stays(Refused):
    """A row stays as it is, and others may change."""


def planned(asked: Asked) -> Bump:
    """What changes with a new version. Raises InvalidInput, Refused, SourceError."""
    release, top = load_release(), home().site or checkout("mvstack bump")
    rows = [one for one in release.packages if _place(one)[0].is_relative_to(top.resolve())]
    same = [one for one in rows if one.name.lower() == asked.name.lower()]
    if not same:
        names = dict.fromkeys(one.name for one in rows)
        raise InvalidInput(
            f"release {release.name} has no package {asked.name}",
            relative(_place(rows[0])[0]) if rows else str(top),
            allowed=listed(names),
            nearest=nearest(asked.name, names),
            todo="name one of these; an MPI's versions are changed by hand, with their easyblock",
        )
    made, left = Bump(), list[Problem]()
    # from the last, so that lines of the file that are still to be changed stay where they are
    for row in sorted(current(same), key=_place, reverse=True):
        try:
            _row(row, release, asked, made)
        except _Stays as error:
            left += error.problems
    if not made.files:
        raise Refused(*left, outcome="Nothing was changed.")
    made.said += [f"{one.where}: stays, {one.message}" for one in left]
    return made


def _place(row: Package) -> tuple[Path, int]:
    path, _, line = row.at().rpartition(":")
    return Path(path).resolve(), int(line)


def _row(row: Package, release: Release, asked: Asked, made: Bump) -> None:
    """Add what changes with one row. Raises _Stays, Refused, SourceError."""
    version, who, recipe = asked.version, list[str](), spack_name(row.name, release)
    if row.by_spack:
        known = asked.there.spack(recipe).hashes
        own = next((one for one in known if order(one) == order(version)), "")
        if known and not own:
            todo = "add it to a recipe in spack-repo/, or give each builder a row (`where`)"
            what = f"Spack's recipe of {recipe} has no version {version}"
            kind = Refused if row.by_easyconfig else _Stays  # half a row cannot stay behind
            raise kind(what, row.at(), allowed=listed(known), todo=todo)
        if not own:
            made.by_hand.append(f"Spack's recipe of {recipe} was not read: has it {version}?")
        who = [f"Spack's {recipe} recipe"] * bool(own)
        version = version if row.by_easyconfig else own or version  # as it is spelled there
    if row.version == version:
        raise _Stays(f"it is at {version} already", row.at())
    if row.by_easyconfig:
        who = _easyconfig(row, version, release, asked, made)
    path, start = _place(row)
    lines = made.text(path).splitlines()
    for key, value in (("version", version), ("source", "; ".join(who)), ("why", asked.why)):
        _set(lines, start, key, value)
    if not asked.why:
        made.by_hand.append(f"{row.at()}: why: {row.why}")
    end = _end(lines, start)
    for number in range(start - 1, end):  # where a site writes them out
        if re.match(r"\s+(module|spack):", lines[number]):
            was = rf"(@=|/){re.escape(row.version)}(?![\w.])"
            lines[number] = re.sub(was, rf"\g<1>{version}", lines[number])
    made.still(row.version, path, start, lines[start - 1 : end])
    made.files[path] = "\n".join(lines) + "\n"


def _end(lines: list[str], start: int) -> int:
    """How many lines there are up to the end of the list's item that begins in line ``start``."""
    indent = lines[start - 1].index("-")
    item = re.compile(rf"\s*$|\s{{{indent + 1}}}")
    return next((n for n in range(start, len(lines)) if not item.match(lines[n])), len(lines))


def _set(lines: list[str], start: int, key: str, value: str) -> None:
    """Write ``key: value`` into the item of a list that begins in line ``start``; nothing if ""."""
    pad = " " * re.match(r"\s*-\s+", lines[start - 1]).end()  # type: ignore[union-attr]
    end = _end(lines, start)
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    at = next((n for n in range(start, end) if lines[n].startswith(f"{pad}{key}:")), end)
    after = at + (at < end)
    while after < end and lines[after].startswith(f"{pad} "):
        after += 1
    try:
        plain = YAML(typ="safe").load(f"{key}: {value}") == {key: value}
    except YAMLError:
        plain = False
    quoted = value if plain else "'" + value.replace("'", "''") + "'"
    lines[at:after] = [f"{pad}{key}: {quoted}"] if value else lines[at:after]


def _easyconfig(
    row: Package, version: str, release: Release, asked: Asked, made: Bump
) -> list[str]:
    """Add the new easyconfig of a row, made from the present one; who says its hashes."""
    name = easyconfigs.by_hand(row, release.name)
    old, was = easyconfigs.index()[name], re.escape(row.version)
    if row.name in easyconfigs.LIBRARIES or "system" in old.parts:
        raise _Stays("EasyBuild takes it from the distribution, in its version", row.at())
    path = old.with_name(name.replace(f"-{row.version}-", f"-{version}-", 1))
    text = old.read_text("utf-8")
    # the version, and names of files that are the keys of `checksums`
    for key in (
        rf"(?m)^(version\s*=\s*['\"]){was}(['\"])",
        rf"(['\"][^'\"\n]*){was}([^'\"\n]*['\"]:)",
    ):
        text = re.sub(key, rf"\g<1>{version}\g<2>", text)
    who: dict[str, None] = {}
    with tempfile.TemporaryDirectory(prefix="mvstack-bump-") as folder:
        (draft := Path(folder) / path.name).write_text(text, "utf-8")
        specs = zip(*(specs_from_easyconfigs([one], {}) for one in (old, draft)), strict=True)
        changed = [(first, now) for first, now in specs if first.urls != now.urls]
    for first, now in changed:
        hashes, own = _hash(now, first, asked, spack_name(row.name, release))
        who |= dict.fromkeys(own)
        made.said.append(f"{now.filename}: sha256 {listed(hashes)}, by {listed(own)}")
        text = _with_hash(text, first.hashes, hashes)
        if first.filename in known_sources():
            more = f"environments/policy/sources.yaml has a row for {first.filename}"
            made.by_hand.append(f"{more}, and none for {now.filename}")
    if not changed:
        made.by_hand.append(f"{relative(path)}: no source has the version in its URL")
    elif "checksums" in text:
        text = re.sub(r"(?m)(?:^#.*\n)+(?=checksums\s*=)", f"# as in {listed(who)}\n", text)
    made.files[path], made.made_from[path] = text, old
    for patch in re.findall(r"""['"]([^'"]+\.patch)['"]""", text):
        made.by_hand.append(f"{relative(path)}: does the patch {patch} still apply?")
        was_patch, to = (
            old.with_name(patch.replace("%(version)s", x)) for x in (row.version, version)
        )
        if was_patch != to and was_patch.is_file():
            made.files[to], made.made_from[to] = was_patch.read_text("utf-8"), was_patch
    _dependencies(row.name, version, path, asked, made)
    made.still(row.version, path, 1, text.splitlines())
    others = [one for one in release.packages if one.by_easyconfig and one is not row]
    if all(easyconfigs.by_hand(one, release.name) != name for one in others):
        made.files[old] = None
        _upon(row, version, old, made)
    return [*who]


def _hash(
    now: SourceSpec, first: SourceSpec, asked: Asked, recipe: str
) -> tuple[list[str], list[str]]:
    """The SHA-256 of a new source, and who says so. Raises SourceError where two disagree."""
    names = {now.filename, *(one.rpartition("/")[2] for one in now.urls)}
    found: dict[str, set[str]] = {}
    stock = asked.there.easybuild(now.software)
    for path in sorted(stock, key=lambda one: len(one.name)):
        if order(stock[path]) == order(now.version):
            with contextlib.suppress(InvalidInput):  # without a SHA-256 it knows none
                for one in specs_from_easyconfigs([path], {}):
                    same = names & {one.filename, *(url.rpartition("/")[2] for url in one.urls)}
                    if same and set(one.hashes) not in found.values():
                        found[f"EasyBuild's {path.name}"] = set(one.hashes)
    spack = asked.there.spack(recipe)
    known = {order(one): sha256 for one, sha256 in spack.hashes.items() if sha256}
    before, sha256 = known.get(order(first.version)), known.get(order(now.version))
    # Spack's may be another file of the same release: it is not where the hash of before is ours
    form = [re.sub(r"[\d._-]+", "#", one) for one in (spack.url.rpartition("/")[2], *names)]
    if sha256 and (before in first.hashes if before else form[0] in form[1:]):
        found[f"Spack's {recipe} recipe"] = {sha256}
    if asked.sha256:
        found["--sha256"] = {asked.sha256}
    if not found:
        sha256, place = asked.download(now)
        return [sha256], [f"a download from {place} that nobody else has seen"]
    if not (common := set.intersection(*found.values())):
        raise SourceError(
            f"{now.filename}: its hash is not the same everywhere",
            found="; ".join(f"{who}: sha256 {listed(sorted(x))}" for who, x in found.items()),
            because="upstream replaced the file, or a recipe is wrong",
            todo="download it and compare with upstream's own checksum before you trust either",
            outcome="Nothing was changed.",
        )
    return sorted(common), list(found)


def _with_hash(text: str, old: Iterable[str], new: list[str]) -> str:
    """``text`` with the hashes ``new`` where it gives ``old``: one, or a tuple of some."""
    whole = text.encode()
    starts = [0, *(at.end() for at in re.finditer(rb"\n", whole))]
    for node in ast.walk(ast.parse(text)):  # a tuple comes before what is in it
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if isinstance(node, ast.expr) and {getattr(x, "value", None) for x in parts} == set(old):
            first = starts[node.lineno - 1] + node.col_offset
            last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            made = repr(new[0] if len(new) == 1 else tuple(new))
            return (whole[:first] + made.encode() + whole[last:]).decode()
    raise Refused("its checksums are not written out, so they cannot be changed", found=listed(old))


def _dependencies(name: str, version: str, path: Path, asked: Asked, made: Bump) -> None:
    """Say in which dependencies an easyconfig differs from stock EasyBuild's of this version."""
    text, own = made.text(path), dict(_PAIR.findall(made.text(path)))
    stock = [x for x, its in asked.there.easybuild(name).items() if order(its) == order(version)]
    for other in sorted(stock, key=lambda one: len(one.name))[:1]:
        needs = easyconfigs.dependencies(theirs := other.read_text("utf-8"))
        pairs = {x: v for x, v in _PAIR.findall(theirs) if x in needs}
        differ = [
            f"{x} {v}, here {own.get(x, 'none')}" for x, v in pairs.items() if own.get(x) != v
        ]
        if differ:
            made.by_hand.append(f"{other.name} depends on {'; '.join(differ)}")
    if "git_config" in text:
        made.by_hand.append(f"{relative(path)}: the commits that it clones with git")


def _upon(row: Package, version: str, old: Path, made: Bump) -> None:
    """Let what is built on a package name its new version."""
    was = rf"(\(\s*['\"]{re.escape(row.name)}['\"],\s*['\"]){re.escape(row.version)}(?=['\"])"
    for path in easyconfigs.index().values():
        text = re.sub(was, rf"\g<1>{version}", made.text(path)) if path != old else ""
        if text and text != made.text(path):
            made.files[path] = text
            made.by_hand.append(f"{relative(path)} is built on it: does it build with {version}?")
