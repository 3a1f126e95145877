"""moto's server, where every snapshot holds the disk whose path stands in MVSTACK_TEST_DISK.

It takes EnableImageDeprecation as well. moto knows EBS direct APIs, but its AMIs' snapshots hold
nothing. As AWS, this lists blocks of 512 KiB that are not empty, a few on each page, and gives a
sum with each. It checks neither who may read a snapshot nor a block's token.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from cloud_disk import given
from moto.core.responses import ActionResult
from moto.ebs.responses import EBSResponse
from moto.ec2.responses import EC2Response
from moto.server import main

SIZE, PAGE = 512 << 10, 100


def blocks(self: Any) -> ActionResult:
    disk = given(Path(os.environ["MVSTACK_TEST_DISK"]))
    gb = -(-disk.stat().st_size >> 30) or 1
    begin = int(self._get_param("NextToken") or 0)
    found = []
    with disk.open("rb") as stream:
        for index in range(begin, -(-disk.stat().st_size // SIZE)):
            stream.seek(index * SIZE)
            data = stream.read(SIZE)
            if data.count(0) != len(data):
                if len(found) == PAGE:
                    more = {"NextToken": str(index)}
                    break
                found.append({"BlockIndex": index, "BlockToken": f"token-{index}"})
        else:
            more = {}
    return ActionResult({"Blocks": found, "VolumeSize": gb, "BlockSize": SIZE, **more})


def block(self: Any) -> ActionResult:
    index = int(self._get_param("BlockIndex"))
    with Path(os.environ["MVSTACK_TEST_DISK"]).open("rb") as stream:
        stream.seek(index * SIZE)
        data = stream.read(SIZE).ljust(SIZE, b"\0")
    told = base64.b64encode(hashlib.sha256(data).digest()).decode()
    return ActionResult(
        {"DataLength": SIZE, "BlockData": data, "Checksum": told, "ChecksumAlgorithm": "SHA256"}
    )


def deprecate(self: Any) -> ActionResult:
    """EnableImageDeprecation, which moto lacks: of an image that is there, kept nowhere."""
    self.ec2_backend.describe_images([self._get_param("ImageId")], {}, [], [])
    return ActionResult({"Return": True})


EC2Response.enable_image_deprecation = deprecate
EBSResponse.list_snapshot_blocks = blocks
EBSResponse.get_snapshot_block = block
main(sys.argv[1:])
