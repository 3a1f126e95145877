"""Unpack pip into the Python that runs this, which has none.

    python -I fetch_pip.py pip.txt [WHEEL]

WHEEL is a pip that is on this machine already, such as the file that Python itself brings for
ensurepip. Without one, or if it is damaged, it is the pip that pip.txt pins, out of the folders of
PIP_FIND_LINKS or the index of PIP_INDEX_URL, with the name and password in that and the
certificates of PIP_CERT. pip's configuration files are not read.
"""

import base64
import hashlib
import http.client
import io
import os
import re
import ssl
import sys
import sysconfig
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

AS_ROOT = "Or have python3-venv of the distribution installed"


def main() -> None:
    """Find, compare, unpack; ends with one line that says what went wrong."""
    pins, *given = map(Path, sys.argv[1:])
    wheel = next(filter(whole, given), None) or io.BytesIO(pinned(pins))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(sysconfig.get_path("purelib"))


def whole(wheel: Path) -> bool:
    """Whether it can be unpacked to its end: half a pip would mix with the one that is pinned."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            damaged = archive.testzip()
    except Exception as error:  # zipfile has no one kind of them for a damaged file
        damaged = repr(error)
    if damaged:
        print(f"{wheel} is damaged ({damaged}): the pinned pip is taken", file=sys.stderr)
    return not damaged


def pinned(file: Path) -> bytes:
    """The wheel that ``file`` pins; exits when it cannot be had or is another."""
    pin = re.search(r"pip==(\S+).*?sha256:(\w+)", file.read_text(), re.DOTALL)
    assert pin, file
    name = f"pip-{pin[1]}-py3-none-any.whl"
    given = [Path(one, name) for one in os.environ.get("PIP_FIND_LINKS", "").split()]
    try:
        there = next((one for one in given if one.is_file()), None)
        wheel, url = (there.read_bytes(), str(there)) if there else from_index(name)
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.exit(f"{name} cannot be fetched: {error}. {AS_ROOT}")
    if hashlib.sha256(wheel).hexdigest() != pin[2]:
        sys.exit(f"{url} is not what its hash says. {AS_ROOT}")
    return wheel


def from_index(name: str) -> tuple[bytes, str]:
    """The file ``name`` of pip, and where it was. Raises OSError, HTTPException, ValueError."""
    index = os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple"
    scheme, _, rest = index.partition("://")
    login, _, host = rest.partition("/")[0].rpartition("@")
    headers = {}
    if login:
        index = f"{scheme}://{rest.removeprefix(login)[1:]}"
        word = base64.b64encode(urllib.parse.unquote(login).encode()).decode()
        headers = {"Authorization": f"Basic {word}"}
    page, where = get(index.rstrip("/") + "/pip/", headers)
    found = re.search(rf'href="([^"]*{re.escape(name)}[^"]*)"', page.decode())
    if not found:
        raise ValueError(f"{where} does not name it")
    url = urllib.parse.urljoin(where, found[1].partition("#")[0])
    return get(url, headers if urllib.parse.urlsplit(url).netloc == host else {})


def get(url: str, headers: dict[str, str]) -> tuple[bytes, str]:
    """What ``url`` answers, and where that came from in the end."""
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return answer.read(), answer.url


if __name__ == "__main__":
    main()
