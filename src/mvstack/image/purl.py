"""Package URLs (github.com/package-url/purl-spec), by which scanners know a package."""

from collections.abc import Mapping
from urllib.parse import quote

from mvstack.image.components import Component
from mvstack.image.packages import Distribution, Package


def purl(kind: str, namespace: str, name: str, version: str, more: Mapping[str, str]) -> str:
    """``pkg:kind/namespace/name@version?key=value``; empty values are left out."""
    path = "/".join(quote(part, safe="") for part in (namespace, name) if part)
    qualifiers = [f"{key}={quote(more[key], safe=':/')}" for key in sorted(more) if more[key]]
    tail = f"?{'&'.join(qualifiers)}" if qualifiers else ""
    return f"pkg:{kind}/{path}@{quote(version, safe=':')}{tail}"


def of_rpm(package: Package, of: Distribution) -> str:
    """The package URL of an RPM; its epoch is a qualifier and no part of the version."""
    epoch, colon, version = package.version.rpartition(":")
    more = {
        "arch": package.arch,
        "distro": f"{of.id}-{of.version}",
        "epoch": epoch if colon else "",
    }
    return purl("rpm", of.id, package.name, version, more)


def of_component(component: Component) -> str:
    """The package URL of a component of the release, with its source where there is one.

    The URL is upstream's and the hash that of what was built: both stand only where they agree.
    """
    first = component.sources[0] if len(component.sources) == 1 else None
    more = {
        "checksum": f"sha256:{first.sha256}" if first else "",
        "download_url": first.url if first and first.upstream else "",
    }
    return purl("generic", "", component.name.lower(), component.version, more)
