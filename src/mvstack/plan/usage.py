"""What a module has that no build depends on: the usage that its help shows, and what was tuned.

The usage names the partition, how programs are started there and why this MPI was chosen; what was
tuned is what `mvstack tune` found on its machines. Neither is of what a package's hash covers: they
are put into the module where they changed, without a build, also into one that came from a cache
where another partition's stood.
"""

import ast
import re
from pathlib import Path

from mvstack.support.files import write_atomically
from mvstack.support.hashes import assigns

NAME = "usage"
# What modulefiles/tuned.lua.j2 makes.
_TUNED = re.compile(r"\n*-- Tuned by measuring .*?\nif tuned then\n.*?\nend\n", re.DOTALL)
# EasyBuild's headings in the help text of a module (module_generator.py, det_help_text).
_SECTION = re.compile(r"(\nUsage\n=====\n)(.*?)(\n\n\n[A-Z][^\n]*\n=+\n|\n\]=*\])", re.DOTALL)


def usage_of(easyconfig: str) -> str:
    """The usage that an easyconfig's text sets; "" when it sets none."""
    for node in ast.parse(easyconfig).body:
        if isinstance(node, ast.Assign) and assigns(node, NAME):
            return str(ast.literal_eval(node.value)).strip()
    return ""


def refresh(module: Path, usage: str, tuned: str = "") -> bool:
    """Make ``usage`` what the help of ``module`` shows, and ``tuned`` its end; whether it changed.

    A module whose help has no section of that name keeps its help.
    """
    text, usage = module.read_text(encoding="utf-8"), usage.strip()
    mended = f"{_TUNED.sub('', text).rstrip()}\n\n{tuned}".rstrip() + "\n"
    found = _SECTION.search(mended)
    if usage and found and found.group(2).strip() != usage:
        mended = mended[: found.start(2)] + usage + "\n" + mended[found.start(3) :]
    if mended != text:
        write_atomically(module, mended)
    return mended != text
