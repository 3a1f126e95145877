"""Whole builds by the repository's templates for AWS, against moto and a real sshd.

moto is an emulator: see images/emulated_aws.py for what this cannot show.
"""

from __future__ import annotations

import base64
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from images.base import base
from images.cloud_disk import sparse_disk
from images.emulated_aws import ELSEWHERE, REGION, EmulatedAws
from images.flow import BUILD, IMAGE, NAME, VERSION, Flow
from images.instance import Instance, make_key
from images.kits import FAILING_STEP, FAILING_TEST, PACKAGES, WAITING, load_image
from images.needs import needs
from images.world import LOOPBACK, World, networks, processes

from mvstack.image import publish, store, vm
from mvstack.image.boot import Spend, boot_test
from mvstack.image.clouds import BUILD as BUILD_TAG
from mvstack.image.clouds import IMAGE as IMAGE_TAG
from mvstack.image.clouds import OURS, STATE, TAG, Booted
from mvstack.image.clouds.aws import Aws
from mvstack.image.flow import Asked
from mvstack.support.errors import BuildFailed, CheckFailed, Missing, MvstackError, Refused
from mvstack.support.progress import Progress

Start = Callable[..., Flow]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    needs("moto", "flask", "boto3")
    with World() as made:
        yield made


@pytest.fixture(scope="module")
def emulator(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(world, tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture(scope="module")
def key(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture
def aws(emulator: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> EmulatedAws:
    """The emulator as it is before anything was made; our own code finds it by its environment."""
    emulator.reset()
    for name, value in {**emulator.environment(), "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    return emulator


@pytest.fixture
def instance(world: World, key: Path) -> Iterator[Instance]:
    with Instance(world, base(PACKAGES), key.with_suffix(".pub")) as made:
        yield made


@pytest.fixture
def start(
    world: World, aws: EmulatedAws, instance: Instance, key: Path, tmp_path: Path
) -> Iterator[Start]:
    flows: list[Flow] = []

    def begin(steps: dict[str, str] | None = None, **variables: Any) -> Flow:
        given = {**aws.variables(), **variables}
        flow = Flow(world, instance, key, tmp_path / f"flow{len(flows)}", "aws", given, {}, steps)
        flows.append(flow)
        return flow

    yield begin
    for flow in flows:
        flow.kill_all()


@pytest.fixture
def cloud(aws: EmulatedAws) -> Aws:
    return Aws(REGION, [ELSEWHERE], pause=0.05)


@pytest.fixture
def nothing_is_left(aws: EmulatedAws) -> Iterator[None]:
    """At the end everything is as at the beginning, in both regions."""
    before = aws.left(REGION), aws.left(ELSEWHERE)
    yield
    assert (aws.left(REGION), aws.left(ELSEWHERE)) == before


def has_been_made_into_the_image(instance: Instance) -> None:
    """What is in the instance at the end of its build, and what is not any more."""
    etc = instance.root / "etc"
    assert "memlock" in (etc / "security/limits.d/90-mvapich-stack.conf").read_text()
    assert (etc / "mvapich-stack/release.sha256").exists()
    assert not list(etc.glob("ssh/ssh_host_*"))
    assert not list((instance.root / "home").rglob("authorized_keys"))
    assert not (instance.root / "var/tmp/mvapich-stack-image").exists()


def asked(aws: EmulatedAws, action: str) -> list[dict[str, str]]:
    return [one for one in aws.requests() if one["Action"] == action]


def values(form: dict[str, str]) -> dict[str, str]:
    """The tags that a request gives."""
    keys = {name: value for name, value in form.items() if name.endswith(".Key")}
    return {value: form[f"{name.removesuffix('.Key')}.Value"] for name, value in keys.items()}


def test_a_build_makes_a_candidate_in_each_region_and_leaves_nothing_else(
    start: Start, aws: EmulatedAws, instance: Instance, world: World, cloud: Aws
) -> None:
    before = aws.left(REGION), aws.left(ELSEWHERE)
    done = start(last_day="2027-06-30").wait()
    assert done.code == 0, done.output
    told = done.output
    assert told.index("changed: 0 (") < told.index("tests: 2 passed") < told.index("generalised")
    has_been_made_into_the_image(instance)
    assert done.connected() == {f"{LOOPBACK}:{instance.port}"}

    for region, was in zip((REGION, ELSEWHERE), before, strict=True):
        left = aws.left(region)
        assert left.pop("images") == [NAME]
        assert len(left.pop("snapshots")) == len(was["snapshots"]) + 1
        assert all(not found for found in left.values())

    (run,) = asked(aws, "RunInstances")
    assert run["BlockDeviceMapping.1.Ebs.VolumeType"] == "gp3"
    assert values(run)[STATE] == "building" and values(run)[BUILD_TAG] == BUILD
    changes = asked(aws, "ModifyInstanceAttribute")
    assert {"EnaSupport.Value", "SriovNetSupport.Value"} <= {key for one in changes for key in one}
    copies = asked(aws, "CopyImage")
    assert {one["region"] for one in copies} == {REGION, ELSEWHERE}
    assert all(one["Encrypted"] == "true" and one["Name"] == NAME for one in copies)
    assert not any("LaunchPermission" in key for one in aws.requests() for key in one)

    with world.inside():
        assert cloud.images() == [], "it is none until its builder says so"
        cloud.accept(IMAGE, VERSION)
        (made,) = cloud.images()
        assert cloud.leftovers() == []
    assert (made.image, made.version, made.state) == (IMAGE, VERSION, "candidate")
    assert made.end == "2027-06-30"
    assert set(made.regions) == {REGION, ELSEWHERE}


def test_the_disk_of_what_was_built_is_brought_here_block_by_block(
    start: Start, aws: EmulatedAws, world: World, cloud: Aws, tmp_path: Path
) -> None:
    assert start().wait().code == 0
    disk = sparse_disk(aws.disk, 130)  # more blocks than there are on a page
    told: list[str] = []
    with world.inside():
        cloud.disk(IMAGE, VERSION, tmp_path / "raw", told.append)
        with pytest.raises(Refused, match="was never built"):
            cloud.disk(IMAGE, "2026.11.9", tmp_path / "other", told.append)
    brought = (tmp_path / "raw").read_bytes()
    assert brought[: len(disk)] == disk and not any(brought[len(disk) :])
    assert len(brought) == 1 << 30 and (tmp_path / "raw").stat().st_blocks * 512 < 80 << 20
    assert len(told) == 130 and not (tmp_path / "other").exists()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (FAILING_STEP, "provisioning step 99-fails.sh ended with status 3"),
        (FAILING_TEST, "2 of 9 tests in the image"),
    ],
    ids=["provisioner", "test in the image"],
)
def test_a_failure_in_the_instance_leaves_nothing(
    start: Start, aws: EmulatedAws, steps: dict[str, str], why: str
) -> None:
    done = start(steps).wait()
    assert done.code == 6
    end = done.output[done.output.index("build failed:") :]
    assert why in end and "Nothing was published" in end
    assert asked(aws, "RunInstances") and asked(aws, "TerminateInstances")
    assert not asked(aws, "CreateImage")


@pytest.mark.usefixtures("nothing_is_left")
def test_an_interrupt_lets_packer_clean_up(start: Start, aws: EmulatedAws, world: World) -> None:
    flow = start(WAITING)
    flow.provisioning()
    # the real Packer is in the world, so that what cannot leave the world cannot leave Packer
    assert networks(flow.packer()) == {world.network()}
    flow.interrupt()
    done = flow.wait()
    assert done.code == 130
    assert "Cleanly cancelled builds" in done.output
    assert asked(aws, "TerminateInstances") and not asked(aws, "CreateImage")


@pytest.mark.usefixtures("nothing_is_left")
def test_packer_cleans_up_when_mvstack_is_killed(
    start: Start, aws: EmulatedAws, world: World
) -> None:
    flow = start(WAITING)
    flow.provisioning()
    packers = flow.packer()
    assert packers
    flow.kill_builder()
    flow.wait()
    while set(packers) & set(processes(world.network())):
        time.sleep(0.05)
    assert asked(aws, "TerminateInstances")


@pytest.mark.usefixtures("nothing_is_left")
def test_what_a_killed_packer_left_is_found_and_removed(
    start: Start, aws: EmulatedAws, world: World, cloud: Aws
) -> None:
    flow = start(WAITING)
    flow.provisioning()
    flow.kill_all()
    with world.inside():
        left = cloud.leftovers()
        assert [one.kind for one in left] == ["instance", "volume"]
        assert {(one.build, one.image, one.region) for one in left} == {(BUILD, IMAGE, REGION)}
        assert cloud.images() == []
        for one in left:
            cloud.remove(one)
            cloud.remove(one)  # gone already: no error
        assert cloud.leftovers() == []
        # which 1.6.6 gives no tags, and plugin 1.3 does (see below)
        for one in aws.ec2().describe_security_groups()["SecurityGroups"]:
            if one["GroupName"].startswith("packer_"):
                aws.ec2().delete_security_group(GroupId=one["GroupId"])


@pytest.mark.usefixtures("nothing_is_left")
def test_all_that_a_build_tags_is_found_and_nothing_else(
    aws: EmulatedAws, world: World, cloud: Aws
) -> None:
    """As Packer's plugin 1.3 tags what it makes, as it makes it; 1.6.6, which is here, does not."""
    rows = [{"Key": TAG, "Value": OURS}, {"Key": STATE, "Value": "building"}]
    rows += [{"Key": BUILD_TAG, "Value": BUILD}, {"Key": IMAGE_TAG, "Value": IMAGE}]

    def tags(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": rows}]

    with world.inside():
        here, there = aws.ec2(REGION), aws.ec2(ELSEWHERE)
        start = {"ImageId": "ami-0ba5e0ba5e0ba5e00", "MinCount": 1, "MaxCount": 1}
        pair = here.create_key_pair(KeyName="one", TagSpecifications=tags("key-pair"))["KeyName"]
        group = here.create_security_group(
            GroupName="one", Description="x", TagSpecifications=tags("security-group")
        )["GroupId"]
        machine = here.run_instances(**start, TagSpecifications=tags("instance"))
        machine = machine["Instances"][0]["InstanceId"]
        zone = {"Size": 8, "AvailabilityZone": f"{REGION}a"}
        disk = here.create_volume(**zone, TagSpecifications=tags("volume"))["VolumeId"]
        first = here.create_image(InstanceId=machine, Name=NAME, TagSpecifications=tags("image"))[
            "ImageId"
        ]
        copied = {"Name": NAME, "SourceImageId": first, "SourceRegion": REGION}
        copy = there.copy_image(**copied, CopyImageTags=True)["ImageId"]
        there.create_tags(Resources=[copy], Tags=rows)  # which moto does not copy
        lone = here.create_snapshot(VolumeId=disk, TagSpecifications=tags("snapshot"))["SnapshotId"]
        # somebody else's
        spare = here.create_volume(**zone)["VolumeId"]
        other = here.create_key_pair(KeyName="packer_other")["KeyName"]

        left = cloud.leftovers()
        assert {(one.kind, one.id, one.region) for one in left} == {
            ("instance", machine, REGION),
            ("volume", disk, REGION),
            ("image", first, REGION),
            ("image", copy, ELSEWHERE),
            ("snapshot", lone, REGION),
            ("security group", group, REGION),
            ("key pair", pair, REGION),
        }
        assert {(one.build, one.image) for one in left} == {(BUILD, IMAGE)}
        for one in left:
            cloud.remove(one)
        assert cloud.leftovers() == []
        assert [one["VolumeId"] for one in here.describe_volumes()["Volumes"]] == [spare]
        here.delete_volume(VolumeId=spare)
        here.delete_key_pair(KeyName=other)


@pytest.mark.usefixtures("nothing_is_left")
def test_an_instance_that_never_answers_ends_the_build(
    start: Start, aws: EmulatedAws, instance: Instance
) -> None:
    instance.stop()
    done = start(ssh_timeout="1s").wait()
    assert done.code == 6
    assert "Timeout waiting for SSH" in done.output[done.output.index("build failed:") :]
    assert asked(aws, "TerminateInstances")


@pytest.mark.usefixtures("nothing_is_left")
def test_an_instance_that_is_lost_ends_the_build(
    start: Start, aws: EmulatedAws, instance: Instance
) -> None:
    flow = start(WAITING)
    flow.provisioning()
    instance.stop()
    done = flow.wait()
    assert done.code == 6
    assert "disconnected" in done.output[done.output.index("build failed:") :]
    assert asked(aws, "TerminateInstances") and not asked(aws, "CreateImage")


def test_a_name_that_is_taken_is_refused_before_anything_is_made(
    start: Start, aws: EmulatedAws, world: World
) -> None:
    with world.inside():
        aws.ec2().register_image(Name=NAME, RootDeviceName="/dev/sda1")
    before = aws.left()
    done = start().wait()
    assert done.code == 4
    assert "exists already" in done.output and NAME in done.output
    assert not asked(aws, "RunInstances") and not asked(aws, "CreateSecurityGroup")
    assert aws.left() == before


def test_a_version_is_published_once_and_deleted_after_its_last_day(
    start: Start, aws: EmulatedAws, world: World, cloud: Aws
) -> None:
    done = start(aws_copy_regions=[]).wait()
    assert done.code == 0, done.output
    keys = {REGION: "alias/here", ELSEWHERE: "alias/there"}
    share = ["210987654321"]
    sharing = Aws(REGION, [ELSEWHERE], share, 0.05, keys)
    with world.inside():
        with pytest.raises(Refused, match="was never built"):
            sharing.publish(IMAGE, "2026.11.1", [REGION])
        cloud.accept(IMAGE, VERSION)
        copies = len(asked(aws, "CopyImage"))
        alone = Aws(REGION, [ELSEWHERE], share, 0.05, {REGION: "alias/here"})
        with pytest.raises(Refused, match=f"{ELSEWHERE}: AWS shares no image that is encrypted"):
            alone.publish(IMAGE, VERSION, [REGION, ELSEWHERE])
        assert len(asked(aws, "CopyImage")) == copies, "it is refused before anything is copied"
        cloud.accept(IMAGE, VERSION)  # is one already: changes nothing
        done_so = sharing.publish(IMAGE, VERSION, [REGION, ELSEWHERE])
        assert set(done_so) == {REGION, ELSEWHERE}
        assert asked(aws, "CopyImage")[-1]["KmsKeyId"] == "alias/there"
        (made,) = cloud.images()
        assert made.state == "published" and made.regions == done_so
        for region, ami in made.regions.items():
            ec2 = aws.ec2(region)
            may = ec2.describe_image_attribute(ImageId=ami, Attribute="launchPermission")
            assert [one["UserId"] for one in may["LaunchPermissions"]] == ["210987654321"]
            (shown,) = ec2.describe_images(ImageIds=[ami])["Images"]
            assert {"Key": STATE, "Value": "published"} in shown["Tags"]

        # more regions, for the same accounts and with the key that the site names
        third = "ap-south-1"
        more = Aws(REGION, [ELSEWHERE, third], (), 0.05, {**keys, third: "alias/third"})
        with pytest.raises(Refused, match="eu-west-3: AWS shares no image"):
            more.publish(IMAGE, VERSION, ["eu-west-3"], again=True)
        copies = len(asked(aws, "CopyImage"))
        wider = more.publish(IMAGE, VERSION, [ELSEWHERE, third], again=True)
        assert {**wider, third: ""} == {**done_so, third: ""} and wider[third]
        (copy,) = asked(aws, "CopyImage")[copies:]
        assert (copy["region"], copy["KmsKeyId"]) == (third, "alias/third")
        may = aws.ec2(third).describe_image_attribute(
            ImageId=wider[third], Attribute="launchPermission"
        )
        assert [one["UserId"] for one in may["LaunchPermissions"]] == share
        assert more.images()[0].regions == wider and more.leftovers() == []
        aws.ec2(third).deregister_image(ImageId=wider[third])

        asked_before = len(aws.requests())
        with pytest.raises(Refused, match="is published already"):
            cloud.publish(IMAGE, VERSION, [REGION, ELSEWHERE])
        with pytest.raises(Refused, match="is published already"):
            cloud.accept(IMAGE, VERSION)
        again = aws.requests()[asked_before:]
        assert {one["Action"] for one in again} == {"DescribeImages"}
        assert cloud.leftovers() == []

        with pytest.raises(Refused, match="it is not deprecated"):
            cloud.delete(IMAGE, VERSION)
        today = datetime.now(UTC).date()
        # as where the build made a copy, and it was published in the region of the build alone
        candidate = [{"Key": "mvapich-stack-state", "Value": "candidate"}]
        aws.ec2(ELSEWHERE).create_tags(Resources=[done_so[ELSEWHERE]], Tags=candidate)
        assert cloud.deprecate(IMAGE, VERSION, today) == done_so
        told = asked(aws, "EnableImageDeprecation")
        assert {one["ImageId"] for one in told} == {*done_so.values()}
        assert {one["DeprecateAt"] for one in told} == {f"{today}T23:59:00Z"}
        assert [one.end for one in cloud.images()] == [today.isoformat()]
        with pytest.raises(Refused, match=f"its last day is {today}"):
            cloud.delete(IMAGE, VERSION)
        assert cloud.images()
        cloud.deprecate(IMAGE, VERSION, today - timedelta(1))
        with pytest.raises(Refused, match="is past its last day"):
            sharing.publish(IMAGE, VERSION, [ELSEWHERE], again=True)
        aws.ec2(ELSEWHERE).deregister_image(ImageId=done_so[ELSEWHERE])  # it was cut off
        removed = len(asked(aws, "DeleteSnapshot"))
        assert cloud.delete(IMAGE, VERSION) == {REGION: done_so[REGION]}
        assert cloud.images() == []
        assert len(asked(aws, "DeleteSnapshot")) == removed + 1
        with pytest.raises(Refused, match="was never built"):
            cloud.delete(IMAGE, VERSION)


def test_publishing_that_was_cut_off_goes_on_and_copies_nothing_twice(
    start: Start, aws: EmulatedAws, world: World, cloud: Aws
) -> None:
    assert start().wait().code == 0  # a copy is elsewhere already
    copies = len(asked(aws, "CopyImage"))
    with world.inside():
        cloud.accept(IMAGE, VERSION)
        there, ami = (cloud.images()[0].regions[one] for one in (REGION, ELSEWHERE))
        ec2 = aws.ec2(ELSEWHERE)
        ec2.create_tags(Resources=[ami], Tags=[{"Key": STATE, "Value": "published"}])
        assert cloud.publish(IMAGE, VERSION, [REGION, ELSEWHERE]) == {REGION: there, ELSEWHERE: ami}
        assert [one.state for one in cloud.images()] == ["published"]
    assert len(asked(aws, "CopyImage")) == copies
    assert not asked(aws, "ModifyImageAttribute")[2:]  # Packer's two: nobody else may start it


def test_an_image_that_is_still_built_is_not_published(
    aws: EmulatedAws, world: World, cloud: Aws
) -> None:
    with world.inside():
        ec2 = aws.ec2()
        ami = ec2.register_image(Name=NAME, RootDeviceName="/dev/sda1")["ImageId"]
        tags = [{"Key": TAG, "Value": OURS}, {"Key": STATE, "Value": "building"}]
        ec2.create_tags(Resources=[ami], Tags=tags)
        with pytest.raises(Refused, match="is no candidate"):
            cloud.publish(IMAGE, VERSION, [REGION])
        with pytest.raises(Refused, match="is not published"):
            cloud.publish(IMAGE, VERSION, [ELSEWHERE], again=True)
        cloud.accept(IMAGE, VERSION)
        assert cloud.publish(IMAGE, VERSION, [REGION]) == {REGION: ami}


@pytest.mark.parametrize("end", [None, CheckFailed("a test failed"), KeyboardInterrupt()])
def test_a_machine_of_an_image_has_its_adapters_and_always_ends(
    aws: EmulatedAws, world: World, cloud: Aws, end: BaseException | None
) -> None:
    image = load_image("aws-hpc7a", "hpc")
    with world.inside():
        ec2 = aws.ec2()
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        site = {"aws_subnet": subnet, "aws_security_group": group}
        how = Booted(image, "ssh-ed25519 AAAA test", BUILD, 75, site, 2)
        with pytest.raises(Refused, match="was never built"), cloud.machines(VERSION, how):
            pass
        ami = ec2.register_image(Name=f"{TAG}-{image.name}-{VERSION}", RootDeviceName="/dev/sda1")
        raised = pytest.raises(type(end)) if end else nullcontext()
        with raised, cloud.machines(VERSION, how) as addresses:
            assert len({*addresses}) == 2
            left = [one.build for one in cloud.leftovers() if one.kind == "instance"]
            assert left == [BUILD] * 2, "`image clean` finds them, should this process be killed"
            if end:
                raise end
        assert cloud.leftovers() == [] and aws.left()["instances"] == []
        ec2.deregister_image(ImageId=ami["ImageId"])
    (run,) = asked(aws, "RunInstances")
    assert run["InstanceType"] == "hpc7a.96xlarge" and run["ImageId"] == ami["ImageId"]
    cards = [run[f"NetworkInterface.{n}.InterfaceType"] for n in (1, 2)]
    assert cards == ["efa", "efa"] and run["NetworkInterface.2.NetworkCardIndex"] == "1"
    told = base64.b64decode(run["UserData"]).decode()
    assert "per-boot/end" in told and "shutdown -P +75" in told and "ssh-ed25519 AAAA test" in told
    assert run["InstanceInitiatedShutdownBehavior"] == "terminate"


@pytest.mark.parametrize(
    ("ssh", "error", "says"),
    [
        # a kernel that does not start answers nobody
        ("exit 255", BuildFailed, "could not be reached by ssh"),
        ("sleep 60", CheckFailed, "did not end within 1 minutes"),
        ("kill -TERM $PPID; sleep 60", KeyboardInterrupt, ""),
        ('[[ $* == *boot_id ]] && echo 1 || echo "{}"', Refused, "was not started from"),
    ],
    ids=["does not start", "takes too long", "is cancelled", "is another image"],
)
def test_a_boot_test_that_fails_ends_its_machine_and_nothing_is_published(
    aws: EmulatedAws,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ssh: str,
    error: type[BaseException],
    says: str,
) -> None:
    image = load_image("aws-c6i", "hpc")
    version = store.begin(tmp_path / "images", "2026.11", image.name, "x", None, {})
    version.set(state="candidate", release_sha256="0" * 64)
    (tmp_path / "ssh").write_text(f"#!/bin/bash\n{ssh}\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(vm, "PATIENCE", 2)
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    timer = signal.setitimer

    class Freed:
        """The first alarm comes while this is freed, so that Python drops what it raises."""

        def __del__(self) -> None:
            timer(signal.ITIMER_REAL, 0.1, 1)
            time.sleep(0.3)

    def soon(which: int, seconds: float, again: float = 0) -> None:
        if error is CheckFailed and again:
            Freed()
        elif not seconds:
            timer(which, 0)

    monkeypatch.setattr(signal, "setitimer", soon)
    with world.inside():
        ec2 = aws.ec2()
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        site = tmp_path / "site.json"
        known = {"aws_region": REGION, "aws_subnet": subnet, "aws_security_group": group}
        site.write_text(json.dumps({**known, "prices": {image.machine: 4}}))
        name = f"{TAG}-{image.name}-{version.version}"
        ami = ec2.register_image(Name=name, RootDeviceName="/dev/sda1")["ImageId"]
        where = Asked("aws-c6i/hpc", root=tmp_path, images=tmp_path / "images")
        with pytest.raises(error, match=says or None):
            boot_test(where, None, site, Spend(2, 1, 100.0), Progress(0, mode="quiet"))
        assert aws.left()["instances"] == [] and asked(aws, "TerminateInstances")
        ec2.deregister_image(ImageId=ami)
    (left,) = store.versions(tmp_path / "images")
    assert left.state == "candidate"
    with pytest.raises(Refused, match="was not tested"):
        publish._may_be_published(left, image, unknown_is_fine=True)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert len(lost) == (error is CheckFailed)


def test_what_aws_answers_is_told(
    aws: EmulatedAws, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{LOOPBACK}:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with world.inside(), pytest.raises(MvstackError, match="could not be asked") as caught:
        Aws(REGION).leftovers()
    assert "9" in str(caught.value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with world.inside(), pytest.raises(Missing, match="credentials were not found"):
        Aws(REGION).leftovers()
