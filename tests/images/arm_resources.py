"""What the fake resource manager holds, and what each request does to it. Pure but for itself.

Resources are one flat table by identifier, case ignored as Azure does. The generic rules (GET of
what is not there is 404, nothing is put into a group that is not there, deleting a group deletes
what is in it) hold for all types; the few types that a build of Packer or our own publishing cares
about have rules of their own. What Azure would refuse beyond that, this does not.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]
ADDRESS = "127.0.0.1"  # the public address of every machine: Packer's azure-arm dials no other
_COMPUTE = "microsoft.compute"
_EXPRESSION = re.compile(r"\[(parameters|variables)\('([^']+)'\)\]")
_FILTER = re.compile(r"tagName eq '([^']*)' and tagValue eq '([^']*)'")


class ArmError(Exception):
    """An answer that is an error, with Azure's HTTP status and code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Resources:
    """The table. Paths begin at ``/subscriptions`` and have no query."""

    def __init__(self) -> None:
        self._by_id: dict[str, Body] = {}
        self.readable = False  # whether somebody was given access to a disk

    def ids(self) -> list[str]:
        """Identifiers of all resources, without that of the subscription."""
        return sorted(body["id"] for body in self._by_id.values())

    def find(self, path: str) -> Body | None:
        """The resource at ``path``."""
        return self._by_id.get(path.lower())

    def get(self, path: str, filter: str = "") -> Body:
        """A resource, or the list of a collection; raises ArmError 404."""
        if _is_collection(path):
            self._needs_group(path)
            found = [body for body in self._by_id.values() if _listed_in(body["id"], path)]
            if wanted := _FILTER.search(filter):
                name, value = wanted.groups()
                found = [body for body in found if body.get("tags", {}).get(name) == value]
            return {"value": [copy.deepcopy(body) for body in found]}
        return copy.deepcopy(self._existing(path))

    def put(self, path: str, body: Body) -> tuple[int, Body]:
        """Make or replace; 201 when it was not there."""
        self._needs_group(path)
        old = self.find(path)
        kind = _type(path)
        if check := self._checks().get(kind):
            check(path, body, old)
        new = {**copy.deepcopy(body), "id": path, "name": path.split("/")[-1], "type": kind}
        new.setdefault("properties", {})["provisioningState"] = "Succeeded"
        self._by_id[path.lower()] = new
        if kind == "microsoft.resources/deployments":
            self._deploy(path, body["properties"])
        # the service makes disks with 200 or 202, never with 201
        return (200 if old or kind == f"{_COMPUTE}/disks" else 201), copy.deepcopy(new)

    def patch(self, path: str, body: Body) -> Body:
        """Change what ``body`` names; tags are replaced as a whole, as Azure does."""
        found = self._existing(path)
        if "tags" in body:
            found["tags"] = copy.deepcopy(body["tags"])
        _merge(found["properties"], copy.deepcopy(body.get("properties", {})))
        return copy.deepcopy(found)

    def delete(self, path: str) -> None:
        """Remove it and what is below it."""
        gone = path.lower()
        for key in [one for one in self._by_id if one == gone or one.startswith(f"{gone}/")]:
            del self._by_id[key]

    def act(self, path: str, action: str) -> Body:
        """The POSTs: validate, deallocate, generalize, and the two of a disk that is read."""
        if action == "validate":
            self._needs_group(path)
            return {"properties": {"provisioningState": "Succeeded"}}
        machine = self._existing(path)
        if action in ("beginGetAccess", "endGetAccess"):
            self.readable = action == "beginGetAccess"
            return {"accessSAS": f"https://{ADDRESS}/blob/disk?sig=emulated"}
        state = machine["properties"].setdefault("state", "running")
        if action == "deallocate":
            machine["properties"]["state"] = "deallocated"
        elif action == "generalize":
            if state != "deallocated":
                raise ArmError(409, "OperationNotAllowed", f"the machine is {state}")
            machine["properties"]["state"] = "generalized"
        else:
            raise ArmError(501, "NotImplemented", f"this emulator knows no {action}")
        return {}

    def _checks(self) -> dict[str, Callable[[str, Body, Body | None], None]]:
        return {
            f"{_COMPUTE}/images": self._check_image,
            f"{_COMPUTE}/galleries/images/versions": self._check_version,
            f"{_COMPUTE}/disks": self._check_disk,
            f"{_COMPUTE}/virtualmachines": self._check_machine,
        }

    def _check_image(self, path: str, body: Body, old: Body | None) -> None:
        source = body.get("properties", {}).get("sourceVirtualMachine", {}).get("id")
        if source and self._existing(source)["properties"].get("state") != "generalized":
            raise ArmError(409, "OperationNotAllowed", "the source machine is not generalized")

    def _check_disk(self, path: str, body: Body, old: Body | None) -> None:
        source = body["properties"].get("creationData", {}).get("galleryImageReference", {})
        if source:
            self._existing(source["id"])

    def _check_machine(self, path: str, body: Body, old: Body | None) -> None:
        named = body["properties"].get("storageProfile", {}).get("imageReference", {})
        if "id" in named:
            self._existing(named["id"])

    def _check_version(self, path: str, body: Body, old: Body | None) -> None:
        self._existing(path.rsplit("/versions/", 1)[0])
        if not re.fullmatch(r"\d+\.\d+\.\d+", path.rsplit("/", 1)[1]):
            raise ArmError(400, "InvalidParameter", "a version is Major.Minor.Patch")
        source = _source(body)
        if old and source and source.lower() != _source(old).lower():
            raise ArmError(409, "PropertyChangeNotAllowed", "the source of a version is immutable")
        if not old:
            self._existing(source)
        # newer versions of the API have it here
        body["properties"].setdefault("storageProfile", {})["source"] = {"id": source}
        regions = body["properties"].get("publishingProfile", {}).get("targetRegions") or []
        home = body.get("location", "")
        if regions and home not in [one["name"].replace(" ", "").lower() for one in regions]:
            raise ArmError(400, "InvalidParameter", f"targetRegions must contain {home}")

    def _deploy(self, path: str, properties: Body) -> None:
        """Make what a deployment's template names; expressions other than names are left as is."""
        group = path.split("/providers/")[0]
        template = properties["template"]
        values = {
            "parameters": {key: one["value"] for key, one in properties["parameters"].items()},
            "variables": template.get("variables", {}),
        }
        for row in template["resources"]:
            made = _resolved(row, values)
            target = f"{group}/providers/{made['type']}/{made['name']}"
            body = {key: made[key] for key in ("location", "tags", "properties") if key in made}
            if made["type"].lower() == "microsoft.network/publicipaddresses":
                body["properties"]["ipAddress"] = ADDRESS
            if made["type"].lower() == "microsoft.network/networkinterfaces":
                for one in body["properties"].get("ipConfigurations", []):
                    one["properties"]["privateIPAddress"] = ADDRESS
            if made["type"].lower() == f"{_COMPUTE}/virtualmachines":
                disk = f"{group}/providers/Microsoft.Compute/disks/{made['name']}-os"
                self.put(disk, {"tags": body.get("tags", {}), "properties": {}})
                stored = body["properties"].setdefault("storageProfile", {})
                stored.setdefault("osDisk", {})["managedDisk"] = {"id": disk}
            self.put(target, body)

    def _existing(self, path: str) -> Body:
        self._needs_group(path)
        if found := self.find(path):
            return found
        raise ArmError(404, "ResourceNotFound", f"the resource '{path}' was not found")

    def _needs_group(self, path: str) -> None:
        parts = path.split("/")
        if len(parts) > 5 and parts[3].lower() == "resourcegroups":
            group = "/".join(parts[:5])
            if group.lower() not in self._by_id:
                raise ArmError(404, "ResourceGroupNotFound", f"'{parts[4]}' could not be found")


