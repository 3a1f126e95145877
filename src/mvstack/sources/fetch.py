"""Bring a source into the mirror from the first place that has the right bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.errors import Problem, SourceError
from mvstack.sources.accepted import accepted_for
from mvstack.sources.hosts import SilentHosts
from mvstack.sources.places import (
    Advance,
    NotHere,
    answers,
    download,
    from_debian,
    from_pypi,
    scratch,
)
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Entry, Store, extension, sha256_of


@dataclass(frozen=True)
class Fetched:
    """A source in the mirror: its path, hash, where it came from, and whose bytes it holds."""

    path: Path
    file: str
    sha256: str
    place: str
    upstream: bool
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What records and the report keep."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            "place": self.place,
            "upstream": self.upstream,
            "note": self.note,
        }


def site_mirrors() -> list[str]:
    """The mirrors in MVSTACK_MIRRORS: folders or URLs, separated by spaces."""
    return os.environ.get("MVSTACK_MIRRORS", "").split()


class Fetcher:
    """Fetches into ``store``; one per command, so that a silent host is waited for once."""

    def __init__(
        self,
        store: Store,
        mirrors: list[str],
        state_dir: Path,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.store, self.mirrors = store, mirrors
        self.hosts = SilentHosts(state_dir)
        self.on_progress = on_progress

    def fetch(self, spec: SourceSpec) -> Fetched:
        """The source of ``spec``, from the mirror or brought into it.

        Raises SourceError naming every place that was asked and what it said.
        """
        if found := self.in_mirror(spec):
            return found
        if spec.licence_page:
            raise self._licensed(spec)
        tried: list[str] = []
        for ask in (self._site_mirrors, self._upstream, self._debian, self._pypi):
            found = ask(spec, tried)
            if found:
                return found
        raise SourceError(
            Problem(
                f"{spec.filename} cannot be had",
                f"{spec.name} ({spec.recipe})",
                found="; ".join(tried) or "its recipe names no place",
                allowed="sha256 " + " or ".join(self._wanted(spec)),
                todo=f"put the file into the mirror: mvstack sources add FILE --as {spec.name}; "
                "or name a site's mirror in MVSTACK_MIRRORS",
            ),
            outcome="Nothing half-written was kept.",
        )

    def available(self, spec: SourceSpec) -> bool:
        """Whether ``spec`` is in the mirror, or a mirror or upstream answers for it now.

        What Debian's archive or PyPI carries counts as available: fetching asks them.
        """
        if spec.debian or spec.pypi or self.in_mirror(spec):
            return True
        places = [url for mirror in self.mirrors for url in self._mirror_urls(mirror, spec)]
        return any(
            answers(url, self.hosts) if "://" in url else Path(url).is_file()
            for url in [*places, *spec.urls]
        )

    def in_mirror(self, spec: SourceSpec) -> Fetched | None:
        """The source as the mirror has it; what the user accepted comes first."""
        accepted = accepted_for(spec.software, spec.version)
        if accepted and accepted.filename == spec.filename and spec.hashes:
            path = self.store.get(accepted.sha256)
            if path:
                return Fetched(
                    path,
                    spec.filename,
                    accepted.sha256,
                    "mirror",
                    False,
                    f"not upstream's bytes: {accepted.reason}",
                )
        for sha256 in spec.hashes:
            path = self.store.get(sha256)
            if path is None:
                continue
            entry = next((e for e in self.store.entries() if e.sha256 == sha256), None)
            if sha256_of(path) != sha256:
                raise SourceError(
                    Problem(
                        "a file of the mirror is damaged",
                        str(path),
                        found=sha256_of(path),
                        allowed=sha256,
                        todo="mvstack sources verify --remove-damaged, then again",
                    )
                )
            place = f"mirror, first from {entry.place}" if entry else "mirror"
            return self._fetched(spec, path, sha256, place)
        return None

    def link_easybuild(self, spec: SourceSpec, fetched: Fetched) -> Path:
        """Make ``fetched`` known to EasyBuild under the name that its easyconfig uses."""
        return self.store.link_easybuild(spec.software, spec.filename, fetched.sha256)

    # --- places, in order; each appends to `tried` why it has nothing --------------------------

    def _site_mirrors(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        for mirror in self.mirrors:
            for url in self._mirror_urls(mirror, spec):
                if "://" in url:
                    found = self._http(spec, url, f"mirror {mirror}", tried)
                else:
                    found = self._file(spec, Path(url), f"mirror {mirror}", tried)
                if found:
                    return found
        return None

    def _upstream(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        for url in spec.urls:
            if "://" in url and (found := self._http(spec, url, url, tried)):
                return found
        return None

    def _debian(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        if not spec.debian:
            return None
        with scratch(self.store.root) as folder:
            try:
                path = from_debian(spec.debian, Path(folder))
            except NotHere as why:
                tried.append(str(why))
                return None
            return self._file(spec, path, f"Debian source archive ({spec.debian})", tried)

    def _pypi(self, spec: SourceSpec, tried: list[str]) -> Fetched | None:
        if not spec.pypi:
            return None
        with scratch(self.store.root) as folder:
            try:
                path = from_pypi(spec.pypi, spec.filename, Path(folder))
            except NotHere as why:
                tried.append(str(why))
                return None
            return self._file(spec, path, f"PyPI ({spec.pypi})", tried)

    def _http(self, spec: SourceSpec, url: str, place: str, tried: list[str]) -> Fetched | None:
        with self.store.incoming() as (stream, temporary):
            try:
                sha256 = download(url, stream, self.hosts, self._advance(spec))
            except NotHere as why:
                if str(why) not in tried:
                    tried.append(str(why))
                return None
            stream.flush()
            self._check(spec, sha256, url)
            return self._keep(spec, temporary, sha256, place)

    def _file(self, spec: SourceSpec, path: Path, place: str, tried: list[str]) -> Fetched | None:
        if not path.is_file():
            tried.append(f"{path}: no such file")
            return None
        sha256 = sha256_of(path)
        self._check(spec, sha256, place)
        entry = Entry(sha256, spec.filename, spec.name, path.stat().st_size, place)
        return self._fetched(spec, self.store.add(path, entry), sha256, place)

    def _keep(self, spec: SourceSpec, temporary: Path, sha256: str, place: str) -> Fetched:
        entry = Entry(sha256, spec.filename, spec.name, temporary.stat().st_size, place)
        return self._fetched(spec, self.store.take(temporary, entry), sha256, place)

    def _fetched(self, spec: SourceSpec, path: Path, sha256: str, place: str) -> Fetched:
        note = spec.notes.get(sha256, "")
        return Fetched(path, spec.filename, sha256, place, spec.upstream(sha256), note)

    def _advance(self, spec: SourceSpec) -> Advance:
        def advance(done: int, total: int) -> None:
            if self.on_progress:
                self.on_progress(spec.filename, done, total)

        return advance

    def _mirror_urls(self, mirror: str, spec: SourceSpec) -> list[str]:
        """Content-addressed first, as Spack does it; then by name."""
        ext = extension(spec.filename)
        base = mirror.rstrip("/").removeprefix("file://")
        by_hash = [
            f"{base}/_source-cache/archive/{one[:2]}/{one}.{ext}" for one in self._wanted(spec)
        ]
        letter = spec.software[0].lower()
        by_name = [
            f"{base}/easybuild/{letter}/{spec.software}/{spec.filename}",
            f"{base}/{spec.filename}",
        ]
        urls = [*by_hash, *by_name]
        return urls if "://" in base else [url for url in urls if Path(url).is_file()]

    def _wanted(self, spec: SourceSpec) -> list[str]:
        accepted = accepted_for(spec.software, spec.version)
        return [*([accepted.sha256] if accepted else []), *spec.hashes]

    def _check(self, spec: SourceSpec, sha256: str, place: str) -> None:
        """Stop at other bytes than the recipe lists: upstream tarballs do change in place."""
        if sha256 in spec.hashes:
            return
        why = spec.refused.get(sha256, "")
        raise SourceError(
            Problem(
                f"{spec.filename} does not have the hash that its recipe lists",
                place,
                found=f"sha256 {sha256}" + (f" ({why})" if why else ""),
                allowed="sha256 " + " or ".join(spec.hashes),
                because=why or "the file was changed, damaged or replaced on its way",
                todo="look at what changed before trusting it; bytes wanted on purpose: mvstack "
                f"sources add FILE --as {spec.name} --accept-hash {sha256} --reason TEXT",
            ),
            outcome="Nothing was kept.",
        )

    def _licensed(self, spec: SourceSpec) -> SourceError:
        return SourceError(
            Problem(
                f"{spec.filename} is licensed and never fetched",
                f"{spec.name} ({spec.recipe})",
                allowed="sha256 " + " or ".join(spec.hashes),
                todo=f"get it from {spec.licence_page}, then: mvstack sources add "
                f"{spec.filename} --as {spec.name}",
            )
        )
