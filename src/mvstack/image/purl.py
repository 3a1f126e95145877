"""Package URLs, by which scanners know a package: packageurl-python, as debsbom uses it."""

from mvstack.image.components import Component
from mvstack.image.extras import load
from mvstack.image.packages import Distribution, Package


def of_rpm(package: Package, of: Distribution) -> str:
    """The package URL of an RPM; its epoch is a qualifier and no part of the version."""
    epoch, _, version = package.version.rpartition(":")
    more = {"arch": package.arch, "distro": f"{of.id}-{of.version}", "epoch": epoch}
    return str(load("packageurl").PackageURL("rpm", of.id, package.name, version, more))


def of_component(component: Component) -> str:
    """The package URL of a component of the release, with its source where there is one.

    The URL is upstream's and the hash that of what was built: both stand only where they agree.
    """
    first = component.sources[0] if len(component.sources) == 1 else None
    more = {
        "checksum": f"sha256:{first.sha256}" if first else "",
        "download_url": first.url if first and first.upstream else "",
    }
    name, version = component.name.lower(), component.version
    return str(load("packageurl").PackageURL("generic", "", name, version, more))
