"""What a build left in one region of AWS: found by tags, or by the instance that it belongs to."""

import re
from typing import Any

from mvstack.image.clouds import (
    BUILD,
    IMAGE,
    OURS,
    STATE,
    TAG,
    VERSION,
    Leftover,
    image_name,
    ours,
    when,
)
from mvstack.image.clouds.aws_ec2 import Ec2, snapshots_of, tags_of

# What Packer calls the key pairs and security groups that it makes for one build alone.
_TEMPORARY = re.compile(r"packer[_-]|mvapich-stack-")
_SNAPSHOT = re.compile(r"Created by CreateImage\((i-[0-9a-f]+)\) for (ami-[0-9a-f]+)")
_BUILDING = [
    {"Name": f"tag:{TAG}", "Values": [OURS]},
    {"Name": f"tag:{STATE}", "Values": ["building"]},
]
_ENDED = ("shutting-down", "terminated")

Item = dict[str, Any]


def machines(ec2: Ec2) -> list[Item]:
    """The instances that builds use, ended ones too as long as AWS shows them (about an hour)."""
    groups = ec2.all("describe_instances", Filters=_BUILDING)
    return [one for group in groups for one in group["Instances"]]


def find(ec2: Ec2, builders: list[Item]) -> list[Leftover]:
    """All leftovers of a region, in the order in which they can be removed.

    ``builders`` are the :func:`machines` of all regions: an AMI is copied to others before it has
    tags.
    """
    owners = _Owners(builders)
    here = {one["InstanceId"] for one in machines(ec2)}
    live = [one for one in builders if one["State"]["Name"] not in _ENDED]
    amis = ec2.all("describe_images", Owners=["self"])
    return [
        *(
            _leftover(ec2, "instance", one["InstanceId"], one)
            for one in live
            if one["InstanceId"] in here
        ),
        *_volumes(ec2),
        *(
            _leftover(ec2, "image", one["ImageId"], one, owners.of_image(one))
            for one in amis
            if _is_building(one) or (not ours(tags_of(one)) and owners.of_image(one))
        ),
        *_snapshots(ec2, owners, amis),
        *_security_groups(ec2, builders),
        *_key_pairs(ec2, builders),
    ]


class _Owners:
    """The instance that something without tags was made by."""

    def __init__(self, builders: list[Item]) -> None:
        self.by_id = {one["InstanceId"]: one for one in builders}
        self._by_name = {}
        for one in builders:
            tags = tags_of(one)
            self._by_name[image_name(tags.get(IMAGE, ""), tags.get(VERSION, ""))] = one

    def of_image(self, ami: Item) -> Item | None:
        """By what AWS says that the AMI was made from, or by the name that this build gives."""
        owner = self.by_id.get(ami.get("SourceInstanceId", ""))
        return owner or self._by_name.get(ami.get("Name", ""))


def remove(ec2: Ec2, leftover: Leftover) -> None:
    """Remove one of them and wait until it is gone."""
    name = leftover.id
    if leftover.kind == "instance":
        ec2.gone("terminate_instances", InstanceIds=[name])
        ec2.wait(lambda: _terminated(ec2, name), f"terminating {name}")
    elif leftover.kind == "volume":
        # what is attached to an instance that ends is let go of a little later
        ec2.wait(lambda: _free(ec2, name), f"detaching {name}")
        ec2.gone("delete_volume", VolumeId=name)
        ec2.wait(lambda: not ec2.all("describe_volumes", VolumeIds=[name]), f"deleting {name}")
    elif leftover.kind == "image":
        found = ec2.all("describe_images", Owners=["self"], Filters=_named("image-id", name))
        ec2.gone("deregister_image", ImageId=name)
        ec2.wait(
            lambda: not ec2.all("describe_images", Filters=_named("image-id", name)),
            f"deregistering {name}",
        )
        for snapshot in (one for ami in found for one in snapshots_of(ami)):
            ec2.gone("delete_snapshot", SnapshotId=snapshot)
    elif leftover.kind == "snapshot":
        ec2.gone("delete_snapshot", SnapshotId=name)
    elif leftover.kind == "security group":
        ec2.wait(lambda: _unused(ec2, name), f"freeing {name}")
        ec2.gone("delete_security_group", GroupId=name)
    elif leftover.kind == "key pair":
        ec2.gone("delete_key_pair", KeyName=name)
    else:
        raise ValueError(f"AWS has no {leftover.kind}")


