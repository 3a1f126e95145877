"""What a build left in one region of AWS, found by its tags.

Packer's plugin 1.3.0, the oldest that images/plugins.pkr.hcl takes, tags what it makes as it makes
it (builder/common: step_run_source_instance, step_security_group, step_key_pair and
step_ami_region_copy; builder/ebs/step_create_ami), so that nothing is without tags when it is
killed.
"""

import re
from typing import Any

from mvstack.image.clouds import BUILD, IMAGE, OURS, STATE, TAG, Leftover, ours, when
from mvstack.image.clouds.aws_ec2 import Ec2, snapshots_of, tags_of

_BUILDING = [
    {"Name": f"tag:{TAG}", "Values": [OURS]},
    {"Name": f"tag:{STATE}", "Values": ["building"]},
]
_ENDED = ("shutting-down", "terminated")

Item = dict[str, Any]


def find(ec2: Ec2) -> list[Leftover]:
    """All leftovers of a region, in the order in which they can be removed."""
    groups = ec2.all("describe_instances", Filters=_BUILDING)
    machines = [one for group in groups for one in group["Instances"]]
    amis = ec2.all("describe_images", Owners=["self"])
    used = {snapshot for ami in amis for snapshot in snapshots_of(ami)}
    snapshots = ec2.all("describe_snapshots", OwnerIds=["self"])
    found = [
        *(
            ("instance", "InstanceId", one)
            for one in machines
            if one["State"]["Name"] not in _ENDED
        ),
        *(
            ("volume", "VolumeId", one)
            for one in ec2.all("describe_volumes", Filters=_BUILDING)
            # these go with their instance
            if not any(at.get("DeleteOnTermination") for at in one.get("Attachments") or [])
        ),
        *(("image", "ImageId", one) for one in amis if _is_building(one)),
        # of an AMI that is not there; one that is has its snapshots removed with it
        *(
            ("snapshot", "SnapshotId", one)
            for one in snapshots
            if ours(tags_of(one)) and one["SnapshotId"] not in used
        ),
        *(
            ("security group", "GroupId", one)
            for one in ec2.all("describe_security_groups")
            if _is_building(one)
        ),
        *(
            ("key pair", "KeyName", one)
            for one in ec2.all("describe_key_pairs")
            if _is_building(one)
        ),
    ]
    return [_leftover(ec2, kind, one[name], one) for kind, name, one in found]


def remove(ec2: Ec2, leftover: Leftover) -> None:
    """Remove one of them and wait until it is gone."""
    name = leftover.id
    if leftover.kind == "instance":
        if ec2.gone("terminate_instances", InstanceIds=[name]):
            ec2.until("instance_terminated", InstanceIds=[name])
    elif leftover.kind == "volume":
        # what is attached to an instance that ends is let go of a little later
        ec2.wait(lambda: _free(ec2, name), f"detaching {name}")
        ec2.gone("delete_volume", VolumeId=name)
        ec2.until("volume_deleted", VolumeIds=[name])
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


def _leftover(ec2: Ec2, kind: str, name: str, item: Item) -> Leftover:
    tags = tags_of(item)
    times = (item.get(key) for key in ("LaunchTime", "CreateTime", "StartTime", "CreationDate"))
    created = next((str(one) for one in times if one), "")
    build = tags.get(BUILD, "")
    stamp = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)", created)
    told = f"{stamp[1]}T{stamp[2]}Z" if stamp else when(build)
    return Leftover(kind, name, build, tags.get(IMAGE, ""), told, ec2.region)


def _is_building(item: Item) -> bool:
    tags = tags_of(item)
    return ours(tags) and tags.get(STATE) == "building"


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
