"""Lmod from source, below the install root: for who has no root on a machine without it."""

import re
import tempfile
from pathlib import Path

from mvstack.model.base import Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import Debian, Known, SourceSpec
from mvstack.support.errors import BuildFailed
from mvstack.support.files import write_atomically
from mvstack.support.home import home
from mvstack.support.locks import hold
from mvstack.support.processes import english, run
from mvstack.support.progress import Progress
from mvstack.tree.modules import lmod_below, lmod_here

# Lua looks for its libraries below LUA_ROOT; what Lmod's `make install` does last is a link that
# `lmod_below` goes through, so that half an installation is none.
BUILD = """
place=$1
for file in "${@:2}"; do tar xf "$file"; done
cd "$(dirname lua-*/src)"
sed -i "s|^#define LUA_ROOT.*|#define LUA_ROOT \\"$place/\\"|" src/luaconf.h
make linux
make install INSTALL_TOP="$place"
cd ../luaposix-*
for what in all install; do
    "$place/bin/lua" build-aux/luke PREFIX="$place" LUA_INCDIR="$place/include" "$what"
done
cd ../*Lmod-*
# asked for by configure; ps is called by some shells that start, bc for the modes below
for tool in ps bc; do
    command -v "$tool" || export "${tool^^}=/usr/bin/$tool"
done
./configure --prefix="$place" --with-lua="$place/bin/lua" --with-luac="$place/bin/luac" \\
    --with-lua_include="$place/include" --with-useBuiltinPkgs=yes --with-tcl=no
open=$((~$(umask) & 0777)) # its own way to compute these calls bc
make install MODE_X="$(printf %04o "$open")" MODE_R="$(printf %04o $((open & 0666)))"
"""


OF_MAKE = re.compile(r"make(\[\d+\])?: (\*\*\*|Entering|Leaving)")


class _Row(Known):
    name: str
    version: str
    file: str
    url: str
    sha256: str
    debian: Debian


class _File(Strict):
    lmod: list[_Row]


def specs() -> list[SourceSpec]:
    """The sources that Lmod is built from, in the order of building."""
    path = home().file("policy", "lmod.yaml")
    return [
        SourceSpec(row.name, row.version, row.file, (row.sha256,), (row.url,), row, path.name)
        for row in validated(_File, read_yaml(path)).lmod
    ]


def build_lmod(root: Path, fetcher: Fetcher, progress: Progress) -> None:
    """Build Lua and Lmod below ``root`` unless this machine has an Lmod.

    Raises SourceError, and BuildFailed with the last lines of the log.
    """
    log = root / "logs" / "lmod.log"
    with hold(root / "lmod" / ".lock"):
        if lmod_here(root):
            return
        with progress.step("prepare", "Lmod and Lua from source", log=log) as step:
            files = []
            for spec in specs():
                step.note(f"fetching {spec.filename}")
                files.append(fetcher.fetch(spec).path)
            step.note("building")
            with tempfile.TemporaryDirectory(prefix="mvstack-lmod-") as folder:
                words = [str(one) for one in (root / "lmod", *files)]
                command = ["bash", "-ec", "exec 2>&1" + BUILD, "lmod", *words]
                done = run(command, env=english(), cwd=Path(folder))
            write_atomically(log, done.text)
            if not (done.ok and lmod_below(root)):
                told = [one for one in done.text.splitlines() if one and not OF_MAKE.match(one)]
                raise BuildFailed(
                    "Lmod could not be built",
                    str(log),
                    found=" | ".join(told[-3:]),
                    todo="mend what it says, or load an Lmod of the machine's, and run the same "
                    "command again",
                )
