"""Certificate authorities that an image trusts and its distribution does not.

A proxy's own certificate that was brought for the build stays in the bundle when only its file is
removed, so the bundle itself is compared with what the distribution's packages hold.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mvstack.image.finding import Finding
from mvstack.image.walk import inside, unreadable

_CERTIFICATE = re.compile(
    rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----(.*?)-----END (?:TRUSTED )?CERTIFICATE-----",
    re.DOTALL,
)
# The bundle, and the folder of the packages' certificates: Debian's family, RHEL's.
_BUNDLES = (
    ("/etc/ssl/certs/ca-certificates.crt", "/usr/share/ca-certificates"),
    ("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/usr/share/pki/ca-trust-source"),
)
_WHY = "whoever holds its key could stand for any site towards every user of the image"


def authorities(root: Path) -> Iterator[Finding]:
    """Certificates of a bundle that no package holds. Raises Missing for what cannot be read."""
    for bundle, folder in _BUNDLES:
        place, source = inside(root, bundle), inside(root, folder)
        if place is None or not place.is_file():
            continue
        files = [path for path in source.rglob("*") if path.is_file()] if source else []
        packaged = {one for path in files for one in _certificates(path)}
        count = len(_certificates(place) - packaged)
        if count:
            what = f"{count} certificate authorities that the distribution does not bring"
            yield Finding(bundle, what, _WHY)


def _certificates(path: Path) -> set[bytes]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
    return {b"".join(match[1].split()) for match in _CERTIFICATE.finditer(text)}
