"""Whole builds by the repository's templates for Azure, against a fake of its resource manager.

The fake is an emulator of our own: see images/fake_arm.py for what this cannot show.
"""

from __future__ import annotations

import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from images.base import base
from images.cloud_disk import sparse_disk
from images.fake_arm import ELSEWHERE, GALLERY, GROUP, LOCATION, NAMES, FakeArm, Request
from images.flow import BUILD, IMAGE, NAME, VERSION, Flow
from images.instance import Instance, make_key
from images.kits import FAILING_STEP, FAILING_TEST, PACKAGES, WAITING, load_image
from images.needs import needs
from images.world import LOOPBACK, World, networks, processes

from mvstack.image.clouds import BUILD as BUILD_TAG
from mvstack.image.clouds import OURS, STATE, TAG, Booted
from mvstack.image.clouds.azure import Azure
from mvstack.support.errors import CheckFailed, Missing, MvstackError, Refused

Start = Callable[..., Flow]
MANAGED = f"{GROUP}/providers/Microsoft.Compute/images/{NAME}"
DEFINITION = f"{GROUP}/providers/Microsoft.Compute/galleries/{GALLERY}/images/{IMAGE}"
IN_GALLERY = f"{DEFINITION}/versions/{VERSION}"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    needs("azure.identity", "azure.mgmt.compute", "azure.mgmt.resource.resources")
    with World(NAMES) as made:
        yield made


@pytest.fixture(scope="module")
def emulator(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeArm]:
    with FakeArm(world, tmp_path_factory.mktemp("arm")) as made:
        yield made


