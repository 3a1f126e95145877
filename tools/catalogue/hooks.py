"""MkDocs hooks: marks at commands, links that the site cannot follow, search without a server."""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
from commands import marked

LINK = re.compile(r"(?<!!)\[(?P<text>[^]]+)\]\((?P<to>(?!\w+:|#)[^)\s]+)\)")
#: What the theme loads from a server to search in files.
SHIM, OWN = "https://unpkg.com/iframe-worker/shim", "assets/file_worker.js"
STYLE, SCRIPT = "assets/catalogue.css", "assets/catalogue.js"
#: How much more than another guide a page counts in a search.
WEIGHTS = {
    "systems/index": 1,
    "systems/": 8,
    "software/index": 1,
    "software/": 8,
    "policy": 2,
    "adding/": 0.5,
}


def on_files(files: Any, config: Any) -> Any:
    """The files of the site, with our style and scripts."""
    for name in (OWN, STYLE, SCRIPT):
        text = Path(__file__).with_name(posixpath.basename(name)).read_text()
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """``markdown`` with marks at what no test runs; links to what is no page show its path."""

    def shown(link: re.Match[str]) -> str:
        path = link["to"].partition("#")[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), path))
        if files.get_file_from_path(there):
            return link[0]
        outside = posixpath.normpath(posixpath.join("docs", there))
        return link["text"] if outside in link["text"] else f"{link['text']} (`{outside}`)"

    weight = next((of for start, of in WEIGHTS.items() if page.file.src_uri.startswith(start)), 1)
    page.meta.setdefault("search", {"boost": weight})
    return marked(LINK.sub(shown, markdown))


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with our script in place of a server's."""
    return output.replace(
        SHIM, posixpath.relpath(OWN, posixpath.dirname(page.file.dest_uri) or ".")
    )


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of a lost link, which is at the top."""
    return output_content.replace(SHIM, f"/{OWN}")