def _is_collection(path: str) -> bool:
    below = path.split("/providers/")[-1] if "/providers/" in path else ""
    count = len(below.split("/")) if below else len(path.strip("/").split("/"))
    return count % 2 == (0 if below else 1)


def _listed_in(identifier: str, collection: str) -> bool:
    """``…/providers/X/images`` of a subscription lists those of all its groups."""
    one, wanted = identifier.lower(), collection.lower()
    if "/providers/" in wanted and "/resourcegroups/" not in wanted:
        kind = wanted.split("/providers/")[1]
        found = re.fullmatch(r"/subscriptions/[^/]+/resourcegroups/[^/]+/providers/(.+)/[^/]+", one)
        return bool(found) and found[1] == kind
    return one.rsplit("/", 1)[0] == wanted


def _type(path: str) -> str:
    if "/providers/" not in path:
        return "microsoft.resources/resourcegroups"
    provider, *parts = path.lower().split("/providers/")[1].split("/")
    return "/".join([provider, *parts[::2]])


def _source(body: Body) -> str:
    profile = body["properties"].get("publishingProfile", {})
    stored = body["properties"].get("storageProfile", {})
    source = profile.get("source", {}).get("managedImage", {}) or stored.get("source", {})
    return str(source.get("id", ""))


def _resolved(value: Any, values: Body) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one, values) for one in value]
    if isinstance(value, str) and (found := _EXPRESSION.fullmatch(value)):
        return values[found[1]].get(found[2], value)
    return value


def _merge(into: Body, new: Body) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
