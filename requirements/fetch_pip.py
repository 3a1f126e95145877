"""Install the pip that a file pins into the Python that runs this, which has none.

    python -I fetch_pip.py pip.txt

The index is PIP_INDEX_URL's, the certificates are PIP_CERT's, as pip itself would take them.
"""

import hashlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path


def main() -> None:
    """Fetch, compare, install; ends with one line that says what went wrong."""
    pinned = re.search(r"pip==(\S+).*?sha256:(\w+)", Path(sys.argv[1]).read_text(), re.DOTALL)
    assert pinned, sys.argv[1]
    name, wanted = f"pip-{pinned[1]}-py3-none-any.whl", pinned[2]
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
    try:
        page, index = get(index)
        found = re.search(rf'href="([^"]*/{re.escape(name)}[^"]*)"', page.decode())
        if not found:
            sys.exit(f"{index} has no {name}")
        wheel, url = get(urllib.parse.urljoin(index, found[1].partition("#")[0]))
    except OSError as error:
        sys.exit(f"{name} cannot be fetched from {index}: {error}")
    if hashlib.sha256(wheel).hexdigest() != wanted:
        sys.exit(f"{url} is not what its hash says")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(wheel)
        sys.exit(subprocess.call([sys.executable, path / "pip", "install", "--no-index", path]))


def get(url: str) -> tuple[bytes, str]:
    """What ``url`` answers, and where that came from in the end. Raises OSError."""
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    with urllib.request.urlopen(url, timeout=60, context=context) as answer:
        return answer.read(), answer.url


if __name__ == "__main__":
    main()
