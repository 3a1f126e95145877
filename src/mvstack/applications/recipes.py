"""Which easyconfig of a package is written by hand."""

from __future__ import annotations

from mvstack.model.release import Package, Release
from mvstack.plan import easyconfigs


def by_hand(package: Package, release: Release) -> str:
    """The easyconfig that is written by hand; "" where there is none."""
    if not package.toolchain:
        return ""
    there = easyconfigs.index()
    if package.toolchain == "gcc":
        files = [
            name for name in there if name.startswith(f"{package.name}-{package.version}-GCC-")
        ]
        return files[0] if files else ""
    for product in ("mvapich", "mpich"):
        over = easyconfigs.toolchain_file(product, release.name, "ch4:ofi", package.toolchain)
        name = easyconfigs.package_file(package.name, package.version, over, package.suffix)
        if name in there:
            return name
    return ""
