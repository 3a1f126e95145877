"""Writes the pages that are made from data. Run by mkdocs-gen-files (mkdocs.yml)."""

import sys
from pathlib import Path

import mkdocs_gen_files

sys.path.insert(0, str(Path(__file__).parent))
from catalogue import pages

for path, text in pages().items():
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)
