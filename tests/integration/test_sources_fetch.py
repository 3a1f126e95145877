"""Sources over a real connection, and every way in which that fails."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from source_server import (
    Answer,
    Server,
    broken_chunks,
    closed_port,
    encoded,
    file,
    redirect,
    serving,
    silent_port,
    slowly,
    truncated,
)

from mvstack.sources import archives, download
from mvstack.sources.fetch import Fetcher, site_mirrors
from mvstack.sources.spec import Debian, Known, SourceSpec, Whose
from mvstack.sources.store import Entry, Store
from mvstack.support.errors import SourceError

DATA = gzip.compress(os.urandom(50_000), mtime=0)
OTHER = gzip.compress(b"changed in place", mtime=0)
HASH = hashlib.sha256(DATA).hexdigest()
NAME = "alpha-1.tar.gz"
CONTENT = f"/_source-cache/archive/{HASH[:2]}/{HASH}.tar.gz"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "root" / "sources")


def spec_for(*urls: str) -> SourceSpec:
    return SourceSpec("Alpha", "1", NAME, (HASH,), urls, recipe="Alpha-1.eb:9")


def fetcher(store: Store, *mirrors: str | Path) -> Fetcher:
    return Fetcher(store, [str(one) for one in mirrors])


def nothing_kept(store: Store) -> bool:
    return store.entries() == [] and not list(store.root.glob(".incoming*"))


def failed(store: Store, spec: SourceSpec, *mirrors: str | Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        fetcher(store, *mirrors).fetch(spec)
    assert nothing_kept(store)
    assert caught.value.problems[0].todo
    assert HASH in caught.value.problems[0].allowed
    return caught.value


# --- the order of the places ----------------------------------------------------------------------


def test_upstream_then_the_mirror(server: Server, store: Store) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    spec, seen = spec_for(f"{server.url}/{NAME}"), []
    bringing = fetcher(store)
    bringing.on_progress = lambda *row: seen.append(row)
    fetched = bringing.fetch(spec)
    assert fetched.path.read_bytes() == DATA
    assert fetched.as_dict() == {
        "file": NAME,
        "sha256": HASH,
        "place": f"upstream {server.url}/{NAME}",
        "upstream": True,
        "note": "",
    }
    assert seen[-1] == (NAME, len(DATA), len(DATA))
    again = fetcher(store).fetch(spec)
    assert again.place == f"mirror (upstream {server.url}/{NAME})"
    assert server.asked == [f"/{NAME}"], "what the mirror has is not asked for again"


def test_a_site_mirror_is_asked_by_content_and_then_by_name(server: Server, store: Store) -> None:
    server.pages[f"/m/{NAME}"] = file(DATA)
    fetched = fetcher(store, f"{server.url}/m/").fetch(spec_for(f"{server.url}/up/{NAME}"))
    assert fetched.place == f"site mirror {server.url}/m/{NAME}"
    assert server.asked == [f"/m{CONTENT}", f"/m/a/Alpha/{NAME}", f"/m/{NAME}"]


@pytest.mark.parametrize(
    "layout", [CONTENT, f"/a/Alpha/{NAME}", f"/{NAME}"], ids=["content", "name", "flat"]
)
@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_folder_is_a_site_mirror_too(
    tmp_path: Path, store: Store, layout: str, prefix: str
) -> None:
    place = tmp_path / "site" / layout.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_bytes(DATA)
    fetched = fetcher(store, f"{prefix}{tmp_path}/site").fetch(spec_for())
    assert fetched.path.read_bytes() == DATA


def test_another_store_is_a_site_mirror(tmp_path: Path, store: Store, server: Server) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    first = Store(tmp_path / "first")
    fetcher(first).fetch(spec_for(f"{server.url}/{NAME}"))
    assert fetcher(store, first.root).fetch(spec_for()).sha256 == HASH


def test_other_bytes_in_a_mirror_by_name_are_passed_over(
    tmp_path: Path, server: Server, store: Store
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / NAME).write_bytes(OTHER)
    server.pages[f"/{NAME}"] = file(DATA)
    fetched = fetcher(store, site).fetch(spec_for(f"{server.url}/{NAME}"))
    assert fetched.place.startswith("upstream")
    error = failed(Store(tmp_path / "empty"), spec_for(), site)
    assert hashlib.sha256(OTHER).hexdigest() in str(error)


def test_mirrors_from_the_environment_come_after_those_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MVSTACK_MIRRORS", " /b  https://c\n/a ")
    assert site_mirrors(["/a"]) == ["/a", "/b", "https://c"]


def test_the_second_url_of_a_recipe_is_asked(server: Server, store: Store) -> None:
    server.pages["/two"] = file(DATA)
    fetched = fetcher(store).fetch(spec_for(f"{server.url}/one", f"{server.url}/two"))
    assert fetched.passed_over == (f"{server.url}/one: HTTP 404 Not Found",)


def test_debians_archives_are_asked_in_order_and_the_hash_proves_the_file(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(archives.SETTING, f"{server.url}/one {server.url}/two/")
    wanted = Debian(package="libalpha", file="libalpha_1.orig.tar.gz")
    spec = replace(spec_for(), known=Known.model_construct(debian=wanted))
    server.pages["/one/pool/main/liba/libalpha/libalpha_1.orig.tar.gz"] = file(OTHER)
    server.pages["/two/pool/main/liba/libalpha/libalpha_1.orig.tar.gz"] = file(DATA)
    fetched = fetcher(store).fetch(spec)
    assert fetched.place.startswith(f"Debian source archive, {server.url}/two/pool")
    assert "other bytes" in fetched.passed_over[0]


def test_without_a_debian_archive_the_error_names_the_setting(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(archives.SETTING, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    spec = replace(
        spec_for(),
        known=Known.model_construct(debian=Debian(package="alpha", file="alpha_1.orig.tar.gz")),
    )
    assert archives.SETTING in str(failed(store, spec))
    assert fetcher(store).available(spec), "so that fetching tells what to set"
    assert not fetcher(store).available(spec, ask_debian=True)


def test_whose_bytes_they_are_is_told_by_the_hash(server: Server, store: Store) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    spec = replace(
        spec_for(f"{server.url}/{NAME}"),
        known=Known.model_construct(hashes={HASH: Whose(upstream=False, note="repacked")}),
    )
    for _ in ("from upstream", "from the mirror"):
        fetched = fetcher(store).fetch(spec)
        assert (fetched.upstream, fetched.note) == (False, "repacked")


def test_a_file_called_gzip_encoded_is_not_unpacked(server: Server, store: Store) -> None:
    server.pages[f"/{NAME}"] = encoded(DATA)
    assert fetcher(store).fetch(spec_for(f"{server.url}/{NAME}")).path.read_bytes() == DATA


def test_a_proxy_of_the_environment_is_used(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy looks up names: this one is known to no name server."""
    url = f"http://upstream.invalid/{NAME}"
    server.pages[url] = file(DATA)
    monkeypatch.setenv("http_proxy", server.url)
    assert fetcher(store).fetch(spec_for(url)).sha256 == HASH
    assert server.asked == [url]


