"""A package's new version: its hash by all who know it, its row and easyconfig. Writes nothing."""

import ast
import contextlib
import difflib
import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

from mvstack.model.release import Package, Release
from mvstack.plan import easyconfigs
from mvstack.sources.download import NotHere, bring
from mvstack.sources.fetch import site_mirrors
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SourceSpec, known_sources
from mvstack.support.errors import InvalidInput, Problem, Refused, SourceError, relative
from mvstack.support.files import sha256_of
from mvstack.support.words import listed, nearest
from versions.elsewhere import Elsewhere, current, order, spack_name

_PAIR = re.compile(r"""\(\s*['"]([^'"]+)['"],\s*['"]([^'"]+)['"]""")  # a dependency


class _Stays(Refused):
    """A row stays as it is, and others may change."""


@dataclass
class Bump:
    """A package of ``release`` to another version; ``sha256`` and ``why`` as a person gives them.

    ``files`` has the new text of each file (None: it goes), ``made_from`` the file before it.
    """

    release: Release
    there: Elsewhere
    version: str
    sha256: str = ""
    why: str = ""
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
            if text is not None:
                old = self.made_from.get(path, path)
                was, now = old.read_text("utf-8").splitlines(), text.splitlines()
                names = relative(old), relative(path)
                yield from difflib.unified_diff(was, now, *names, n=1, lineterm="")

    def plan(self, name: str, top: Path) -> None:
        """Find what changes below ``top``. Raises InvalidInput, Refused, SourceError."""
        rows = [x for x in self.release.packages if _place(x)[0].is_relative_to(top.resolve())]
        same = [one for one in rows if one.name.lower() == name.lower()]
        if not same:
            names = dict.fromkeys(one.name for one in rows)
            what = f"release {self.release.name} has no package {name}"
            todo = "name one of these; an MPI's versions are changed by hand, with their easyblock"
            close = nearest(name, names)
            raise InvalidInput(what, str(top), allowed=listed(names), nearest=close, todo=todo)
        left: list[Problem] = []
        # from the last, so that rows which are still to be changed stay where they are
        for row in sorted(current(same), key=_place, reverse=True):
            try:
                self._row(row)
            except _Stays as error:
                left += error.problems
        if not self.files:
            raise Refused(*left, outcome="Nothing was changed.")
        self.said += [f"{one.where}: stays, {one.message}" for one in left]

    def _row(self, row: Package) -> None:
        version, who, recipe = self.version, list[str](), spack_name(row.name, self.release)
        if "spack" in row.builders:
            known = self.there.spack(recipe).hashes
            own = next((one for one in known if order(one) == order(version)), "")
            if known and not own:
                what = f"Spack's recipe of {recipe} has no version {version}"
                todo = "add it to a recipe in spack-repo/, or give each builder a row (`where`)"
                kind = Refused if row.by_easyconfig else _Stays  # half a row cannot stay behind
                raise kind(what, row.at(), allowed=listed(known), todo=todo)
            if not own:
                self.by_hand.append(f"Spack's recipe of {recipe} was not read: has it {version}?")
            who = [f"Spack's {recipe} recipe"] * bool(own)
            version = version if row.by_easyconfig else own or version  # as it is spelled there
        if row.version == version:
            todo = f"`mvstack outdated {row.name}` says which are newer"
            raise _Stays(f"it is at {version} already", row.at(), todo=todo)
        if row.by_easyconfig:
            who = self._easyconfig(row, version)
        path, line = _place(row)
        yaml = YAML()
        yaml.preserve_quotes, yaml.width = True, 4096
        data = yaml.load(self.text(path))
        item = next(one for one in data["packages"] if one.lc.line + 1 == line)
        yaml.indent(mapping=2, sequence=item.lc.col, offset=item.lc.col - 2)
        for key in {"module", "spack"} & {*item}:  # where a site writes them out
            was = rf"(@=|/){re.escape(row.version)}(?![\w.])"
            item[key] = re.sub(was, rf"\g<1>{version}", item[key])
        if "source" not in item:  # before `why`, behind which the next row's comments may stand
            item.insert([*item].index("why") if "why" in item else len(item), "source", "")
        told = {"version": version, "source": "; ".join(who), "why": self.why}
        item |= {key: value for key, value in told.items() if value}
        old = [key for key, value in item.items() if _names(row.version, str(value))]
        self.by_hand += [f"{row.at()}: why: {row.why}"] * (not self.why)
        self.by_hand += [f"{row.at()}: {one} names {row.version}" for one in old if one != "why"]
        yaml.dump(data, made := io.StringIO())
        self.files[path] = made.getvalue()

    def _easyconfig(self, row: Package, version: str) -> list[str]:
        """Make the new easyconfig from the present one; who says its hashes."""
        name, was = easyconfigs.by_hand(row, self.release.name), re.escape(row.version)
        old = easyconfigs.index()[name]
        if row.name in easyconfigs.LIBRARIES or "system" in old.parts:
            raise _Stays("EasyBuild takes it from the distribution, in its version", row.at())
        path = old.with_name(name.replace(f"-{row.version}-", f"-{version}-", 1))
        text = old.read_text("utf-8")
        # the version, and the names of files that are keys of `checksums`
        for place in (
            rf"(?m)(^version\s*=\s*['\"]){was}(['\"])",
            rf"(['\"][^'\"\n]*){was}(.*?['\"]:)",
        ):
            text = re.sub(place, rf"\g<1>{version}\g<2>", text)
        who: dict[str, None] = {}
        with tempfile.TemporaryDirectory(prefix="mvstack-bump-") as folder:
            (draft := Path(folder) / path.name).write_text(text, "utf-8")
            both = (specs_from_easyconfigs([one], {}) for one in (old, draft))
            pairs = [*zip(*both, strict=True)]
        changed = [
            one for one in pairs if _files(one[0]) != _files(one[1]) or one[0].urls != one[1].urls
        ]
        if not changed:
            self.by_hand.append(f"{relative(path)}: its sources are still those of {row.version}")
        for before, now in changed:
            hashes, own = self._hash(now, before, spack_name(row.name, self.release))
            who |= dict.fromkeys(own)
            self.said.append(f"{now.filename}: sha256 {listed(hashes)}, by {listed(own)}")
            text = with_hashes(text, before.hashes, hashes)
            if before.filename in known_sources():
                more = f"environments/policy/sources.yaml has a row for {before.filename}"
                self.by_hand.append(f"{more}, and none for {now.filename}")
        if who:
            text = re.sub(r"(?m)(?:^#.*\n)+(?=checksums\s*=)", f"# as in {listed(who)}\n", text)
        self.files[path], self.made_from[path] = text, old
        goes: dict[Path, None] = {old: None}
        for patch in re.findall(r"""['"]([^'"]+\.patch)['"]""", text):
            self.by_hand.append(f"{relative(path)}: does the patch {patch} still apply?")
            names = (patch.replace("%(version)s", one) for one in (row.version, version))
            this, new = map(old.with_name, names)
            if this != new and this.is_file():
                self.files[new], self.made_from[new] = this.read_text("utf-8"), this
                goes[this] = None
        self._ask(row.name, row.version, path)
        others = [one for one in self.release.packages if one.by_easyconfig and one is not row]
        if all(easyconfigs.by_hand(one, self.release.name) != name for one in others):
            self.files |= goes
            pair = rf"(\(\s*['\"]{re.escape(row.name)}['\"],\s*['\"]){was}(?=['\"])"
            for other in easyconfigs.index().values():
                now = self.text(other) if self.files.get(other, "") is not None else ""
                if (above := re.sub(pair, rf"\g<1>{version}", now)) != now:
                    self.files[other] = above
                    what = f"{relative(other)} needs it: does it build with {version}?"
                    self.by_hand.append(what)
        return [*who]

    def _ask(self, name: str, before: str, path: Path) -> None:
        """Say what of a new easyconfig a person has to look at."""
        text, where = self.text(path), relative(path)
        lines = [(n, x.strip()) for n, x in enumerate(text.splitlines(), 1) if _names(before, x)]
        self.by_hand += [f"{where}:{number}: {line}" for number, line in lines]
        self.by_hand += [f"{where}: commits that are cloned with git"] * ("git_config" in text)
        for other in self._stock(name)[:1]:
            its, own = other.read_text("utf-8"), dict(_PAIR.findall(text))
            pairs = [x for x in _PAIR.findall(its) if x[0] in easyconfigs.dependencies(its)]
            differ = [f"{x} {v}, here {own.get(x, 'none')}" for x, v in pairs if own.get(x) != v]
            self.by_hand += [f"{other.name} depends on {'; '.join(differ)}"] * bool(differ)

    def _stock(self, name: str) -> list[Path]:
        """Stock EasyBuild's easyconfigs of the new version, the plainest first."""
        found = self.there.easybuild(name).items()
        same = [path for path, version in found if order(version) == order(self.version)]
        return sorted(same, key=lambda path: len(path.name))

    def _hash(
        self, now: SourceSpec, before: SourceSpec, recipe: str
    ) -> tuple[list[str], list[str]]:
        """The SHA-256 of a new source, and who says so. Raises SourceError where two disagree."""
        found: dict[str, set[str]] = {}
        for path in self._stock(now.software):
            with contextlib.suppress(InvalidInput):  # without a SHA-256 it knows none
                for one in specs_from_easyconfigs([path], {}):
                    if _files(one) & _files(now) and {*one.hashes} not in found.values():
                        found[f"EasyBuild's {path.name}"] = {*one.hashes}
        spack = self.there.spack(recipe)
        known = {order(one): sha256 for one, sha256 in spack.hashes.items() if sha256}
        then, sha256 = known.get(order(before.version)), known.get(order(now.version))
        # it may be of another file of the release: it is not where the hash of before is ours
        same = {re.sub(r"[\d._-]+", "#", one) for one in _files(now)}
        like = re.sub(r"[\d._-]+", "#", spack.url.rpartition("/")[2]) in same
        if sha256 and (then in before.hashes if then else like):
            found[f"Spack's {recipe} recipe"] = {sha256}
        if self.sha256:
            found["--sha256"] = {self.sha256}
        if not found:
            sha256, place = _downloaded(now)
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


