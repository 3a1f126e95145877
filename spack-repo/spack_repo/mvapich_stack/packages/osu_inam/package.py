"""OSU INAM: monitoring of InfiniBand networks. What can be packaged of it, and what cannot."""

import os

from spack_repo.builtin.build_systems.generic import Package
from spack_repo.mvapich_stack.build_systems.rpm_by_hand import PAGE, RpmByHand

from spack.package import *


class OsuInam(RpmByHand, Package):
    """OSU INAM: the daemon that reads InfiniBand counters, and its web page.

    Unpacks the RPM that you downloaded and adds `inam-clean-switches`, which makes a switch map
    that INAM can read. It does not set up what the RPM's own scripts do as root: the services, the
    database (MySQL or MariaDB), /etc/osu-inam.properties, the web server's user. The page asks no
    password: let it listen on the loopback, behind a proxy that does.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/tools/osu-inam/"
    list_url = PAGE
    manual_download = True
    has_code = False  # the RPM is taken from a mirror when it is unpacked
    mirror_folder = "osu-inam"

    license("BSD-3-Clause")

    # no hash: none of an RPM of INAM is published; the site writes its own beside the file
    version("1.1")

    variant("el", default="8", values=("7", "8", "9"), multi=False, description="Enterprise Linux")

    # No full list of its needs was found; a public Puppet module for 0.9.3 has Java 8 and MySQL.
    depends_on("java@8:", type="run")

    for _target in ("aarch64:", "ppc64le:"):
        # A conflict: of a requirement Spack leaves the message out.
        conflicts(
            f"target={_target}",
            msg="INAM is given out for x86_64 only: install it on an x86_64 management node",
        )

    def file_name(self):
        """The RPM's name, by the pattern of 0.9.3; SDSC was given one made for its OFED."""
        el = self.spec.variants["el"].value
        return f"osu-inam-{self.version}-1.el{el}.x86_64.rpm"

    def more_to_say(self):
        """Upstream makes RPMs to measure."""
        return ["if you were given an RPM made for your OFED, store it under this name"]

    def install(self, spec, prefix):
        """Unpack the RPM as it is, below opt/, and add the tool for switch maps."""
        # as 0.9.3 has it: all of it below opt/osu-inam; 1.1 was not at hand
        folder = self.unpack(self.rpm_in_mirror(), os.path.join("etc", "osu-inamd.conf"))
        self.move_in(folder, prefix)
        mkdirp(prefix.bin)
        tool = join_path(prefix.bin, "inam-clean-switches")
        with open(tool, "w", encoding="utf-8") as script:
            script.write(CLEAN)
        set_executable(tool)


# INAM's reader of switch maps stops at an empty line (seen at SDSC).
CLEAN = """#!/bin/sh
# usage: inam-clean-switches < switch-map > clean-map
# Takes out empty lines, at which INAM stops reading.
exec sed '/^[[:space:]]*$/d'
"""