# --- what goes wrong ------------------------------------------------------------------------------


def test_changed_bytes_stop_and_both_hashes_are_told(server: Server, store: Store) -> None:
    server.pages["/one"] = file(OTHER)
    server.pages["/two"] = file(DATA)
    error = failed(store, spec_for(f"{server.url}/one", f"{server.url}/two"))
    problem = error.problems[0]
    assert hashlib.sha256(OTHER).hexdigest() in problem.found
    assert "--accept-hash" in problem.todo
    assert server.asked == ["/one"], "a changed tarball is not papered over by another place"


def test_a_known_changed_tarball_is_explained(server: Server, store: Store) -> None:
    server.pages["/one"] = file(OTHER)
    known = {hashlib.sha256(OTHER).hexdigest(): "re-released in May"}
    error = failed(
        store, replace(spec_for(f"{server.url}/one"), known=Known.model_construct(refused=known))
    )
    assert "re-released in May" in str(error)


@pytest.mark.parametrize("after", [0, 1, 30_000, len(DATA) - 1])
def test_truncated(server: Server, store: Store, after: int) -> None:
    server.pages["/one"] = truncated(DATA, after)
    assert f"truncated, {after:,} of {len(DATA):,} bytes" in str(
        failed(store, spec_for(f"{server.url}/one"))
    )