def _place(row: Package) -> tuple[Path, int]:
    path, _, line = row.at().rpartition(":")
    return Path(path).resolve(), int(line)


def _names(version: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(version)}(?![\w.])", text))


def _files(spec: SourceSpec) -> set[str]:
    """What a source may be called."""
    return {spec.filename, *(one.rpartition("/")[2] for one in spec.urls)}


def _downloaded(spec: SourceSpec) -> tuple[str, str]:
    """The SHA-256 of a source that no recipe knows, and from where. Raises SourceError."""
    tried = []
    with tempfile.TemporaryDirectory(prefix="mvstack-bump-") as folder:
        file = Path(folder) / "file"
        for place in [*(f"{x.rstrip('/')}/{spec.filename}" for x in site_mirrors()), *spec.urls]:
            try:
                bring(place, file)
            except NotHere as why:
                tried.append(str(why))
            else:
                return sha256_of(file), place
    what = f"nobody knows a hash of {spec.filename}, and it cannot be downloaded"
    todo = "give upstream's hash with --sha256, or in MVSTACK_MIRRORS a mirror that has the file"
    found = "; ".join(tried) or "its easyconfig names no place"
    raise SourceError(what, found=found, todo=todo, outcome="Nothing was changed.")


def with_hashes(text: str, old: Iterable[str], new: list[str]) -> str:
    """An easyconfig's ``text`` with the hashes ``new`` where it gives ``old``, one or a tuple."""
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
