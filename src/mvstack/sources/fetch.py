"""Bring a source into the mirror from the first place that has the right bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.sources import pypi
from mvstack.sources.accepted import Accepted, accepted_file, accepted_for
from mvstack.sources.debian import DebianArchive
from mvstack.sources.download import NotHere, answers, download
from mvstack.sources.files import copied, extension, sha256_of
from mvstack.sources.hosts import SilentHosts
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Entry, Store
from mvstack.support.errors import Problem, SourceError


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
        return {
            "file": self.file,
            "sha256": self.sha256,
            "place": self.place,
            "upstream": self.upstream,
            "note": self.note,
        }


def site_mirrors(more: Sequence[str] = ()) -> list[str]:
    """The mirrors to ask: ``more``, then those of MVSTACK_MIRRORS (separated by white space)."""
    return list(dict.fromkeys([*more, *os.environ.get("MVSTACK_MIRRORS", "").split()]))


class Fetcher:
    """Fetches into ``store``; one per command, so that a silent host is waited for once.

    ``mirrors`` are folders or URLs. ``on_progress`` gets the file's name, the bytes so far and
    the bytes in all (0 when the place does not say).
    """

    def __init__(
        self,
        store: Store,
        mirrors: list[str],
        state_dir: Path,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.store, self.mirrors = store, mirrors
        self.hosts = SilentHosts(state_dir)
        self.debian = DebianArchive(state_dir, self.hosts)
        self.on_progress = on_progress

    def fetch(self, spec: SourceSpec) -> Fetched:
        """The source of ``spec``, from the mirror or brought into it.

        Raises SourceError: no place has it (each is named with what it said), upstream's bytes
        have changed, the file in the mirror is damaged, or it is licensed.
        """
        if found := self.in_mirror(spec):
            return found
        tried: list[str] = []
        steps = [self._site_mirrors]
        if not spec.licence_page:
            steps += [self._upstream, self._debian, self._pypi]
        for ask in steps:
            if found := ask(spec, tried):
                return replace(found, passed_over=tuple(dict.fromkeys(tried)))
        if spec.licence_page:
            raise _licensed(spec)
        raise SourceError(
            Problem(
                f"{spec.filename} cannot be had",
                f"{spec.name} ({spec.recipe})",
                found="; ".join(dict.fromkeys(tried)) or "its recipe names no place",
                allowed=spec.wanted,
                todo=f"get the file and add it: mvstack sources add FILE --as {spec.name}; "
                "or name a site's mirror in MVSTACK_MIRRORS",
            ),
            outcome="Nothing half-written was kept.",
        )

    def available(self, spec: SourceSpec, ask_debian: bool = False) -> bool:
        """Whether ``spec`` could be fetched now, asked in a few seconds and without its bytes.

        What PyPI carries counts as available: only fetching asks it. So does what Debian's archive
        carries, unless ``ask_debian``: an archive may list what its mirror does not have.
        """
        if self.in_mirror(spec):
            return True
        if spec.licence_page:
            urls: tuple[str, ...] = ()
        elif spec.pypi or (spec.debian and not ask_debian):
            return True
        elif spec.debian:
            urls = (*spec.urls, *self.debian.pool(spec.debian))
        else:
            urls = spec.urls
        places = [place for mirror in self.mirrors for place in _places(mirror, spec)]
        return any(
            answers(place, self.hosts) if _is_url(place) else Path(place).is_file()
            for place in [*places, *urls]
        )

    def in_mirror(self, spec: SourceSpec) -> Fetched | None:
        """The source as the mirror has it, hashed again; what the user accepted comes first.

        Raises SourceError when the mirror's file is damaged, or accepted bytes are gone.
        """
        accepted = accepted_for(spec.software, spec.version, spec.filename)
        if accepted:
            return self._accepted(spec, accepted)
        for sha256 in spec.hashes:
            if path := self.store.get(sha256):
                self._undamaged(path, sha256)
                entry = self.store.entry(sha256, spec.name)
                first = f" ({entry.place})" if entry else ""
                return self._fetched(spec, path, sha256, "mirror" + first)
        return None

    def link_easybuild(self, spec: SourceSpec, fetched: Fetched) -> Path:
        """Make ``fetched`` known to EasyBuild under the name that its easyconfig uses."""
        return self.store.link_easybuild(spec.software, spec.filename, fetched.sha256)

    # --- places, in order; each appends to `tried` why it has nothing --------------------------

    def _site_mirrors(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        for mirror in self.mirrors:
            for place in _places(mirror, spec):
                if found := self._copy(spec, place, f"site mirror {place}", tried):
                    return found
        return None

    def _upstream(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        for url in spec.urls:
            try:
                return self._bring(spec, url, f"upstream {url}")
            except NotHere as why:
                tried.append(str(why))
        return None

    def _debian(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        if not spec.debian:
            return None
        if self.debian.lacking():  # no Debian here: the hash proves the file as well as apt does
            for url in self.debian.pool(spec.debian):
                if found := self._copy(spec, url, f"Debian source archive, {url}", tried):
                    return found
            return None
        with self.store.incoming() as folder:
            try:
                file, place = self.debian.fetch(
                    spec.debian, spec.hashes, folder, self._advance(spec)
                )
            except NotHere as why:
                tried.append(str(why))
                return None
            return self._keep(spec, file, sha256_of(file), place)

    def _pypi(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        if not spec.pypi:
            return None
        with self.store.incoming() as folder:
            try:
                file = pypi.fetch(
                    spec.pypi, spec.filename, spec.hashes, folder, self.hosts, self._advance(spec)
                )
            except NotHere as why:
                tried.append(str(why))
                return None
            return self._keep(spec, file, sha256_of(file), f"{pypi.PLACE}, {spec.pypi}")

    def _copy(self, spec: SourceSpec, place: str, said: str, tried: list[str]) -> Fetched | None:
        """Bring ``place``, a copy that is not upstream's own, or note why it cannot be had.

        Other bytes there are not upstream's doing: the places after it are asked.
        """
        try:
            return self._bring(spec, place, said)
        except NotHere as why:
            tried.append(str(why))
        except SourceError as error:
            if error.outcome != _OTHER:
                raise
            tried.append(f"{place}: other bytes, {error.problems[0].found}")
        return None

    def _bring(self, spec: SourceSpec, place: str, said: str) -> Fetched:
        """Bring ``place`` (a URL or a file) into the mirror. Raises NotHere, SourceError."""
        with self.store.incoming() as folder:
            file = folder / "file"
            if _is_url(place):
                sha256 = download(place, file, self.hosts, self._advance(spec))
            else:
                sha256 = _read(Path(place.removeprefix("file://")), file)
            return self._keep(spec, file, sha256, said)

    def _keep(self, spec: SourceSpec, file: Path, sha256: str, place: str) -> Fetched:
        """Put an incoming file into the mirror if its bytes are listed; SourceError otherwise."""
        if sha256 not in spec.hashes:
            raise _other_bytes(spec, sha256, place)
        size = file.stat().st_size
        entry = Entry(sha256, spec.filename, spec.name, size, place, spec.note(sha256))
        return self._fetched(spec, self.store.take(file, entry), sha256, place)

    def _accepted(self, spec: SourceSpec, accepted: Accepted) -> Fetched:
        path = self.store.get(accepted.sha256)
        if path is None:
            raise SourceError(
                Problem(
                    "other bytes than upstream's were accepted and are not in this mirror",
                    f"{spec.name} ({accepted_file()})",
                    found=f"sha256 {accepted.sha256}, {accepted.reason}",
                    todo=f"add them here: mvstack sources add FILE --as {spec.name} --accept-hash "
                    f"{accepted.sha256} --reason TEXT; or take upstream's: mvstack sources forget "
                    f"{spec.name}",
                )
            )
        self._undamaged(path, accepted.sha256)
        return Fetched(
            path,
            spec.filename,
            accepted.sha256,
            "mirror (added by hand)",
            accepted.sha256 in spec.whose and spec.upstream(accepted.sha256),
            f"not upstream's bytes: {accepted.reason}",
        )

    def _undamaged(self, path: Path, sha256: str) -> None:
        try:
            found = sha256_of(path)
        except OSError as error:
            found = f"it cannot be read: {error.strerror}"
        if found != sha256:
            raise SourceError(
                Problem(
                    "a file of the mirror is damaged",
                    str(path),
                    found=f"sha256 {found}",
                    allowed=f"sha256 {sha256}",
                    todo="mvstack sources verify --remove-damaged, then the same command again",
                )
            )

    def _fetched(self, spec: SourceSpec, path: Path, sha256: str, place: str) -> Fetched:
        return Fetched(path, spec.filename, sha256, place, spec.upstream(sha256), spec.note(sha256))

    def _advance(self, spec: SourceSpec) -> Callable[[int, int], None]:
        def advance(done: int, total: int) -> None:
            if self.on_progress:
                self.on_progress(spec.filename, done, total)

        return advance


_OTHER = "Nothing was kept."


def _is_url(place: str) -> bool:
    return "://" in place and not place.startswith("file://")


def _places(mirror: str, spec: SourceSpec) -> list[str]:
    """Where ``mirror`` may have the file: by content as Spack does it, as EasyBuild does, by name.

    Of a folder only what is there.
    """
    base = mirror.removeprefix("file://").rstrip("/")
    ext = extension(spec.filename)
    dotted = f".{ext}" if ext else ""
    letter = spec.software[0].lower()
    places = [
        *(f"{base}/_source-cache/archive/{one[:2]}/{one}{dotted}" for one in spec.hashes),
        f"{base}/{letter}/{spec.software}/{spec.filename}",
        f"{base}/{spec.filename}",
    ]
    return places if _is_url(mirror) else [place for place in places if Path(place).is_file()]


def _read(place: Path, target: Path) -> str:
    try:
        with place.open("rb") as source, target.open("wb") as stream:
            return copied(source, stream)
    except OSError as error:
        if error.filename and str(error.filename) == str(place):
            raise NotHere(f"{place}: {error.strerror}") from None
        raise


def _other_bytes(spec: SourceSpec, sha256: str, place: str) -> SourceError:
    """Stop at other bytes than the recipe lists: upstream tarballs do change in place."""
    why = spec.refused.get(sha256, "")
    return SourceError(
        Problem(
            f"{spec.filename} does not have the hash that its recipe lists",
            f"{spec.name} ({spec.recipe})",
            found=f"sha256 {sha256}" + (f" ({why})" if why else "") + f" from {place}",
            allowed=spec.wanted,
            because=why or "the file was replaced there, or damaged on its way",
            todo="look at what changed before trusting it; for these bytes on purpose: mvstack "
            f"sources add FILE --as {spec.name} --accept-hash {sha256} --reason TEXT",
        ),
        outcome=_OTHER,
    )


def _licensed(spec: SourceSpec) -> SourceError:
    return SourceError(
        Problem(
            f"{spec.filename} is licensed and is never fetched",
            f"{spec.name} ({spec.recipe})",
            allowed=spec.wanted,
            todo=f"get it from {spec.licence_page}, then: mvstack sources add {spec.filename} "
            f"--as {spec.name}",
        )
    )