def test_broken_off_without_a_length(server: Server, store: Store) -> None:
    server.pages["/one"] = broken_chunks(DATA)
    assert "broke off" in str(failed(store, spec_for(f"{server.url}/one")))


def test_stalled_in_the_middle(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "READ", 0.5)
    server.pages["/one"] = slowly(DATA, 5)
    error = failed(store, spec_for(f"{server.url}/one"))
    assert "truncated" in str(error)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without a word."""


@pytest.mark.parametrize(
    "hiccup", [file(b"busy", "text/plain", 503), truncated(DATA, 30_000), hang_up]
)
def test_a_hiccup_is_tried_again(server: Server, store: Store, hiccup: Answer) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        (file(DATA) if len(server.asked) == 3 else hiccup)(handler)

    server.pages["/one"] = answer
    assert fetcher(store).fetch(spec_for(f"{server.url}/one")).sha256 == HASH
    assert server.asked == ["/one"] * 3


def test_a_server_that_stays_broken_is_left_after_three_times(server: Server, store: Store) -> None:
    server.pages["/one"] = hang_up
    server.pages["/two"] = file(b"", "text/plain", 500)
    said = str(failed(store, spec_for(f"{server.url}/one", f"{server.url}/two")))
    assert "closed the connection" in said and "HTTP 500" in said
    assert server.asked == ["/one"] * 3 + ["/two"] * 3


def test_not_found_is_told_for_every_place(server: Server, store: Store) -> None:
    error = failed(store, spec_for(f"{server.url}/one", f"{server.url}/two"), f"{server.url}/m")
    for path in (f"/m{CONTENT}", f"/m/{NAME}", "/one", "/two"):
        assert f"{server.url}{path}: HTTP 404" in str(error)


def test_a_web_page_instead_of_the_file(server: Server, store: Store) -> None:
    """A portal's login comes with status 200; it must not read as "upstream has changed"."""
    server.pages[f"/{NAME}"] = file(b"<html>log in</html>", "text/html; charset=utf-8")
    error = failed(store, spec_for(f"{server.url}/{NAME}"))
    assert "a web page came instead of the file" in str(error)


def test_a_host_that_refuses(store: Store) -> None:
    error = failed(store, spec_for(f"http://127.0.0.1:{closed_port()}/{NAME}"))
    assert "refuses connections" in str(error)


def test_a_name_that_nobody_knows(store: Store) -> None:
    error = failed(store, spec_for(f"https://upstream.invalid/{NAME}"))
    assert "upstream.invalid:443: its name is not known (DNS)" in str(error)


def test_a_proxy_that_is_not_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    port = closed_port()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    error = failed(store, spec_for(f"http://upstream.invalid/{NAME}"))
    assert f"127.0.0.1:{port}: the proxy that the environment names cannot be used" in str(error)
    error = failed(store, spec_for(f"http://other.invalid/{NAME}"))
    assert "not asked again" in str(error), "the proxy is waited for once, not once a host"


def test_a_redirect_to_a_silent_host_blames_that_host(server: Server, store: Store) -> None:
    port = closed_port()
    server.pages["/one"] = redirect(f"http://127.0.0.1:{port}/x")
    server.pages["/two"] = file(DATA)
    fetched = fetcher(store).fetch(spec_for(f"{server.url}/one", f"{server.url}/two"))
    assert fetched.place == f"upstream {server.url}/two"


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1/x", "gopher://x/y", "nonsense", "http:///"]
)
def test_urls_that_are_none(store: Store, url: str) -> None:
    failed(store, spec_for(url))


