"""The usage that a module's help shows: words for people, which no build depends on.

It names the partition, how programs are started there and why this MPI was chosen. So it is not
of what a package's hash covers, and is put into the module where it changed, without a build: also
into one that came from a cache where another partition's words stood.
"""

import ast
import re
from pathlib import Path

from mvstack.support.files import write_atomically
from mvstack.support.hashes import assigns

NAME = "usage"
# EasyBuild's headings in the help text of a module (module_generator.py, det_help_text).
_SECTION = re.compile(r"(\nUsage\n=====\n)(.*?)(\n\n\n[A-Z][^\n]*\n=+\n|\n\]=*\])", re.DOTALL)


def usage_of(easyconfig: str) -> str:
    """The usage that an easyconfig's text sets; "" when it sets none."""
    for node in ast.parse(easyconfig).body:
        if isinstance(node, ast.Assign) and assigns(node, NAME):
            return str(ast.literal_eval(node.value)).strip()
    return ""


def refresh(module: Path, usage: str) -> bool:
    """Make ``usage`` what the help of ``module`` shows; whether that changed the file.

    A module whose help has no section of that name is left as it is.
    """
    text = module.read_text(encoding="utf-8")
    found = _SECTION.search(text)
    if not usage or found is None or found.group(2).strip() == usage:
        return False
    mended = text[: found.start(2)] + usage + "\n" + text[found.start(3) :]
    write_atomically(module, mended)
    return True
