"""MkDocs hooks: links that the site cannot follow, and search in a folder that no server serves."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

LINK = re.compile(r"(?<!!)\[(?P<text>[^]]+)\]\((?P<to>(?!\w+:|#)[^)\s]+)\)")
#: What the theme loads from a server to search in files.
SHIM, OWN = "https://unpkg.com/iframe-worker/shim", "assets/file_worker.js"


def on_files(files: Any, config: Any) -> Any:
    """The files of the site, with our own script for searching in files."""
    text = Path(__file__).with_name("file_worker.js").read_text()
    files.append(File.generated(config, OWN, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """``markdown``; a link to a file of the repository that is no page shows the file's path."""

    def shown(link: re.Match[str]) -> str:
        path = link["to"].partition("#")[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), path))
        if files.get_file_from_path(there):
            return link[0]
        outside = posixpath.normpath(posixpath.join("docs", there))
        return link["text"] if outside in link["text"] else f"{link['text']} (`{outside}`)"

    return LINK.sub(shown, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with our script in place of a server's."""
    return output.replace(
        SHIM, posixpath.relpath(OWN, posixpath.dirname(page.file.dest_uri) or ".")
    )


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of a lost link, which is at the top."""
    return output_content.replace(SHIM, f"/{OWN}")