@pytest.fixture(scope="module")
def key(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture
def arm(emulator: FakeArm, monkeypatch: pytest.MonkeyPatch) -> FakeArm:
    """The emulator with what a site has before its first build, and our own code led to it."""
    emulator.reset()
    emulator.site(IMAGE)
    for name, value in {**emulator.environment(), "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    return emulator


@pytest.fixture
def instance(world: World, key: Path) -> Iterator[Instance]:
    with Instance(world, base(PACKAGES), key.with_suffix(".pub")) as made:
        yield made


@pytest.fixture
def start(
    world: World, arm: FakeArm, instance: Instance, key: Path, tmp_path: Path
) -> Iterator[Start]:
    flows: list[Flow] = []

    def begin(steps: dict[str, str] | None = None, **variables: Any) -> Flow:
        given = {**arm.variables(), **variables}
        folder = tmp_path / f"flow{len(flows)}"
        environment = {"SSL_CERT_FILE": str(arm.ca)}
        flow = Flow(world, instance, key, folder, "azure", given, environment, steps)
        flows.append(flow)
        return flow

    yield begin
    for flow in flows:
        flow.kill_all()


@pytest.fixture
def cloud(arm: FakeArm) -> Azure:
    return Azure(GROUP, GALLERY, pause=0.05)


@pytest.fixture
def nothing_is_left(arm: FakeArm) -> Iterator[None]:
    """At the end there is what there was before, and every request was one that the fake knows."""
    before = arm.left()
    yield
    assert arm.left() == before
    assert not [one for one in arm.requests() if one.status in (400, 401, 501)]


def has_been_made_into_the_image(instance: Instance) -> None:
    """What is in the instance at the end of its build, and what is not any more."""
    etc = instance.root / "etc"
    assert "memlock" in (etc / "security/limits.d/90-mvapich-stack.conf").read_text()
    assert (etc / "mvapich-stack/release.sha256").exists()
    assert not list(etc.glob("ssh/ssh_host_*"))
    assert not list((instance.root / "home").rglob("authorized_keys"))
    assert not (instance.root / "var/tmp/mvapich-stack-image").exists()


def asked(arm: FakeArm, method: str, part: str) -> list[Request]:
    return [one for one in arm.requests() if one.method == method and part in one.path]


def temporary(arm: FakeArm) -> list[Request]:
    """The requests that made a build's own resource group."""
    made = [one for one in arm.requests() if one.method == "PUT" and one.status == 201]
    return [one for one in made if "/providers/" not in one.path]


def test_a_build_makes_a_candidate_that_is_not_the_latest_and_leaves_nothing_else(
    start: Start, arm: FakeArm, instance: Instance, world: World, cloud: Azure
) -> None:
    before = arm.left()
    done = start(last_day="2027-06-30").wait()
    assert done.code == 0, done.output
    told = done.output
    assert told.index("changed: 0 (") < told.index("tests: 2 passed") < told.index("generalised")
    has_been_made_into_the_image(instance)
    assert done.connected() == {f"{LOOPBACK}:{instance.port}"}
    assert sorted(arm.left()) == sorted([*before, MANAGED, IN_GALLERY])

    (group,) = temporary(arm)
    assert group.body["tags"][BUILD_TAG] == BUILD and group.body["tags"][STATE] == "building"
    (deployed,) = asked(arm, "PUT", "/deployments/")
    wanted = deployed.body["properties"]["template"]["resources"]
    kinds = {one["type"].split("/")[-1] for one in wanted}
    assert {"virtualMachines", "networkInterfaces", "publicIPAddresses"} <= kinds
    (version,) = asked(arm, "PUT", "/versions/")
    profile = version.body["properties"]["publishingProfile"]
    assert profile["excludeFromLatest"] is True
    assert profile["endOfLifeDate"].startswith("2027-06-30T23:59:00")
    assert [one["name"] for one in profile["targetRegions"]] == [LOCATION, ELSEWHERE]

    with world.inside():
        # until its tests are through, it is what a build that ended now would leave
        assert [one.kind for one in cloud.leftovers()] == ["gallery image version"]
        assert cloud.images() == []
        cloud.accept(IMAGE, VERSION)
        assert cloud.leftovers() == []
        (made,) = cloud.images()
    assert (made.image, made.version, made.state) == (IMAGE, VERSION, "candidate")
    assert made.end == "2027-06-30"
    assert (made.build, set(made.regions)) == (BUILD, {LOCATION, ELSEWHERE})
    assert made.created == "2026-11-21T21:15:00Z"


def test_the_disk_of_what_was_built_is_read_through_a_copy_that_goes(
    start: Start, arm: FakeArm, world: World, cloud: Azure, tmp_path: Path
) -> None:
    assert start().wait().code == 0
    before, disk, to = arm.left(), sparse_disk(arm.disk, 8), tmp_path / "raw"
    with world.inside():
        cloud.disk(IMAGE, VERSION, to, lambda _: None)
        assert to.read_bytes() == disk and arm.left() == before
        assert arm.resources.readable is False

        arm.refuse("POST", "/disks/disk/beginGetAccess", 403, "AuthorizationFailed", "may not")
        with pytest.raises(Refused, match="may not"):
            cloud.disk(IMAGE, VERSION, to, lambda _: None)
        assert arm.left() == before, "the copy is gone when it could not be read, too"
        with pytest.raises(Refused, match="was never built"):
            cloud.disk(IMAGE, "2026.11.9", to, lambda _: None)


def test_a_copy_of_a_disk_that_was_cut_off_is_a_leftover(
    start: Start, arm: FakeArm, world: World, cloud: Azure, tmp_path: Path
) -> None:
    assert start().wait().code == 0
    sparse_disk(arm.disk, 1)
    arm.refuse("DELETE", "(?i)/resourcegroups/mvapich-stack-disk-", 409, "Busy", "later")
    with world.inside():
        with pytest.raises(MvstackError):
            cloud.disk(IMAGE, VERSION, tmp_path / "raw", lambda _: None)
        found = [one for one in cloud.leftovers() if one.kind == "resource group"]
        assert [one.build for one in found] == [BUILD]
        arm.refusals.clear()
        cloud.remove(found[0])
        assert not [one for one in cloud.leftovers() if one.kind == "resource group"]


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
    start: Start, arm: FakeArm, steps: dict[str, str], why: str
) -> None:
    done = start(steps).wait()
    assert done.code == 6
    end = done.output[done.output.index("build failed:") :]
    assert why in end and "Nothing was published" in end
    (group,) = temporary(arm)
    assert asked(arm, "DELETE", group.path)
    assert not asked(arm, "PUT", "/images/")


@pytest.mark.usefixtures("nothing_is_left")
def test_an_interrupt_lets_packer_clean_up(start: Start, arm: FakeArm, world: World) -> None:
    flow = start(WAITING)
    flow.provisioning()
    assert networks(flow.packer()) == {world.network()}
    flow.interrupt()
    done = flow.wait()
    assert done.code == 130
    assert "Cleanly cancelled builds" in done.output
    assert temporary(arm) and not asked(arm, "PUT", "/images/")


@pytest.mark.usefixtures("nothing_is_left")
def test_packer_cleans_up_when_mvstack_is_killed(start: Start, arm: FakeArm, world: World) -> None:
    flow = start(WAITING)
    flow.provisioning()
    packers = flow.packer()
    assert packers
    flow.kill_builder()
    flow.wait()
    while set(packers) & set(processes(world.network())):
        time.sleep(0.05)
    assert temporary(arm)


@pytest.mark.usefixtures("nothing_is_left")
def test_what_a_killed_packer_left_is_found_and_removed(
    start: Start, arm: FakeArm, world: World, cloud: Azure
) -> None:
    arm.put("theirs", location=LOCATION, tags={STATE: "building"})
    flow = start(WAITING)
    flow.provisioning()
    flow.kill_all()
    with world.inside():
        (left,) = cloud.leftovers()
        assert (left.kind, left.build, left.image) == ("resource group", BUILD, IMAGE)
        assert (left.created, left.region) == ("2026-11-21T21:15:00Z", LOCATION)
        cloud.remove(left)
        assert arm.resources.find(left.id) is None  # it was waited for
        cloud.remove(left)  # gone already: no error
        assert cloud.leftovers() == []
    assert "theirs" in arm.left()
    arm.resources.delete(arm.put("theirs"))


@pytest.mark.usefixtures("nothing_is_left")
def test_an_image_of_a_build_that_ended_before_its_tests_is_removed(
    start: Start, arm: FakeArm, world: World, cloud: Azure
) -> None:
    assert start().wait().code == 0
    with world.inside():
        left = cloud.leftovers()
        assert {one.build for one in left} == {BUILD}
        with pytest.raises(Refused, match="is no candidate"):
            cloud.publish(IMAGE, VERSION, [LOCATION])
        with pytest.raises(Refused, match="is not published"):
            cloud.publish(IMAGE, VERSION, [LOCATION], again=True)
        for one in left:
            cloud.remove(one)
        assert cloud.leftovers() == []
    arm.resources.delete(arm.put(MANAGED))


@pytest.mark.usefixtures("nothing_is_left")
def test_an_instance_that_never_answers_ends_the_build(
    start: Start, arm: FakeArm, instance: Instance
) -> None:
    instance.stop()
    done = start(ssh_timeout="1s").wait()
    assert done.code == 6
    assert "Timeout waiting for SSH" in done.output[done.output.index("build failed:") :]
    assert temporary(arm)


@pytest.mark.usefixtures("nothing_is_left")
def test_an_instance_that_is_lost_ends_the_build(
    start: Start, arm: FakeArm, instance: Instance
) -> None:
    flow = start(WAITING)
    flow.provisioning()
    instance.stop()
    done = flow.wait()
    assert done.code == 6
    assert "disconnected" in done.output[done.output.index("build failed:") :]
    assert temporary(arm) and not asked(arm, "PUT", "/images/")


def test_a_gallery_that_refuses_the_version_ends_the_build(start: Start, arm: FakeArm) -> None:
    arm.refuse("PUT", "/versions/", 409, "QuotaExceeded", "no more versions in this gallery")
    done = start().wait()
    assert done.code == 6 and "no more versions" in done.output


def test_a_name_that_is_taken_is_refused_before_anything_is_made(
    start: Start, arm: FakeArm
) -> None:
    arm.put(MANAGED, location=LOCATION)
    before = arm.left()
    done = start().wait()
    assert done.code == 4
    assert "exists already" in done.output and NAME in done.output
    assert not temporary(arm)
    assert arm.left() == before


def test_a_version_is_published_once_and_deleted_after_its_last_day(
    start: Start, arm: FakeArm, world: World, cloud: Azure
) -> None:
    assert start(azure_regions=[LOCATION]).wait().code == 0
    with world.inside():
        with pytest.raises(Refused, match="was never built"):
            cloud.publish(IMAGE, "2026.11.1", [LOCATION])
        cloud.accept(IMAGE, VERSION)
        done = cloud.publish(IMAGE, VERSION, ["West Europe", "East US"])
        assert set(done) == {LOCATION, ELSEWHERE}
        identifier = arm.put(DEFINITION)
        version = arm.resources.get(identifier + f"/versions/{VERSION}")
        profile = version["properties"]["publishingProfile"]
        assert profile["excludeFromLatest"] is False
        assert [one["name"] for one in profile["targetRegions"]] == [LOCATION, ELSEWHERE]
        assert version["tags"][STATE] == "published" and version["tags"][BUILD_TAG] == BUILD
        assert version["properties"]["storageProfile"]["source"]["id"].endswith(NAME)
        assert [one.state for one in cloud.images()] == ["published"]

        wider = cloud.publish(IMAGE, VERSION, ["North Europe", LOCATION], again=True)
        assert set(wider) == {LOCATION, ELSEWHERE, "northeurope"}
        version = arm.resources.get(identifier + f"/versions/{VERSION}")
        regions = version["properties"]["publishingProfile"]["targetRegions"]
        assert [one["name"] for one in regions] == [LOCATION, ELSEWHERE, "northeurope"]

        requests = len(arm.requests())
        with pytest.raises(Refused, match="is published already"):
            cloud.publish(IMAGE, VERSION, [LOCATION])
        with pytest.raises(Refused, match="is published already"):
            cloud.accept(IMAGE, VERSION)
        assert {one.method for one in arm.requests()[requests:]} == {"GET"}
        assert cloud.leftovers() == []

        with pytest.raises(Refused, match="it is not deprecated"):
            cloud.delete(IMAGE, VERSION)
        today = datetime.now(UTC).date()
        assert cloud.deprecate(IMAGE, VERSION, today) == wider
        version = arm.resources.get(identifier + f"/versions/{VERSION}")
        profile = version["properties"]["publishingProfile"]
        assert profile["excludeFromLatest"] is True
        assert profile["endOfLifeDate"].startswith(f"{today}T23:59:00")
        assert [one.end for one in cloud.images()] == [today.isoformat()]
        with pytest.raises(Refused, match=f"its last day is {today}"):
            cloud.delete(IMAGE, VERSION)
        cloud.deprecate(IMAGE, VERSION, today - timedelta(1))
        with pytest.raises(Refused, match="is past its last day"):
            cloud.publish(IMAGE, VERSION, ["North Europe"], again=True)
        assert cloud.delete(IMAGE, VERSION) == wider
        assert cloud.images() == []
        with pytest.raises(Refused, match="was never built"):
            cloud.delete(IMAGE, VERSION)


@pytest.mark.parametrize("end", [None, CheckFailed("a test failed"), KeyboardInterrupt()])
def test_a_machine_of_an_image_always_ends_with_its_group(
    arm: FakeArm, world: World, cloud: Azure, end: BaseException | None
) -> None:
    image = load_image("azure-hbv3", "hpc")
    arm.site(image.name)
    subnet = "/subscriptions/x/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v"
    site = {"azure_subnet": f"{subnet}/subnets/s"}
    how = Booted(image, "ssh-ed25519 AAAA test", BUILD, 75, site, 2)
    place = f"{GROUP}/providers/Microsoft.Compute/galleries/{GALLERY}/images/{image.name}"
    source = {"source": {"id": arm.put(MANAGED, location=LOCATION)}}
    refused = pytest.raises(Refused, match="was never built")
    with world.inside(), refused, cloud.machines(VERSION, how):
        pass
    version = arm.put(
        f"{place}/versions/{VERSION}",
        location=LOCATION,
        tags={TAG: OURS, STATE: "candidate"},
        properties={"storageProfile": source},
    )
    before = arm.left()
    raised = pytest.raises(type(end)) if end else nullcontext()
    with world.inside(), raised, cloud.machines(VERSION, how) as addresses:
        assert addresses == [LOOPBACK] * 2
        (left,) = [one for one in cloud.leftovers() if one.kind == "resource group"]
        assert left.build == BUILD, "`image clean` finds it, should this process be killed"
        if end:
            raise end
    assert arm.left() == before
    made, other = asked(arm, "PUT", "/deployments/boot")
    assert "/deployments/boot1" in made.path and "/deployments/boot2" in other.path
    joined = asked(arm, "PUT", "/availabilitySets/")
    assert len(joined) == 1, "machines of another set share no InfiniBand"
    given = {key: row["value"] for key, row in made.body["properties"]["parameters"].items()}
    assert given["image"] == version and given["size"] == "Standard_HB120rs_v3"
    assert given["secureBoot"] is True and given["key"] == how.key
    assert re.fullmatch(r"[0-2]\d[0-5]\d", given["offAt"])


def test_no_machine_is_left_where_azure_refuses_it(
    arm: FakeArm, world: World, cloud: Azure
) -> None:
    image = load_image("azure-hbv3", "hpc")
    arm.site(image.name)
    place = f"{GROUP}/providers/Microsoft.Compute/galleries/{GALLERY}/images/{image.name}"
    source = {"source": {"id": arm.put(MANAGED, location=LOCATION)}}
    arm.put(f"{place}/versions/{VERSION}", location=LOCATION, properties={"storageProfile": source},
            tags={TAG: OURS, STATE: "candidate"})  # fmt: skip
    before = arm.left()
    arm.refuse("PUT", "/deployments/boot", 409, "QuotaExceeded", "no cores of this family")
    how = Booted(image, "key", BUILD, 75, {"azure_subnet": "s"})
    refused = pytest.raises(MvstackError, match="no cores of this family")
    with world.inside(), refused, cloud.machines(VERSION, how):
        pass
    assert arm.left() == before


def test_what_azure_answers_is_told(
    arm: FakeArm, world: World, cloud: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.inside():
        arm.put("gone", location=LOCATION, tags={TAG: OURS, STATE: "building"})
        (left,) = cloud.leftovers()
        arm.refuse("DELETE", "gone", 403, "AuthorizationFailed", "may not delete it")
        with pytest.raises(Refused, match="may not delete it"):
            cloud.remove(left)
        arm.refuse("GET", "/galleries/", 409, "Conflict", "not now")
        with pytest.raises(MvstackError, match="not now"):
            Azure(GROUP, GALLERY, pause=0.05).images()
        monkeypatch.setenv("AZURE_CLIENT_SECRET", "wrong")
        with pytest.raises(Missing, match="does not let us in"):
            Azure(GROUP, GALLERY).images()
        monkeypatch.delenv("AZURE_SUBSCRIPTION_ID")
        with pytest.raises(Missing, match="no subscription"):
            Azure(GROUP, GALLERY).images()


def test_the_fake_refuses_what_has_no_token_or_version(arm: FakeArm, world: World) -> None:
    trusted = ssl.create_default_context(cafile=arm.ca)
    group = f"https://{LOOPBACK}/subscriptions/x/resourceGroups/{GROUP}"
    token = {"Authorization": f"Bearer {arm.token()}"}
    for query, headers, status in (
        ("?api-version=2018-02-01", {}, 401),
        ("", token, 400),
        ("?api-version=2018-02-01", token, 404),
    ):
        request = urllib.request.Request(group + query, headers=headers)
        with world.inside(), pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, context=trusted)
        assert caught.value.code == status
        caught.value.close()
