"""Prints, on one line, the distribution's packages that the tests need and this machine lacks.

What `mvstack install` needs, the tools that tests run, and the distribution's own MPICH and Open
MPI, which ours are measured against; where `mvstack up` has not installed a tree that the checks
could run on, that MPICH stands in for it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from mvstack.discover import look
from mvstack.image.tools import FILES
from mvstack.install.prerequisites import lacking
from mvstack.support.errors import Missing

TOOLS = {  # program: its package
    "shellcheck": "shellcheck",
    "pgrep": "procps",
    "git": "git",  # mvstack diff, and Spack's clones
    "gpg": "gpg",  # the signatures of caches
    "gpg-agent": "gpg-agent",
    "srun": "slurm-wlm",  # tests/slurm/loopback
    "munge": "munge",
    "ss": "iproute2",
    "unshare": "util-linux",
    "rpm": "rpm",  # package lists of RHEL's family
    "packer": "packer",  # images: from here on
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "sfdisk": "fdisk",
    "extlinux": "extlinux",
    "xorriso": "xorriso",
    "zstd": "zstd",
    "ssh-keygen": "openssh-client",
    "openssl": "openssl",
    "curl": "curl",
    "ssh": "openssh-client",  # pipelines: git's addresses
    "dropbear": "dropbear-bin",  # tests/lab/hosts
    "ibsim": "ibsim-utils",  # tests/lab/fabric
    "opensm": "opensm",
    "ibqueryerrors": "infiniband-diags",
    "rsync": "rsync",  # gitlab-ci-local
    "cpio": "cpio",  # unpacks an RPM, as Spack does
    "chromium": "chromium",  # reads the catalogue
}
LIBRARIES = {  # library, by the name that a linker looks for: its package
    "libpmix.so": "libpmix-dev",  # Slurm's plugin loads it by this name, which only -dev has
}


def main() -> None:
    names = []
    try:
        missing = lacking(look().os or "this system", "small")
        names += [item.package for item in missing.needed] if missing else []
    except Missing as error:
        print(f"tests that need them are skipped: {error}", file=sys.stderr)
    names += [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    names += [package for file, package in FILES.items() if not Path(file).exists()]
    libraries = Path("/usr/lib")
    names += [package for name, package in LIBRARIES.items() if not [*libraries.glob(f"*/{name}")]]
    if not shutil.which("mpicc.mpich"):  # what ours are measured against, beside its other use
        names += ["mpich", "libmpich-dev"]
    if not shutil.which("mpicc.openmpi"):
        names += ["openmpi-bin", "libopenmpi-dev"]
    print(*names)


if __name__ == "__main__":
    main()
