"""Azure: images are versions in a Compute Gallery; a build has a resource group of its own."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
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
    azure_disk,
    must_be_candidate,
    must_be_over,
    must_be_published,
    never_built,
    not_over,
    ours,
    published_already,
    when,
)
from mvstack.image.clouds.disks import Note
from mvstack.image.extras import load
from mvstack.support.errors import Missing, MvstackError, Refused
from mvstack.support.home import DATA

ENDPOINT, AUTHORITY = "MVSTACK_AZURE_ARM_ENDPOINT", "MVSTACK_AZURE_AUTHORITY"
_PUBLIC = "https://management.azure.com"
_RETRIES = 3
_REFUSED = (401, 403)


class Azure:
    """The gallery ``gallery`` in ``group``; an image's definition has the image's name.

    ``subscription`` is AZURE_SUBSCRIPTION_ID where it is empty. ``pause`` is the time between two
    looks at something that takes a while, in seconds; Azure's own wish counts more. Credentials are
    found as azure-identity finds them (az login, AZURE_CLIENT_ID and its like, a managed identity).
    MVSTACK_AZURE_ARM_ENDPOINT and MVSTACK_AZURE_AUTHORITY name another cloud than the public one.
    """

    name = "azure"

    def __init__(
        self, group: str, gallery: str, subscription: str = "", pause: float = 5.0
    ) -> None:
        self.group, self.gallery, self._pause = group, gallery, pause
        self.subscription = subscription or os.environ.get("AZURE_SUBSCRIPTION_ID", "")
        self._made: dict[str, Any] = {}

    def leftovers(self) -> list[Leftover]:
        """See :class:`Cloud`. A resource group holds the machine, its disk and its network."""
        wanted = f"tagName eq '{TAG}' and tagValue eq '{OURS}'"
        with self._told("resource groups"):
            groups = list(self._resources.resource_groups.list(filter=wanted))
        found = [
            *(("resource group", one) for one in groups),
            *(("gallery image version", one) for one in self._versions()),
        ]
        return [_leftover(kind, one) for kind, one in found if _state(one) == "building"]

    def remove(self, leftover: Leftover) -> None:
        parts = leftover.id.split("/")
        group = parts[4]
        with self._told(f"removing {leftover.id}"), self._gone_is_good():
            if leftover.kind == "resource group":
                self._resources.resource_groups.begin_delete(group).result()
            elif leftover.kind == "gallery image version":
                versions = self._compute.gallery_image_versions
                versions.begin_delete(group, parts[8], parts[10], parts[12]).result()
            else:
                raise ValueError(f"Azure has no {leftover.kind}")

    def images(self) -> list[CloudImage]:
        found = []
        for one in self._versions():
            if (state := _state(one)) in ("candidate", "published"):
                tags = one.tags
                found.append(
                    CloudImage(
                        image=tags.get(IMAGE, ""),
                        version=tags.get(VERSION, ""),
                        state=state,  # type: ignore[arg-type]
                        build=tags.get(BUILD, ""),
                        commit=tags.get(COMMIT, ""),
                        created=when(tags.get(BUILD, "")),
                        regions=dict.fromkeys(_regions(one), str(one.id)),
                        end=tags.get(END, ""),
                    )
                )
        return sorted(found, key=lambda one: (one.image, one.version))

    def disk(self, image: str, version: str, to: Path, note: Note) -> None:
        """See :class:`Cloud`. Through a copy of the disk, in a resource group of its own."""
        found = self._version(image, version)
        copy = azure_disk.address_of(self._compute, self._resources, found)
        with self._told(f"the disk of version {version} of {image}"), copy as address:
            try:
                azure_disk.read(address, to, note)
            except OSError as error:
                raise MvstackError("the disk could not be read", found=str(error)) from error

    def accept(self, image: str, version: str) -> None:
        found = self._version(image, version)
        if _state(found) == "published":
            raise published_already(image, version, self._where)
        if _state(found) != "candidate":
            with self._told(f"tagging version {version} of {image}"):
                found.tags = {**found.tags, STATE: "candidate"}
                self._put(image, version, found)

    def publish(
        self, image: str, version: str, regions: Sequence[str], again: bool = False
    ) -> dict[str, str]:
        """See :class:`Cloud`. From then on ``latest`` of the image's definition may mean it.

        Who may start it is who may read the gallery: that is decided there, once for all versions.
        """
        found = self._version(image, version)
        profile = found.publishing_profile
        if again:
            must_be_published(image, version, _state(found), self._where)
            not_over(f"{image} {version}", found.tags.get(END, ""), self._where)
        else:
            must_be_candidate(image, version, _state(found), self._where)
            profile.exclude_from_latest = False
            found.tags = {**found.tags, STATE: "published"}
        there = _regions(found)
        added = list(dict.fromkeys(one for one in map(_region, regions) if one not in there))
        profile.target_regions = [
            *(profile.target_regions or []),
            *({"name": region} for region in added),
        ]
        with self._told(f"publishing version {version} of {image}"):
            self._put(image, version, found)
        return dict.fromkeys([*there, *added], str(found.id))

    @contextlib.contextmanager
    def machines(self, version: str, how: Booted) -> Iterator[list[str]]:
        """See :class:`Cloud`. In a resource group of their own, without a public address.

        Azure shuts them down then, and asks no more money for them; `mvstack image clean` finds the
        group.
        """
        image, off = how.image, datetime.now(UTC) + timedelta(minutes=how.minutes)
        found = self._version(image.name, version)
        group = f"{TAG}-boot-{how.build}"
        where: dict[str, Any] = {"location": str(found.location)}
        tags = {**found.tags, TAG: OURS, STATE: "building", BUILD: how.build}
        given = {
            "image": str(found.id),
            "size": image.machine,
            "secureBoot": image.secure_boot,
            "subnet": how.site["azure_subnet"],
            "user": image.user,
            "key": how.key,
            "offAt": f"{off:%H%M}",
        }
        template = json.loads((DATA / "images" / "boot-azure.json").read_text())
        top = f"/subscriptions/{self.subscription}/resourceGroups/{group}/providers/Microsoft"
        groups, resources = self._resources.resource_groups, self._resources.resources
        put = resources.begin_create_or_update_by_id
        names = [f"boot{number}" for number in range(1, how.count + 1)]

        def begun(name: str) -> Any:
            values = {key: {"value": value} for key, value in {**given, "name": name}.items()}
            asked = {"mode": "Incremental", "template": template, "parameters": values}
            made = f"{top}.Resources/deployments/{name}"
            return put(made, {"properties": asked}, api_version="2021-04-01")

        def address(name: str) -> str:
            card = f"{top}.Network/networkInterfaces/{name}"
            made = resources.get_by_id(card, api_version="2023-09-01")
            return str(made.properties["ipConfigurations"][0]["properties"]["privateIPAddress"])

        with self._told(f"machines of version {version} of {image.name}"):
            groups.create_or_update(group, {**where, "tags": tags})
            try:
                # only machines of one availability set are joined by InfiniBand:
                # learn.microsoft.com/azure/virtual-machines/setup-infiniband
                joined = {**where, "sku": {"name": "Aligned"}}
                # one fault domain allows one update domain, and its default is five
                joined["properties"] = {f"platform{of}DomainCount": 1 for of in ("Fault", "Update")}
                asked = f"{top}.Compute/availabilitySets/boot"
                put(asked, joined, api_version="2024-03-01").result()
                for made in [begun(name) for name in names]:
                    made.result()
                yield [address(name) for name in names]
            finally:
                groups.begin_delete(group).result()

    def deprecate(self, image: str, version: str, last: date) -> dict[str, str]:
        found = self._version(image, version)
        must_be_published(image, version, _state(found), self._where)
        profile = found.publishing_profile
        profile.end_of_life_date = datetime.combine(last, time(23, 59), UTC)
        profile.exclude_from_latest = True
        found.tags = {**found.tags, END: last.isoformat()}
        with self._told(f"deprecating version {version} of {image}"):
            self._put(image, version, found)
        return dict.fromkeys(_regions(found), str(found.id))

    def delete(self, image: str, version: str) -> dict[str, str]:
        found = self._version(image, version)
        must_be_over(image, version, (found.tags or {}).get(END, ""), self._where)
        self.remove(_leftover("gallery image version", found))
        return dict.fromkeys(_regions(found), str(found.id))

    @property
    def _where(self) -> str:
        return f"gallery {self.gallery} in {self.group}"

    @property
    def _compute(self) -> Any:
        return self._client("azure.mgmt.compute", "ComputeManagementClient")

    @property
    def _resources(self) -> Any:
        return self._client("azure.mgmt.resource.resources", "ResourceManagementClient")

    def _client(self, name: str, kind: str) -> Any:
        if name not in self._made:
            if not self.subscription:
                raise Missing(
                    "no subscription of Azure is named",
                    todo="set AZURE_SUBSCRIPTION_ID, or name it in the site's file",
                )
            endpoint = os.environ.get(ENDPOINT, _PUBLIC).rstrip("/")
            self._made[name] = getattr(load(name), kind)(
                _credential(),
                self.subscription,
                base_url=endpoint,
                credential_scopes=[f"{endpoint}/.default"],
                polling_interval=self._pause,
                retry_total=_RETRIES,
            )
        return self._made[name]

    def _versions(self) -> list[Any]:
        """Every version of every image in the gallery that a build of ours made."""
        with self._told(self._where):
            compute = self._compute
            found = [
                version
                for definition in compute.gallery_images.list_by_gallery(self.group, self.gallery)
                for version in compute.gallery_image_versions.list_by_gallery_image(
                    self.group, self.gallery, definition.name
                )
            ]
        return [one for one in found if ours(one.tags or {})]

    def _version(self, image: str, version: str) -> Any:
        errors = load("azure.core.exceptions")
        try:
            with self._told(self._where):
                return self._compute.gallery_image_versions.get(
                    self.group, self.gallery, image, version
                )
        except MvstackError as error:
            if isinstance(error.__cause__, errors.ResourceNotFoundError):
                raise never_built(image, version, self._where) from None
            raise

    def _put(self, image: str, version: str, changed: Any) -> None:
        # the whole version as it was read, changed: what is left out of it would be taken away
        versions = self._compute.gallery_image_versions
        place = (self.group, self.gallery, image, version)
        versions.begin_create_or_update(*place, changed).result()

    @contextlib.contextmanager
    def _gone_is_good(self) -> Iterator[None]:
        errors = load("azure.core.exceptions")
        with contextlib.suppress(errors.ResourceNotFoundError):
            yield

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        """The SDK's errors as ours; the SDK's stays the cause."""
        errors = load("azure.core.exceptions")
        try:
            yield
        except errors.ClientAuthenticationError as error:
            raise Missing(
                "Azure does not let us in",
                doing,
                found=_first_line(error),
                todo="az login, or set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
            ) from error
        except errors.HttpResponseError as error:
            kind = Refused if error.status_code in _REFUSED else MvstackError
            raise kind("Azure refuses it", doing, found=_first_line(error)) from error
        except errors.AzureError as error:
            raise MvstackError(
                "Azure could not be asked",
                doing,
                found=_first_line(error),
                todo=f"see that the network (and {ENDPOINT}, if set) is right",
            ) from error


def _credential() -> Any:
    identity = load("azure.identity")
    if authority := os.environ.get(AUTHORITY):
        return identity.DefaultAzureCredential(authority=authority, disable_instance_discovery=True)
    return identity.DefaultAzureCredential()


def _leftover(kind: str, item: Any) -> Leftover:
    build = item.tags.get(BUILD, "")
    return Leftover(
        kind, str(item.id), build, item.tags.get(IMAGE, ""), when(build), str(item.location)
    )


def _state(item: Any) -> str:
    tags = item.tags or {}
    return str(tags.get(STATE, "")) if ours(tags) else ""


def _regions(version: Any) -> list[str]:
    targets = version.publishing_profile.target_regions if version.publishing_profile else []
    return [_region(one.name) for one in targets or []]


def _region(name: str) -> str:
    """Azure writes a region's name in two ways: ``West Europe`` is ``westeurope``."""
    return name.replace(" ", "").lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__
