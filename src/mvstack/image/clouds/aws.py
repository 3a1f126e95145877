"""AWS: images are AMIs, one in each region. Regions and accounts are given; nothing is guessed."""

import contextlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from mvstack.image.clouds import (
    BUILD,
    COMMIT,
    END,
    IMAGE,
    OURS,
    STATE,
    TAG,
    VERSION,
    Booted,
    CloudImage,
    Leftover,
    image_name,
    must_be_candidate,
    must_be_over,
    must_be_published,
    never_built,
    not_over,
    ours,
    published_already,
)
from mvstack.image.clouds.aws_ec2 import Ec2, snapshots_of, tags_of
from mvstack.image.clouds.aws_leftovers import find, remove
from mvstack.image.clouds.disks import Note, bring
from mvstack.support.errors import MvstackError, Refused


class Aws:
    """The AMIs of one account, built in ``region``.

    ``regions`` are those to look in besides. ``share`` are the account numbers that may start what
    is published; nobody else may when it is empty. ``keys`` are the site's own keys by region, with
    which disks are encrypted, else with AWS's own for EBS, which it shares with nobody. ``pause``
    is the time between two looks at something that takes a while, in seconds. Endpoint and
    credentials are found as boto3 finds them (AWS_ENDPOINT_URL, AWS_PROFILE, …).
    """

    name = "aws"

    def __init__(
        self,
        region: str,
        regions: Sequence[str] = (),
        share: Sequence[str] = (),
        pause: float = 5.0,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.region = region
        self.regions = list(dict.fromkeys([region, *regions]))
        self.share = tuple(share)
        self.keys = dict(keys or {})
        self._pause = pause
        self._clients: dict[str, Ec2] = {}

    def leftovers(self) -> list[Leftover]:
        return [found for region in self.regions for found in find(self._ec2(region))]

    def remove(self, leftover: Leftover) -> None:
        remove(self._ec2(leftover.region), leftover)

    def images(self) -> list[CloudImage]:
        """See :class:`Cloud`; the state is that in the region that images are built in."""
        found: dict[tuple[str, str], CloudImage] = {}
        for region in self.regions:
            wanted = [
                {"Name": f"tag:{TAG}", "Values": [OURS]},
                {"Name": f"tag:{STATE}", "Values": ["candidate", "published"]},
            ]
            for ami in self._ec2(region).all("describe_images", Owners=["self"], Filters=wanted):
                tags = tags_of(ami)
                key = (tags.get(IMAGE, ""), tags.get(VERSION, ""))
                first = found.get(key)
                found[key] = CloudImage(
                    image=key[0],
                    version=key[1],
                    state=first.state if first else tags[STATE],  # type: ignore[arg-type]
                    build=tags.get(BUILD, ""),
                    commit=tags.get(COMMIT, ""),
                    created=first.created if first else str(ami.get("CreationDate", "")),
                    regions={**(first.regions if first else {}), region: ami["ImageId"]},
                    end=tags.get(END, ""),
                )
        return [found[key] for key in sorted(found)]

    def disk(self, image: str, version: str, to: Path, note: Note) -> None:
        """See :class:`Cloud`. Block by block through EBS direct APIs; no instance is started.

        The account needs ebs:ListSnapshotBlocks and ebs:GetSnapshotBlock, and may use the key.
        """
        (snapshot,) = snapshots_of(self._home(image, version))
        ebs = Ec2(self.region, self._pause, "ebs")
        blocks, asked = [], {"SnapshotId": snapshot}
        while True:
            page = ebs.call("list_snapshot_blocks", **asked)
            blocks += page["Blocks"]
            if not page.get("NextToken"):
                break
            asked["NextToken"] = page["NextToken"]

        def read(block: dict[str, Any]) -> tuple[int, bytes]:
            index, token = block["BlockIndex"], block["BlockToken"]
            named = {"SnapshotId": snapshot, "BlockIndex": index, "BlockToken": token}
            got = ebs.call("get_snapshot_block", **named)
            data = got["BlockData"].read()
            if b64encode(sha256(data).digest()).decode() != got["Checksum"]:
                raise MvstackError(f"block {index} came damaged", snapshot)
            return index * page["BlockSize"], data

        bring(to, page["VolumeSize"] << 30, blocks, read, note)

    def accept(self, image: str, version: str) -> None:
        """See :class:`Cloud`; in every region that the build copied the image to."""
        if tags_of(self._home(image, version)).get(STATE) == "published":
            raise published_already(image, version, self.region)
        for region, ami in self._everywhere(image, version).items():
            tags = tags_of(ami)
            if tags.get(STATE) != "candidate" or not ours(tags):
                self._tag(region, ami, {**tags, TAG: OURS, STATE: "candidate"})

    def publish(
        self, image: str, version: str, regions: Sequence[str], again: bool = False
    ) -> dict[str, str]:
        """See :class:`Cloud`. Copies are encrypted with the site's key of their region, if any.

        With ``again`` for the accounts that may start it already. Raises Refused when it is to be
        shared and a region has no such key: before it is copied.
        """
        home = self._home(image, version)
        tags, share = tags_of(home), self.share
        state, end = tags.get(STATE, ""), tags.get(END, "")
        if again:
            must_be_published(image, version, state, self.region)
            not_over(f"{image} {version}", end, self.region)
            asked = {"ImageId": home["ImageId"], "Attribute": "launchPermission"}
            known = self._ec2(self.region).call("describe_image_attribute", **asked)
            share = tuple(row["UserId"] for row in known["LaunchPermissions"] if "UserId" in row)
        else:
            must_be_candidate(image, version, state, self.region)
        lacking = [one for one in dict.fromkeys([self.region, *regions]) if one not in self.keys]
        if share and lacking:
            raise Refused(
                "AWS shares no image that is encrypted with its own key for EBS",
                ", ".join(lacking),
                todo="name a key of your account for each region in the site's file: "
                'aws_kms_key (where it is built), aws_copy_keys {"region": "key"}',
                outcome="Nothing was published.",
            )
        where = {self.region: str(home["ImageId"])}
        for region in dict.fromkeys(regions):
            if region != self.region:
                there = self._ami(region, image, version)
                ami = there or self._copy(home, region, image, version)
                where[region] = str(ami["ImageId"])
        for region, name in where.items():
            for wanted in ("image_exists", "image_available"):
                self._ec2(region).until(wanted, ImageIds=[name])
        # the region of the build last: it decides whether a version counts as published
        for region, name in reversed(where.items()):
            ec2 = self._ec2(region)
            if share:
                may = {"Add": [{"UserId": one} for one in share]}
                asked = {"ImageId": name, "Attribute": "launchPermission"}
                ec2.call("modify_image_attribute", LaunchPermission=may, **asked)
            if end:
                self._ends(region, name, end)
            ami = ec2.one("describe_images", ImageIds=[name])
            self._tag(region, ami, {**tags, STATE: "published"})
        return where

    @contextlib.contextmanager
    def machines(self, version: str, how: Booted) -> Iterator[list[str]]:
        """See :class:`Cloud`. With all their adapters of EFA, without a public address.

        Each machine shuts itself down that long after each start, and AWS terminates what does.
        """
        image, ec2 = how.image, self._ec2(self.region)
        home = self._home(image.name, version)
        tags = {**tags_of(home), TAG: OURS, STATE: "building", BUILD: how.build}
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        place = {"SubnetId": how.site["aws_subnet"], "Groups": [how.site["aws_security_group"]]}
        count = int(image.hardware["links"]) if image.nic_stack == "efa" else 0
        cards = [
            {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa", **place}
            for card in range(count)
        ]
        # at the end of every start; bootcmd comes before what shutdown and systemd-run talk to
        end = {"path": "/var/lib/cloud/scripts/per-boot/end", "permissions": "0755"}
        end["content"] = f"#!/bin/sh\nshutdown -P +{how.minutes}\n"
        told = {"ssh_authorized_keys": [how.key], "write_files": [end]}
        made = ec2.call(
            "run_instances",
            ImageId=home["ImageId"],
            InstanceType=image.machine,
            MinCount=how.count,
            MaxCount=how.count,
            NetworkInterfaces=cards or [{"DeviceIndex": 0, **place}],
            UserData=f"#cloud-config\n{json.dumps(told)}\n",
            InstanceInitiatedShutdownBehavior="terminate",
            MetadataOptions={"HttpTokens": "required"},
            TagSpecifications=[
                {"ResourceType": one, "Tags": rows} for one in ("instance", "volume")
            ],
        )["Instances"]
        names = [str(one["InstanceId"]) for one in made]
        try:
            ec2.until("instance_running", InstanceIds=names)
            yield [str(one["PrivateIpAddress"]) for one in made]
        finally:
            with contextlib.ExitStack() as stack:  # each, should another's end fail
                for name in names:
                    left = Leftover("instance", name, how.build, image.name, "", self.region)
                    stack.callback(remove, ec2, left)
                # first: none costs money while another is waited for
                stack.callback(ec2.gone, "terminate_instances", InstanceIds=names)

    def deprecate(self, image: str, version: str, last: date) -> dict[str, str]:
        """See :class:`Cloud`. Other accounts no longer see it listed after that day.

        A copy that the build made and nobody published ends with the others.
        """
        found = self._everywhere(image, version)
        must_be_published(
            image, version, tags_of(self._home(image, version)).get(STATE, ""), self.region
        )
        for region, ami in found.items():
            self._ends(region, ami["ImageId"], last.isoformat())
            self._tag(region, ami, {**tags_of(ami), END: last.isoformat()})
        return {region: str(ami["ImageId"]) for region, ami in found.items()}

    def delete(self, image: str, version: str) -> dict[str, str]:
        """See :class:`Cloud`; the AMIs with their snapshots."""
        found = self._everywhere(image, version)
        for region, ami in found.items():
            must_be_over(image, version, tags_of(ami).get(END, ""), region)
        where = {region: str(ami["ImageId"]) for region, ami in found.items()}
        for region, name in where.items():
            remove(self._ec2(region), Leftover("image", name, "", image, "", region))
        return where

    def _everywhere(self, image: str, version: str) -> dict[str, dict[str, Any]]:
        """The AMI in each region that has one; the region of the build last, as it decides."""
        found = {one: self._ami(one, image, version) for one in reversed(self.regions)}
        amis = {region: ami for region, ami in found.items() if ami is not None}
        if not amis:
            raise never_built(image, version, ", ".join(self.regions))
        return amis

    def _ec2(self, region: str) -> Ec2:
        if region not in self._clients:
            self._clients[region] = Ec2(region, self._pause)
        return self._clients[region]

    def _ami(self, region: str, image: str, version: str) -> dict[str, Any] | None:
        named = [{"Name": "name", "Values": [image_name(image, version)]}]
        found = self._ec2(region).all("describe_images", Owners=["self"], Filters=named)
        return found[0] if found else None

    def _home(self, image: str, version: str) -> dict[str, Any]:
        """The AMI in the region that images are built in."""
        if ami := self._ami(self.region, image, version):
            return ami
        raise never_built(image, version, self.region)

    def _copy(self, home: dict[str, Any], region: str, image: str, version: str) -> dict[str, Any]:
        # tagged as building at once, so that a copy that was cut off is found
        tags = [{"Key": key, "Value": value} for key, value in tags_of(home).items()]
        tags = [*(one for one in tags if one["Key"] != STATE), {"Key": STATE, "Value": "building"}]
        made = self._ec2(region).call(
            "copy_image",
            Name=image_name(image, version),
            Description=home.get("Description", ""),
            SourceImageId=home["ImageId"],
            SourceRegion=self.region,
            Encrypted=True,
            **({"KmsKeyId": self.keys[region]} if region in self.keys else {}),
            TagSpecifications=[{"ResourceType": "image", "Tags": tags}],
        )
        return dict(made)

    def _ends(self, region: str, ami: str, last: str) -> None:
        until = f"{last}T23:59:00Z"
        self._ec2(region).call("enable_image_deprecation", ImageId=ami, DeprecateAt=until)

    def _tag(self, region: str, ami: dict[str, Any], tags: dict[str, str]) -> None:
        self._ec2(region).call(
            "create_tags",
            Resources=[ami["ImageId"], *snapshots_of(ami)],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
