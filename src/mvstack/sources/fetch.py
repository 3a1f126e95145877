"""Bring a source into the mirror from the first place that has the right bytes."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mvstack.sources import archives, repositories
from mvstack.sources.accepted import Accepted, accepted_file, accepted_for
from mvstack.sources.download import NotHere, bring, has, is_url, local
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import ASK_OWNER, Entry, Store, below, damage
from mvstack.support.errors import SourceError
from mvstack.support.files import sha256_of


@dataclass(frozen=True)
class Fetched:
    """A source in the mirror: its path, hash, where it came from, and whose bytes it holds.

    ``passed_over`` are the places that were asked before and had nothing, each with the reason.
    """

    path: Path
    file: str
    sha256: str
    place: str
    upstream: bool
    note: str = ""
    passed_over: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What records and the report keep."""
        names = ("file", "sha256", "place", "upstream", "note")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class _Place:
    """One place to ask: a URL, a file, or PyPI; ``said`` is what it is called in messages."""

    where: str
    said: str
    upstream: bool = False
    git: bool = False


class _OtherBytes(SourceError):
    """A place has the file, with bytes that the recipe does not list."""


def site_mirrors(more: Sequence[str] = ()) -> list[str]:
    """The mirrors to ask: ``more``, then those of MVSTACK_MIRRORS (separated by white space)."""
    return list(dict.fromkeys([*more, *os.environ.get("MVSTACK_MIRRORS", "").split()]))


class Fetcher:
    """Fetches into ``store``.

    ``mirrors`` are folders or URLs. ``on_progress`` gets the file's name, the bytes so far and
    the bytes in all (0 when the place does not say).
    """

    def __init__(
        self,
        store: Store,
        mirrors: list[str],
        on_progress: Callable[[str, int, int], object] = lambda *_: None,
    ) -> None:
        self.store, self.mirrors, self.on_progress = store, mirrors, on_progress

    @cached_property
    def debian_archives(self) -> list[str]:
        """The Debian source archives to ask; looked up when a source is first asked of them."""
        return archives.debian_archives()

    def fetch(self, spec: SourceSpec) -> Fetched:
        """The source of ``spec``, from the mirror or brought into it.

        Raises SourceError: no place has it (each is named with what it said), upstream's bytes
        have changed, the file in the mirror is damaged, or it is licensed.
        """
        if found := self.in_mirror(spec):
            return found
        tried: dict[str, None] = {}
        for place in self._places(spec):
            try:
                return replace(self._bring(spec, place), passed_over=tuple(tried))
            except NotHere as why:
                tried[str(why)] = None
            except _OtherBytes as error:
                if place.upstream:  # a changed tarball is not papered over by another place
                    raise
                tried[f"{place.where}: other bytes, {error.problems[0].found}"] = None
        where = f"{spec.name} ({spec.recipe})"
        if page := spec.known.licence_page:
            todo = f"get it from {page}, then: mvstack sources add {spec.filename} "
            what = f"{spec.filename} is licensed and is never fetched"
            todo = f"{todo}--as {spec.name}"
            raise SourceError(what, where, found="; ".join(tried), allowed=spec.wanted, todo=todo)
        also = ""
        if spec.known.debian and not self.debian_archives:
            tried[archives.UNKNOWN] = None
            also = (
                f", or the URL of a Debian archive (what stands before /pool) in {archives.SETTING}"
            )
        raise SourceError(
            f"{spec.filename} cannot be fetched",
            where,
            found="; ".join(tried) or "its recipe names no place",
            allowed=spec.wanted,
            todo=f"get the file and add it: mvstack sources add FILE --as {spec.name}; "
            f"or name a site's mirror in MVSTACK_MIRRORS{also}",
            outcome="Nothing half-written was kept.",
        )

    def available(self, spec: SourceSpec, ask_debian: bool = False) -> bool:
        """Whether ``spec`` could be fetched now, asked in a few seconds and without its bytes.

        What PyPI carries counts as available: only fetching asks it. So does what Debian's archive
        carries, unless ``ask_debian``: a mirror may lack what others have.
        """
        if accepted := accepted_for(spec.software, spec.version, spec.filename):
            return self.store.get(accepted.sha256) is not None  # no place but this mirror has them
        if self.in_mirror(spec):
            return True
        unasked = spec.known.pypi or (spec.known.debian and not ask_debian)
        if unasked and not spec.known.licence_page:
            return True
        asked = {False: has, True: repositories.answers}
        return any(asked[place.git](place.where) for place in self._places(spec))

    def in_mirror(self, spec: SourceSpec) -> Fetched | None:
        """The mirror's file, hashed again; accepted bytes come first. Raises SourceError."""
        if accepted := accepted_for(spec.software, spec.version, spec.filename):
            return self._accepted(spec, accepted)
        for sha256 in spec.hashes:
            if path := self._whole(sha256):
                entry = self.store.entry(sha256, spec.name)
                first = f" ({entry.place})" if entry else ""
                return _fetched(spec, path, sha256, "mirror" + first)
        return None

    def _whole(self, sha256: str) -> Path | None:
        """The mirror's file with that hash, hashed again. Raises SourceError if it is of no use."""
        path = self.store.get(sha256)
        try:
            found = damage(path, sha256) if path else ""
        except PermissionError:
            what = "you may not read this file of the mirror"
            raise SourceError(what, str(path), todo=ASK_OWNER) from None
        if found:
            raise SourceError(
                "a file of the mirror is damaged",
                str(path),
                found=found,
                allowed=f"sha256 {sha256}",
                todo="mvstack sources verify --remove-damaged, then the same command again",
            )
        return path

    def link_easybuild(self, spec: SourceSpec, fetched: Fetched) -> Path:
        """Make ``fetched`` known to EasyBuild under the name that its easyconfig uses."""
        return self.store.link_easybuild(spec.software, spec.filename, fetched.sha256)

    def _places(self, spec: SourceSpec) -> Iterator[_Place]:
        """The places to ask, in order. A licensed source is asked of the site's mirrors alone."""
        for mirror in self.mirrors:
            for where in _in_mirror(mirror, spec):
                yield _Place(where, f"site mirror {where}")
        if spec.known.licence_page:
            return
        for url in spec.urls:
            yield _Place(url, f"upstream {url}", upstream=True)
        if url := repositories.repository(spec):
            yield _Place(url, f"upstream's repository {url}", upstream=True, git=True)
        if spec.known.debian:
            for archive in self.debian_archives:
                where = archives.place_in(archive, spec.known.debian)
                yield _Place(where, f"Debian source archive, {where}")
        if spec.known.pypi:
            yield _Place(archives.PYPI, f"{archives.PYPI}, {spec.known.pypi}")

    def _bring(self, spec: SourceSpec, place: _Place) -> Fetched:
        """Bring the file into the mirror if its bytes are listed. Raises NotHere, SourceError."""
        with self.store.incoming() as folder:
            file = folder / "file"
            if place.where == archives.PYPI:
                file = archives.by_pip(spec, folder)
            elif place.git:
                file = repositories.packed(spec, folder)
            else:
                advance = partial(self.on_progress, spec.filename)
                bring(place.where, file, advance)
            if (sha256 := sha256_of(file)) not in spec.hashes:
                raise _other_bytes(spec, sha256, place.said)
            note, size = spec.note(sha256), file.stat().st_size
            entry = Entry(sha256, spec.filename, spec.name, size, place.said, note)
            return _fetched(spec, self.store.take(file, entry), sha256, place.said)

    def _accepted(self, spec: SourceSpec, accepted: Accepted) -> Fetched:
        sha256 = accepted.sha256
        path = self._whole(sha256)
        if path is None:
            raise SourceError(
                "other bytes than upstream's were accepted and are not in this mirror",
                f"{spec.name} ({accepted_file()})",
                found=f"sha256 {sha256}, {accepted.reason}",
                todo=f"add them here: mvstack sources add FILE --as {spec.name} --accept-hash "
                f"{sha256} --reason TEXT; or take upstream's: mvstack sources forget "
                f"{spec.name}",
            )
        whose = sha256 in spec.known.hashes and spec.upstream(sha256)
        note = f"not upstream's bytes: {accepted.reason}"
        return Fetched(path, spec.filename, sha256, "mirror (added by hand)", whose, note)


