"""Lmod from source, below the install root: for a machine that has none, or one too old."""

import re
import shutil
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
from mvstack.tree.modules import lmod_here, own_lmod

# Lua looks for its libraries below LUA_ROOT. configure asks for ps and bc: shells that start call
# the one, and its makefile the other to compute modes, which are given here. The link, by which
# `lmod_here` finds it, is made last, and only if what is behind it loads a module.
BUILD = """
exec 2>&1
unset "${!LUA@}" "${!LMOD@}" CC CFLAGS LDFLAGS
place=$1
umask "$2"
for file in "${@:3}"; do tar xf "$file"; done
cd lua-*
sed -i "s|^#define LUA_ROOT.*|#define LUA_ROOT \\"$place/\\"|" src/luaconf.h
make linux
make install INSTALL_TOP="$place"
cd ../luaposix-*
for what in all install; do
    "$place/bin/lua" build-aux/luke PREFIX="$place" LUA_INCDIR="$place/include" "$what"
done
cd ../*Lmod-*
for tool in ps bc; do
    command -v "$tool" || export "${tool^^}=/usr/bin/$tool"
done
./configure --prefix="$place" --with-lua="$place/bin/lua" --with-luac="$place/bin/luac" \\
    --with-lua_include="$place/include" --with-useBuiltinPkgs=yes --with-tcl=no
open=$((~$(umask) & 0777))
make pre-install MODE_X="$(printf %04o "$open")" MODE_R="$(printf %04o $((open & 0666)))"
version=$(ls "$place/lmod")
mkdir -p modules/one
echo 'setenv("ONE", "works")' >modules/one/1.lua
MODULEPATH=$PWD/modules "$place/lmod/$version/libexec/lmod" bash load one | tee said
grep -q 'ONE=.*works' said
ln -s "$version" "$place/lmod/lmod"
"""
OF_MAKE = re.compile(r"make(\[\d+\])?: (\*\*\*|Entering|Leaving)")


class _Row(Known):
    name: str
    version: str
    file: str
    url: str
    debian: Debian


class _File(Strict):
    lmod: list[_Row]


def specs() -> list[SourceSpec]:
    """The sources that Lmod is built from, in the order of building."""
    path = home().file("policy", "lmod.yaml")
    return [
        SourceSpec(row.name, row.version, row.file, tuple(row.hashes), (row.url,), row, path.name)
        for row in validated(_File, read_yaml(path)).lmod
    ]


def build_lmod(root: Path, umask: str, fetcher: Fetcher, progress: Progress) -> None:
    """Build Lua and Lmod below ``root`` unless this machine has an Lmod that is new enough.

    Raises SourceError, and BuildFailed with the last lines of the log.
    """
    if lmod_here(root):
        return
    place, log = own_lmod(root), root / "logs" / "lmod.log"
    with (
        progress.step("prepare", "Lmod and Lua from source", log=log) as step,
        hold(root / ".lmod.lock", waiting=lambda who: step.note(f"waiting for {who}")),
    ):
        if lmod_here(root):
            return
        files = []
        for spec in specs():
            step.note(f"fetching {spec.filename}")
            files.append(fetcher.fetch(spec).path)
        step.note("building")
        shutil.rmtree(place, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="mvstack-lmod-") as folder:
            words = [str(place), umask, *map(str, files)]
            command = ["bash", "-e", "-o", "pipefail", "-c", BUILD, "lmod", *words]
            done = run(command, env=english(), cwd=Path(folder))
        write_atomically(log, done.text)
        if not done.ok:
            told = [one for one in done.text.splitlines() if one and not OF_MAKE.match(one)]
            raise BuildFailed(
                "Lmod could not be built",
                str(log),
                found=" | ".join(told[-3:]),
                todo="mend what it says, or load an Lmod of the machine's, and run the same "
                "command again",
            )
