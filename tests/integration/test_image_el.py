"""The step 10-packages.sh of EL, in a root whose dnf and rpm are stand-ins.

No root of an RPM distribution can be had where these tests run. The stand-ins refuse what dnf 4
documents that it refuses: commands of a plug-in that is not there, packages of a repository
that is off, what nothing provides a requirement of, and every form of a name but dnf's own
(dnf(8), "Specifying Packages": name, name-version-release.arch, name-epoch:version-release.arch).
Nothing else of dnf is shown by them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from images.base import base
from images.chroot import Chroot
from images.kits import PACKAGES
from images.needs import needs
from images.provisioning import SHELL
from images.world import World

from mvstack.image.packer import TEMPLATES

DNF = r"""#!/bin/bash
cd /standin || exit
words=()
for word in "$@"; do [[ $word == -[qy] || $word == --setopt=* ]] || words+=("$word"); done
command=${words[0]}
set -- "${words[@]:1}"
no_match() { echo "Error: Unable to find a match: $1" >&2; exit 1; }
case $command in
    repolist) printf 'repo id   repo name\n'; sed 's/$/   a name/' enabled ;;
    check-update) [[ ! -e updates ]] || exit "$(<updates)" ;;
    upgrade)
        rm updates
        [[ ! -e next ]] || cp next /etc/os-release
        ;;
    config-manager)
        grep -qx dnf-plugins-core installed || { echo "No such command: $command" >&2; exit 1; }
        [[ $1 == --set-enabled ]] || exit 1
        grep -q " $2 *$" available || { echo "Error: No matching repo to modify: $2." >&2; exit 1; }
        echo "$2" >>enabled
        ;;
    install)
        for spec in "$@"; do
            found=''
            while read -r name version arch repo needs; do
                case $spec in "$name" | "$name-$version.$arch") ;; *) continue ;; esac
                grep -qx "$repo" enabled || continue
                found=yes
                if [[ -n $needs ]]; then
                    read -r _ _ _ from < <(grep "^$needs " available)
                    grep -qx "$from" enabled ||
                        { echo "nothing provides $needs needed by $name" >&2; exit 1; }
                    echo "$needs" >>installed
                fi
                echo "$name" >>installed
                [[ $name != epel-release ]] || echo epel >>enabled
                echo "$spec" >>asked
            done <available
            [[ -n $found ]] || no_match "$spec"
        done
        ;;
    *) echo "No such command: $command." >&2; exit 1 ;;
esac
"""
RPM = """#!/bin/bash
[[ $1 == -q && $2 == --quiet ]] || exit 1
grep -qx "$3" /standin/installed
"""
AVAILABLE = """\
dnf-plugins-core 4.0-1.el8 noarch baseos
epel-release 8-22.el8 noarch baseos
gcc 8.5.0-28.el8_10 x86_64 baseos
bind-utils 32:9.11-1.el8 x86_64 baseos
Lmod 8.7-1.el8 x86_64 epel lua-posix
lua-posix 33.3-9.el8 x86_64 {extra}
"""
SCRIPT = """
{variables}
PACKAGES=(epel-release Lmod gcc)
source /kit/provision/lib.sh
source /kit/provision/10-packages.sh
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    needs()
    with World() as made:
        yield made


class El:
    """A root of EL 8 or 9, as far as the step sees it."""

    def __init__(self, world: World, folder: Path) -> None:
        self.chroot = Chroot(world, base(PACKAGES), folder / "chroot")
        shutil.copytree(TEMPLATES / "provision", self.chroot.root / "kit/provision")
        self.state = self.chroot.root / "standin"
        self.state.mkdir()
        for name, text in (("dnf", DNF), ("rpm", RPM)):
            (self.chroot.root / "usr/bin" / name).write_text(text)
            (self.chroot.root / "usr/bin" / name).chmod(0o755)
        (self.state / "enabled").write_text("baseos\n")
        (self.state / "installed").touch()

    def step(self, os: str, nic: str = "inbox") -> tuple[int, str]:
        extra = "powertools" if os.endswith("8") else "crb"
        (self.state / "available").write_text(AVAILABLE.format(extra=extra))
        variables = f"OS={os} NIC_STACK={nic} GPU_STACK=none"
        environment = {"CHANGES": "/tmp/changes", "KIT": "/kit", "FAMILY": "rhel"}
        return self.chroot.run(*SHELL, SCRIPT.format(variables=variables), **environment)

    def lines(self, name: str) -> list[str]:
        return (self.state / name).read_text().split()

    def release(self, minor: str, file: str = "etc/os-release") -> None:
        place = self.chroot.root / file
        place.unlink(missing_ok=True)
        place.write_text(f'ID="rocky"\nVERSION_ID="{minor}"\n')


@pytest.fixture
def el(world: World, tmp_path: Path) -> El:
    return El(world, tmp_path)


@pytest.mark.parametrize(("os", "extra"), [("almalinux8", "powertools"), ("rocky9", "crb")])
def test_what_lmod_needs_is_on_before_lmod_is_asked_for(el: El, os: str, extra: str) -> None:
    el.release("8.10")
    code, said = el.step(os)
    assert code == 0, said
    assert {"Lmod", "lua-posix", "gcc"} <= {*el.lines("installed")}
    assert extra in el.lines("enabled")
    before = el.lines("installed")
    code, said = el.step(os)
    assert (code, said) == (0, "") and el.lines("installed") == before, "a second run"


def test_exact_versions_are_asked_for_by_the_name_that_dnf_knows(el: El) -> None:
    el.release("8.10")
    wanted = "gcc.x86_64=8.5.0-28.el8_10\nbind-utils.x86_64=32:9.11-1.el8\n"
    (el.chroot.root / "kit/packages.txt").write_text(wanted)
    code, said = el.step("almalinux8")
    assert code == 0, said
    asked = el.lines("asked")
    assert {"gcc-8.5.0-28.el8_10.x86_64", "bind-utils-32:9.11-1.el8.x86_64"} <= {*asked}


@pytest.mark.parametrize(("nic", "moves"), [("efa", True), ("efa", False), ("inbox", True)])
def test_updates_do_not_move_the_system_under_fixed_drivers(el: El, nic: str, moves: bool) -> None:
    el.release("9.7")
    (el.state / "updates").write_text("100")
    if moves:
        el.release("9.8", "standin/next")
    code, said = el.step("rocky9", nic)
    if nic == "efa" and moves:
        assert code == 1 and "updates made 9.7 into 9.8" in said
    else:
        assert code == 0 and "changed: the distribution's updates" in said


def test_lists_that_cannot_be_obtained_are_no_updates(el: El) -> None:
    el.release("9.7")
    (el.state / "updates").write_text("1")
    code, said = el.step("rocky9")
    assert code == 1 and "lists of packages cannot be obtained (dnf check-update: 1)" in said