def _leftover(ec2: Ec2, kind: str, name: str, item: Item, owner: Item | None = None) -> Leftover:
    """``owner`` has the tags of what has none of its own."""
    tags = tags_of(item) if ours(tags_of(item)) else tags_of(owner or {})
    times = (item.get(key) for key in ("LaunchTime", "CreateTime", "StartTime", "CreationDate"))
    created = next((str(one) for one in times if one), "")
    build = tags.get(BUILD, "")
    stamp = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)", created)
    told = f"{stamp[1]}T{stamp[2]}Z" if stamp else when(build)
    return Leftover(kind, name, build, tags.get(IMAGE, ""), told, ec2.region)


def _volumes(ec2: Ec2) -> list[Leftover]:
    found = ec2.all("describe_volumes", Filters=_BUILDING)
    return [
        _leftover(ec2, "volume", one["VolumeId"], one)
        for one in found
        # these go with their instance
        if not any(at.get("DeleteOnTermination") for at in one.get("Attachments") or [])
    ]


def _snapshots(ec2: Ec2, owners: _Owners, amis: list[Item]) -> list[Leftover]:
    """Of an AMI that is not there; one that is has its snapshots removed with it."""
    used = {snapshot for ami in amis for snapshot in snapshots_of(ami)}
    there = {ami["ImageId"] for ami in amis}
    found = []
    for one in ec2.all("describe_snapshots", OwnerIds=["self"]):
        made = _SNAPSHOT.search(str(one.get("Description", "")))
        owner = owners.by_id.get(made[1]) if made and made[2] not in there else None
        if one["SnapshotId"] not in used and (ours(tags_of(one)) or owner):
            found.append(_leftover(ec2, "snapshot", one["SnapshotId"], one, owner))
    return found


def _security_groups(ec2: Ec2, builders: list[Item]) -> list[Leftover]:
    owners = {
        group["GroupId"]: one
        for one in builders
        for group in one.get("SecurityGroups") or []
        if _TEMPORARY.match(group.get("GroupName", ""))
    }
    return [
        _leftover(ec2, "security group", one["GroupId"], one, owners.get(one["GroupId"]))
        for one in ec2.all("describe_security_groups")
        if _is_building(one) or one["GroupId"] in owners
    ]


def _key_pairs(ec2: Ec2, builders: list[Item]) -> list[Leftover]:
    owners = {one["KeyName"]: one for one in builders if one.get("KeyName")}
    return [
        _leftover(ec2, "key pair", one["KeyName"], one, owners.get(one["KeyName"]))
        for one in ec2.all("describe_key_pairs")
        if _is_building(one) or (one["KeyName"] in owners and _TEMPORARY.match(one["KeyName"]))
    ]


def _is_building(item: Item) -> bool:
    tags = tags_of(item)
    return ours(tags) and tags.get(STATE) == "building"


def _terminated(ec2: Ec2, name: str) -> bool:
    groups = ec2.all("describe_instances", InstanceIds=[name])
    states = [one["State"]["Name"] for group in groups for one in group["Instances"]]
    return all(state == "terminated" for state in states)


def _free(ec2: Ec2, name: str) -> bool:
    found = ec2.all("describe_volumes", VolumeIds=[name])
    return all(one["State"] in ("available", "error") for one in found)


def _unused(ec2: Ec2, name: str) -> bool:
    """Whether no instance that has not ended is in the security group."""
    groups = ec2.all("describe_instances", Filters=_named("instance.group-id", name))
    states = [one["State"]["Name"] for group in groups for one in group["Instances"]]
    return all(state == "terminated" for state in states)


def _named(field: str, value: str) -> list[dict[str, Any]]:
    return [{"Name": field, "Values": [value]}]
