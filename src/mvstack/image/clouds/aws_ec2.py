"""EC2 of one region through boto3, with its errors told as ours."""

import time
from collections.abc import Callable
from typing import Any

from mvstack.image.extras import load
from mvstack.support.errors import Missing, MvstackError, Problem, Refused

LIMIT = 3600.0  # seconds that AWS may take; a copy of an AMI to another continent takes minutes
_REFUSED = ("Unauthorized", "AccessDenied", "AuthFailure", "OptInRequired", "Expired")
_KEYS = {
    "describe_images": "Images",
    "describe_instances": "Reservations",
    "describe_key_pairs": "KeyPairs",
    "describe_security_groups": "SecurityGroups",
    "describe_snapshots": "Snapshots",
    "describe_volumes": "Volumes",
}


class Ec2:
    """A client for ``region``; ``pause`` seconds between two looks in :meth:`wait`.

    ``service`` is another one of AWS's than EC2 (ebs, which reads snapshots).
    """

    def __init__(self, region: str, pause: float, service: str = "ec2") -> None:
        self.region, self.pause = region, pause
        self._botocore = load("botocore.exceptions")
        boto3 = load("boto3")
        # a session of our own: boto3's default one remembers credentials that were changed since
        self._client = self._told(lambda: boto3.Session().client(service, region_name=region))

    def call(self, operation: str, **arguments: Any) -> Any:
        """One request. Raises Missing, Refused or MvstackError; see :class:`Cloud`."""
        return self._told(lambda: getattr(self._client, operation)(**arguments), operation)

    def all(self, operation: str, **arguments: Any) -> list[dict[str, Any]]:
        """All pages of one of the describe operations."""
        key = _KEYS[operation]

        def pages() -> list[dict[str, Any]]:
            if not self._client.can_paginate(operation):
                return list(getattr(self._client, operation)(**arguments)[key])
            found = self._client.get_paginator(operation).paginate(**arguments)
            return [item for page in found for item in page[key]]

        rows: list[dict[str, Any]] = self._told(pages, operation)
        return rows

    def one(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """The only item of a describe operation. Raises MvstackError when there is none."""
        if found := self.all(operation, **arguments):
            return found[0]
        raise MvstackError("AWS does not show what was there", self.region, str(arguments))

    def gone(self, operation: str, **arguments: Any) -> bool:
        """One request that removes something; False where it is gone already, which is no error."""
        try:
            self.call(operation, **arguments)
        except _NotFound:
            return False
        return True

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Return when ``is_so`` or what it asks for is gone. Raises MvstackError after LIMIT."""
        begin = time.monotonic()
        try:
            while not is_so():
                if time.monotonic() - begin > LIMIT:
                    said = f"{what} did not end within {LIMIT:.0f} s"
                    todo = "run the same command again later: it goes on"
                    raise MvstackError(said, self.region, todo=todo)
                time.sleep(self.pause)
        except _NotFound:
            return

    def until(self, state: str, **arguments: Any) -> None:
        """Wait with boto3's waiter ``state``. Raises MvstackError for another end, or none."""
        often = {"Delay": self.pause, "MaxAttempts": int(LIMIT / self.pause)}
        waiter = self._client.get_waiter(state)
        self._told(lambda: waiter.wait(WaiterConfig=often, **arguments), state)

    def _told(self, ask: Callable[[], Any], operation: str = "") -> Any:
        errors = self._botocore
        where = f"AWS {self.region}"
        try:
            return ask()
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            raise Missing(
                "AWS's credentials were not found",
                where,
                found=str(error),
                todo="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ) from None
        except errors.ClientError as error:
            raise _as_ours(error, where, operation) from None
        except errors.WaiterError as error:
            raise MvstackError("AWS did not do it", where, found=str(error)) from None
        except (errors.BotoCoreError, ValueError) as error:
            raise MvstackError(
                "AWS could not be asked",
                where,
                found=str(error),
                todo="see that the network, the region and AWS_ENDPOINT_URL are right",
            ) from None


class _NotFound(MvstackError):
    """What was asked about is not there."""


def _as_ours(error: Any, where: str, operation: str) -> MvstackError:
    told = error.response.get("Error", {})
    code, text = str(told.get("Code", "")), str(told.get("Message", ""))
    problem = Problem(f"AWS refuses {operation}", where, found=f"{code}: {text}")
    if code.endswith((".NotFound", ".Unavailable")):
        return _NotFound(problem)
    if code.startswith(_REFUSED) or "TokenId" in code:
        return Refused(problem)
    return MvstackError(problem)


def tags_of(item: dict[str, Any]) -> dict[str, str]:
    """The tags of anything that EC2 describes."""
    return {row["Key"]: row["Value"] for row in item.get("Tags") or []}


def snapshots_of(ami: dict[str, Any]) -> list[str]:
    """The snapshots that an AMI consists of."""
    disks = [one.get("Ebs", {}) for one in ami.get("BlockDeviceMappings") or []]
    return [str(disk["SnapshotId"]) for disk in disks if disk.get("SnapshotId")]
