"""Package URLs, by which scanners know a package: packageurl-python."""

from mvstack.image.components import Component
from mvstack.image.extras import load


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