def _fetched(spec: SourceSpec, path: Path, sha256: str, place: str) -> Fetched:
    return Fetched(path, spec.filename, sha256, place, spec.upstream(sha256), spec.note(sha256))


def _in_mirror(mirror: str, spec: SourceSpec) -> list[str]:
    """Where ``mirror`` may have the file: by content as Spack does, as EasyBuild does, by name."""
    base = (mirror if is_url(mirror) else str(local(mirror))).rstrip("/")
    places = [
        *(f"{base}/{below(one, spec.filename)}" for one in spec.hashes),
        f"{base}/{spec.software[0].lower()}/{spec.software}/{spec.filename}",
        f"{base}/{spec.filename}",
    ]
    if is_url(mirror):
        return places
    # what cannot be reached, or has none of them, is asked once, and says why it has not
    return [place for place in places if os.path.lexists(place)] or places[-1:]


def _other_bytes(spec: SourceSpec, sha256: str, place: str) -> _OtherBytes:
    found, why = spec.refusal(sha256)
    return _OtherBytes(
        f"{spec.filename} does not have the hash that its recipe lists",
        f"{spec.name} ({spec.recipe})",
        found=f"{found} from {place}",
        allowed=spec.wanted,
        because=why or "the file was replaced there, or damaged on its way",
        todo="look at what changed before trusting it; for these bytes on purpose: mvstack "
        f"sources add FILE --as {spec.name} --accept-hash {sha256} --reason TEXT",
        outcome="Nothing was kept.",
    )
