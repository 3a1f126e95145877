"""AWS's EC2 as moto emulates it, on a world's loopback, and how to look at what is in it.

moto is another project's emulator. It proves what is asked for and that all that was made is
removed. It is not faithful in EnaSupport, SriovNetSupport, the encryption of copies and the root
volume (tests look at the requests made, not at those fields), it makes up public addresses (nothing
here may dial them), and it allows what a real account might not.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from .cloud_disk import NAME
from .world import LOOPBACK, World, end

TOP = Path(__file__).resolve().parents[2]

REGION, ELSEWHERE = "us-east-2", "eu-west-1"
BASE = {  # what builds start from
    "ami_id": "ami-0ba5e0ba5e0ba5e00",
    "name": "debian-12-amd64-emulated",
    "owner_id": "136693071363",
    "description": "Debian 12",
    "public": True,
    "virtualization_type": "hvm",
    "architecture": "x86_64",
    "state": "available",
    "image_type": "machine",
    "hypervisor": "xen",
    "root_device_type": "ebs",
    "root_device_name": "/dev/sda1",
    "creation_date": "2026-01-01T00:00:00.000Z",
}
KEY, SECRET = "AKIAEMULATED00000000", "known-to-the-emulator-alone"


class EmulatedAws:
    """Use as a context manager. ``folder`` receives the record of requests."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.log = world, folder / "requests.jsonl"
        self.disk = folder / NAME  # what every snapshot holds
        self.port = world.free_port()
        self.endpoint = f"http://{LOOPBACK}:{self.port}"

    def __enter__(self) -> EmulatedAws:
        server = Path(__file__).with_name("moto_ebs.py")
        command = [sys.executable, server, "-H", LOOPBACK, "-p", str(self.port)]
        amis = self.log.with_name("amis.json")  # instead of moto's catalogue of hundreds
        amis.write_text(json.dumps([BASE]))
        settings = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(TOP / "src"),
            "MOTO_AMIS_PATH": str(amis),
            "MVSTACK_TEST_DISK": str(self.disk),
            "MOTO_ENABLE_RECORDING": "true",
            "MOTO_RECORDER_FILEPATH": str(self.log),
        }
        self._process = self.world.popen(command, settings)
        while True:
            with suppress(OSError):
                self._call("GET", "moto-api/data.json")
                break
            if self._process.poll() is not None:
                raise RuntimeError("moto_server ended at once")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)

    def environment(self) -> dict[str, str]:
        """What a program in the world needs to find this AWS and to be let in."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def reset(self) -> None:
        """Forget everything, the requests too."""
        self._call("POST", "moto-api/reset")
        self._call("POST", "moto-api/recorder/reset-recording")

    def ec2(self, region: str = REGION) -> Any:
        """A boto3 client; to be used within :meth:`World.inside`."""
        import boto3

        return boto3.client(
            "ec2",
            region_name=region,
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    def variables(self) -> dict[str, Any]:
        """What the templates need to build here."""
        return {
            "aws_region": REGION,
            "aws_copy_regions": [ELSEWHERE],
            "aws_base_owner": BASE["owner_id"],
            "aws_base_name": BASE["name"],
            "aws_instance_type": "hpc7a.96xlarge",
            "aws_endpoint": self.endpoint,
            "aws_access_key": KEY,
            "aws_secret_key": SECRET,
            "aws_offline": True,
        }

    def left(self, region: str = REGION) -> dict[str, list[str]]:
        """What a build could have left, by kind: empty lists when there is nothing."""
        with self.world.inside():
            ec2 = self.ec2(region)
            running = [
                one["InstanceId"]
                for group in ec2.describe_instances()["Reservations"]
                for one in group["Instances"]
                if one["State"]["Name"] != "terminated"
            ]
            images = ec2.describe_images(Owners=["self"])["Images"]
            snapshots = ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]
            groups = ec2.describe_security_groups()["SecurityGroups"]
            return {
                "instances": running,
                "volumes": [one["VolumeId"] for one in ec2.describe_volumes()["Volumes"]],
                "images": [one["Name"] for one in images],
                "snapshots": [one["SnapshotId"] for one in snapshots],
                "key pairs": [one["KeyName"] for one in ec2.describe_key_pairs()["KeyPairs"]],
                "security groups": [
                    one["GroupName"] for one in groups if one["GroupName"] != "default"
                ],
            }

    def requests(self) -> list[dict[str, str]]:
        """Every EC2 request since the reset, in order: the form that was sent, and its region."""
        found = []
        for line in self.log.read_text().splitlines():
            entry = json.loads(line)
            body = entry.get("body") or ""
            text = base64.b64decode(body).decode() if entry.get("body_encoded") else body
            form = {key: values[0] for key, values in parse_qs(text).items()}
            signed = re.search(r"/([a-z0-9-]+)/ec2/", entry["headers"].get("Authorization", ""))
            found.append({**form, "region": signed[1] if signed else ""})
        return [form for form in found if "Action" in form]

    def _call(self, method: str, path: str) -> str:
        request = urllib.request.Request(f"{self.endpoint}/{path}", method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with self.world.inside(), opener.open(request) as answer:
            return str(answer.read().decode())