def test_no_place_at_all(store: Store) -> None:
    assert "names no place" in str(failed(store, spec_for()))


def test_licensed_sources_are_never_fetched(tmp_path: Path, server: Server, store: Store) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    spec = replace(
        spec_for(f"{server.url}/{NAME}"),
        known=Known.model_construct(licence_page="https://example.org/licence"),
    )
    error = failed(store, spec)
    assert "https://example.org/licence" in error.problems[0].todo
    assert NAME in error.problems[0].todo
    assert server.asked == []
    assert not fetcher(store).available(spec)
    (tmp_path / NAME).write_bytes(DATA)
    assert fetcher(store, tmp_path).fetch(spec), "a site that has it may give it to its users"


def test_a_damaged_file_of_the_mirror_is_not_used(server: Server, store: Store) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    spec = spec_for(f"{server.url}/{NAME}")
    path = fetcher(store).fetch(spec).path
    path.write_bytes(DATA[:-1])
    with pytest.raises(SourceError, match="is damaged") as caught:
        fetcher(store).fetch(spec)
    assert "--remove-damaged" in caught.value.problems[0].todo
    assert path.exists(), "nothing is removed without being asked"


# --- a host that does not answer is waited for once -----------------------------------------------


def test_a_silent_host_is_waited_for_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "CONNECT", 1.0)
    with silent_port() as port:
        specs = [replace(spec_for(f"http://127.0.0.1:{port}/{n}"), version=str(n)) for n in "1234"]
        began = time.monotonic()
        bringing = fetcher(store)
        for spec in specs[:3]:
            with pytest.raises(SourceError, match="does not answer within"):
                bringing.fetch(spec)
        assert time.monotonic() - began > 0.9  # test_sources_silent.py counts that it is once
        with pytest.raises(SourceError, match="not asked again"):
            fetcher(store).fetch(specs[3])
        assert not fetcher(store).available(specs[3])


def test_a_name_server_that_is_silent_is_not_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "CONNECT", 0.3)
    monkeypatch.setattr(download.socket, "getaddrinfo", lambda *_, **__: time.sleep(3))
    with pytest.raises(SourceError, match="no name server answers"):
        fetcher(store).fetch(spec_for("http://upstream.invalid/x"))


def test_another_port_of_a_silent_host_is_another_place(server: Server, store: Store) -> None:
    server.pages["/x"] = file(DATA)
    spec = spec_for(f"http://127.0.0.1:{closed_port()}/x", f"{server.url}/x")
    assert fetcher(store).fetch(spec).sha256 == HASH


# --- what is available ----------------------------------------------------------------------------


def test_available_asks_and_does_not_load(server: Server, store: Store) -> None:
    server.pages["/x"] = file(DATA)
    server.pages[f"/{NAME}"] = file(b"<html>", "text/html")
    bringing = fetcher(store)
    assert bringing.available(spec_for(f"{server.url}/x"))
    assert not bringing.available(spec_for(f"{server.url}/none"))
    assert not bringing.available(spec_for(f"{server.url}/{NAME}"))
    assert not bringing.available(spec_for())
    assert nothing_kept(store)


def test_what_the_mirror_has_is_available_without_a_network(tmp_path: Path, store: Store) -> None:
    local = tmp_path / NAME
    local.write_bytes(DATA)
    spec = spec_for("https://upstream.invalid/x")
    assert not fetcher(store).available(spec)
    assert fetcher(store, tmp_path).available(spec)
    store.add(local, Entry(HASH, NAME, "alpha@1", len(DATA), "here"))
    assert fetcher(store).available(spec)


def test_easybuild_finds_it_by_its_own_name(server: Server, store: Store) -> None:
    server.pages["/x"] = file(DATA)
    bringing, spec = fetcher(store), spec_for(f"{server.url}/x")
    link = bringing.link_easybuild(spec, bringing.fetch(spec))
    assert link == store.root / "easybuild" / "a" / "Alpha" / NAME
    assert link.read_bytes() == DATA
