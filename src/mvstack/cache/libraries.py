"""Whether this machine has the libraries that a package from a cache links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from mvstack.cache.manifest import Needed
from mvstack.support.processes import run

# The dynamic linker's own folders beside those of ldconfig's list.
_DEFAULT = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def lacking(needs: Iterable[Needed]) -> list[str]:
    """The libraries that are neither where the builder had them nor known to the linker here."""
    known = _known()
    return sorted(
        one.soname
        for one in needs
        if one.soname not in known
        and not (one.found and Path(one.found).is_file())
        and not any(Path(folder, one.soname).is_file() for folder in _DEFAULT)
    )


def _known() -> set[str]:
    """The names in ldconfig's cache; none where there is no ldconfig."""
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if program is None:
        return set()
    done = run([program, "-p"])
    return {line.split()[0] for line in done.text.splitlines() if " => " in line}
