"""AWS: images are AMIs, one in each region. Regions and accounts are given; nothing is guessed."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
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
    CloudImage,
    Leftover,
    Published,
    image_name,
    must_be_candidate,
    must_be_over,
    must_be_published,
    never_built,
    ours,
    published_already,
)
from mvstack.image.clouds.aws_ec2 import Ec2, snapshots_of, tags_of
from mvstack.image.clouds.aws_leftovers import find, machines, remove
from mvstack.image.clouds.disks import Note, bring
from mvstack.support.errors import MvstackError, Problem, Refused


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
        """See :class:`Cloud`. What Packer had no time to tag is found by the build's instance.

        That holds for AMIs before their tagging, and for temporary key pairs and security groups,
        which not every Packer tags. Such a thing is not found once AWS no longer shows the
        instance, about an hour after its end.
        """
        regions = [self._ec2(region) for region in self.regions]
        builders = [one for ec2 in regions for one in machines(ec2)]
        return [found for ec2 in regions for found in find(ec2, builders)]

    def remove(self, leftover: Leftover) -> None:
        """See :class:`Cloud`."""
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
        ami = self._ami(self.region, image, version)
        if ami is None:
            raise never_built(image, version, self.region)
        (snapshot,) = snapshots_of(ami)
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
                raise MvstackError(Problem(f"block {index} came damaged", snapshot))
            return index * page["BlockSize"], data

        bring(to, page["VolumeSize"] << 30, blocks, read, note)

    def accept(self, image: str, version: str) -> None:
        """See :class:`Cloud`; in every region that the build copied the image to."""
        found = {region: self._ami(region, image, version) for region in self.regions}
        home = found[self.region]
        if home is None:
            raise never_built(image, version, self.region)
        if tags_of(home).get(STATE) == "published":
            raise published_already(image, version, self.region)
        for region, ami in found.items():
            if ami is not None:
                self._set_state(region, ami, "candidate")

    def publish(self, image: str, version: str, regions: Sequence[str]) -> Published:
        """See :class:`Cloud`. Copies are encrypted with the site's key of their region, if any.

        Raises Refused when it is to be shared and a region has no such key: before it is copied.
        """
        lacking = [one for one in dict.fromkeys([self.region, *regions]) if one not in self.keys]
        if self.share and lacking:
            raise Refused(
                Problem(
                    "AWS shares no image that is encrypted with its own key for EBS",
                    ", ".join(lacking),
                    todo="name a key of your account for each region in the site's file: "
                    'aws_kms_key (where it is built), aws_copy_keys {"region": "key"}',
                ),
                outcome="Nothing was published.",
            )
        home = self._ami(self.region, image, version)
        if home is None:
            raise never_built(image, version, self.region)
        must_be_candidate(image, version, tags_of(home).get(STATE, ""), self.region)
        amis, copied = {self.region: home}, []
        for region in dict.fromkeys(regions):
            if region != self.region:
                there = self._ami(region, image, version)
                if there is None:
                    copied.append(region)
                amis[region] = there or self._copy(home, region, image, version)
        for region, ami in amis.items():
            self._until_available(region, ami["ImageId"])
        if self.share:
            for region, ami in amis.items():
                self._share(region, ami["ImageId"])
        # the region of the build last: it decides whether a version counts as published
        for region in sorted(amis, key=lambda one: one == self.region):
            ami = self._ec2(region).one("describe_images", ImageIds=[amis[region]["ImageId"]])
            self._tag(region, ami, {**tags_of(home), STATE: "published"})
        where = {region: str(ami["ImageId"]) for region, ami in amis.items()}
        return Published(image, version, where, tuple(copied), self.share)

    def deprecate(self, image: str, version: str, last: date) -> dict[str, str]:
        """See :class:`Cloud`. Other accounts no longer see it listed after that day."""
        found = self._everywhere(image, version)
        for region, ami in found.items():
            must_be_published(image, version, tags_of(ami).get(STATE, ""), region)
        for region, ami in found.items():
            until, tags = f"{last}T23:59:00Z", {**tags_of(ami), END: last.isoformat()}
            ec2 = self._ec2(region)
            ec2.call("enable_image_deprecation", ImageId=ami["ImageId"], DeprecateAt=until)
            self._tag(region, ami, tags)
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

    def _until_available(self, region: str, ami: str) -> None:
        ec2 = self._ec2(region)

        def is_available() -> bool:
            return bool(ec2.one("describe_images", ImageIds=[ami])["State"] == "available")

        ec2.wait(is_available, f"the copy {ami}")

    def _share(self, region: str, ami: str) -> None:
        self._ec2(region).call(
            "modify_image_attribute",
            ImageId=ami,
            Attribute="launchPermission",
            LaunchPermission={"Add": [{"UserId": one} for one in self.share]},
        )

    def _set_state(self, region: str, ami: dict[str, Any], state: str) -> None:
        tags = tags_of(ami)
        if tags.get(STATE) != state or not ours(tags):
            self._tag(region, ami, {**tags, TAG: OURS, STATE: state})

    def _tag(self, region: str, ami: dict[str, Any], tags: dict[str, str]) -> None:
        self._ec2(region).call(
            "create_tags",
            Resources=[ami["ImageId"], *snapshots_of(ami)],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
