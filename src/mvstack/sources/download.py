"""Copy a file from a URL or a folder: again after a hiccup, not twice from a silent host."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mvstack.sources.spec import extension
from mvstack.support.files import full

if TYPE_CHECKING:
    import requests

CONNECT, READ = 5.0, 30.0  # seconds to wait for a connection, and between two pieces
Advance = Callable[[int, int], object]
_CHUNK = 1 << 20  # bytes
PAUSES = (1.0, 4.0)  # seconds before a download is tried again that failed in passing
_DEFAULT_PORTS = {"http": 80, "https": 443}
# What did not answer this process, which asks it no more: ``name:port``, or "PyPI"; and why.
SILENT: dict[str, str] = {}


class NotHere(Exception):
    """A place cannot give a file; the text says why, ``absent`` that it answered and has none.

    ``passing``: a server that is overloaded or restarted, a connection that broke.
    """

    def __init__(self, why: str, absent: bool = False, passing: bool = False) -> None:
        super().__init__(why)
        self.absent, self.passing = absent, passing


def is_url(place: str) -> bool:
    """Whether ``place`` is asked over a network, and not a path or file://…."""
    return "://" in place and not place.startswith("file://")


def local(place: str) -> Path:
    """The path of a place on this machine: a path, or file://…."""
    return full(unquote(urlsplit(place).path) if place.startswith("file://") else place)


def bring(place: str, target: Path, advance: Advance = lambda *_: None) -> None:
    """Copy ``place`` (a URL, a path or file://…) to ``target``.

    ``advance`` gets the bytes so far and in all (or 0). A proxy named by the environment is used.
    Raises NotHere when the host does not answer, has no such file, sends a web page instead, or
    stops in the middle; OSError when the disk is full.
    """
    if is_url(place):
        for pause in (*PAUSES, None):
            try:
                return _download(place, target, advance)
            except NotHere as why:
                if pause is None or not why.passing:
                    raise
                time.sleep(pause)
    file = local(place)
    try:
        with file.open("rb") as source, target.open("wb") as stream:
            shutil.copyfileobj(source, stream)
    except OSError as error:
        if str(error.filename) != str(file):
            raise
        absent = isinstance(error, FileNotFoundError)
        raise NotHere(f"{file}: {error.strerror}", absent) from None


def _download(url: str, target: Path, advance: Advance) -> None:
    got, size, broken = 0, 0, ""
    try:
        with _get(url, READ) as answer, target.open("wb") as stream:
            size = int(answer.headers.get("Content-Length") or 0)
            # raw: a server that calls a .tar.gz "gzip-encoded" must not have it unpacked
            for chunk in answer.raw.stream(_CHUNK, decode_content=False):
                stream.write(chunk)
                got += len(chunk)
                advance(got, size)
    except _broken() as error:
        broken = f"broke off after {got:,} bytes ({_plain(error)})"
    if size and got != size:
        broken = f"truncated, {got:,} of {size:,} bytes came"
    if broken:
        raise NotHere(f"{url}: {broken}", passing=True)


def has(place: str) -> bool:
    """Whether ``place`` has its file, asked in a few seconds and without its bytes."""
    if not is_url(place):
        return os.access(file := local(place), os.R_OK) and file.is_file()
    with suppress(NotHere, *_broken()), _get(place, CONNECT):
        return True
    return False


def host_of(url: str) -> str:
    """``name:port`` of the host that ``url`` names; the url itself when it names none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return url
    return f"{parts.hostname}:{port}" if parts.hostname else url


_PASSING = (429, 500, 502, 503, 504)  # HTTP statuses of a server that may answer in a moment


def _broken() -> tuple[type[Exception], ...]:
    """What requests and urllib3 raise once an answer has begun."""
    # here, as in the functions below: a sixth of a second of every command's start
    import requests
    import urllib3

    return requests.RequestException, urllib3.exceptions.HTTPError


def _get(url: str, read: float) -> "requests.Response":
    """Begin to load ``url``. Raises NotHere when nothing answers or the answer is an error."""
    # start-up time: see above
    import requests
    import urllib3
    from requests.utils import get_environ_proxies, select_proxy

    host, proxy = host_of(url), ""
    try:
        proxy = select_proxy(url, get_environ_proxies(url)) or ""
        if silent := next((one for one in (host, proxy and host_of(proxy)) if one in SILENT), ""):
            raise NotHere(f"{silent}: {SILENT[silent]} (not asked again)")
        if not proxy:
            _resolve(urlsplit(url).hostname)
        answer = requests.get(
            url, stream=True, timeout=(CONNECT, read), headers={"Accept-Encoding": "identity"}
        )
    except (requests.ConnectionError, requests.Timeout, socket.gaierror) as error:
        # after a redirect it is another host that is silent, and it may be the proxy itself
        host = host_of(getattr(getattr(error, "request", None), "url", None) or url)
        if isinstance(error, requests.exceptions.ProxyError) and "Tunnel" not in str(error):
            host = host_of(proxy)
        if isinstance(next(iter(error.args), None), urllib3.exceptions.ProtocolError):
            raise NotHere(f"{host}: closed the connection", passing=True) from None
        why = _reason(error)
        SILENT[host] = why
        raise NotHere(f"{host}: {why}") from None
    except (requests.RequestException, UnicodeError, ValueError) as error:
        raise NotHere(f"{url}: {_plain(error)}") from None
    if answer.status_code != 200:
        answer.close()
        said = f"{url}: HTTP {answer.status_code} {answer.reason or ''}".rstrip()
        raise NotHere(said, answer.status_code == 404, answer.status_code in _PASSING)
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml") and extension(urlsplit(url).path):
        answer.close()
        raise NotHere(f"{url}: a web page came instead of the file (a login or a portal?)")
    return answer


def _resolve(host: str | None) -> None:
    """Look up a host's name, for no longer than a connection may take.

    The system's resolver has no time limit that we could set: with a silent name server it waits
    half a minute. Raises socket.gaierror.
    """
    failed: list[Exception] = []

    def look() -> None:
        try:
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=look, daemon=True, name="resolve")
    thread.start()
    thread.join(CONNECT)
    if thread.is_alive():
        raise socket.gaierror(socket.EAI_AGAIN, f"no name server answered in {CONNECT:.0f} s")
    if failed:
        raise socket.gaierror(socket.EAI_NONAME, str(failed[0]))


def _reason(error: Exception) -> str:
    import requests  # start-up time: see above

    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return "no name server answers (DNS)"
    if isinstance(error, socket.gaierror) or "NameResolution" in str(error):
        return "its name is not known (DNS)"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted (REQUESTS_CA_BUNDLE names a site's own authority)"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy that the environment names cannot be used"
    if isinstance(error, requests.Timeout):
        return f"does not answer within {CONNECT:.0f} s"
    return "refuses connections" if "refused" in str(error) else "cannot be connected to"


def _plain(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
