"""The disk of a gallery's version, read through a copy that lives as long as it is read.

The copy stands in a resource group of its own, tagged as what a build makes: where this is cut off,
`mvstack image clean` finds it.
"""

import contextlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mvstack.image.clouds import BUILD, OURS, STATE, TAG
from mvstack.image.clouds.disks import Note, bring

_PIECE = 4 << 20  # bytes; the most that the service gives of a page blob at once
_FOOTER = 512  # bytes: a disk is given out as a fixed VHD, which is the raw disk and a footer
_VALID = 4 * 3600  # seconds
_VERSION = {"x-ms-version": "2021-08-06"}


@contextlib.contextmanager
def address_of(compute: Any, resources: Any, version: Any) -> Iterator[str]:
    """In the block, where the disk of ``version`` can be read; its copy is gone afterwards."""
    build = version.tags.get(BUILD, "")
    group, name, place = f"{TAG}-disk-{build}", "disk", version.location
    tags = {**version.tags, TAG: OURS, STATE: "building"}
    resources.resource_groups.create_or_update(group, {"location": place, "tags": tags})
    try:
        source = {"createOption": "FromImage", "galleryImageReference": {"id": version.id}}
        disk = {"location": place, "tags": tags, "properties": {"creationData": source}}
        compute.disks.begin_create_or_update(group, name, disk).result()
        asked = {"access": "Read", "durationInSeconds": _VALID}
        try:
            yield str(compute.disks.begin_grant_access(group, name, asked).result().access_sas)
        finally:
            compute.disks.begin_revoke_access(group, name).result()
    finally:
        resources.resource_groups.begin_delete(group).result()


def read(address: str, to: Path, note: Note) -> None:
    """Write the raw disk at ``address`` to ``to``. Raises OSError."""
    size = int(_ask(address, "HEAD").headers["Content-Length"]) - _FOOTER
    listed = ElementTree.fromstring(_ask(f"{address}&comp=pagelist").read())
    ranges = [
        (int(row.findtext("Start", "0")), min(int(row.findtext("End", "0")) + 1, size))
        for row in listed.iter("PageRange")
    ]
    pieces = [
        (begin, min(begin + _PIECE, end))
        for start, end in ranges
        for begin in range(start, end, _PIECE)
    ]

    def piece(of: tuple[int, int]) -> tuple[int, bytes]:
        begin, end = of
        data = _ask(address, bytes_=f"bytes={begin}-{end - 1}").read()
        if len(data) != end - begin:
            raise OSError(f"{len(data)} bytes came of {end - begin} at {begin}")
        return begin, data

    bring(to, size, pieces, piece, note)


def _ask(address: str, method: str = "GET", bytes_: str = "") -> Any:
    headers = {**_VERSION, **({"x-ms-range": bytes_} if bytes_ else {})}
    request = urllib.request.Request(address, method=method, headers=headers)
    return urllib.request.urlopen(request, timeout=300)
