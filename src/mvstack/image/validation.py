"""`mvstack image validate`: the templates with every image's variables, read by Packer."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvstack.image import packer
from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.policy import image_policy
from mvstack.image.render import packer_variables
from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan.make import make_plan, partitions_of, split_name
from mvstack.support.errors import MvstackError, together
from mvstack.support.files import sha256_of
from mvstack.support.progress import Progress


def validate_images(names: Sequence[str], progress: Progress) -> dict[str, str]:
    """`mvstack image validate`: `packer validate` of the templates with each image's variables.

    The image → why it was not looked at, "" where it is valid. Raises InvalidInput with all
    errors, and Missing for a named image that the Packer here is too old for.
    """
    release, policy = load_release(), load_policy()
    errors: list[MvstackError] = []
    done: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mvstack-packer-") as scratch:
        packer.prepare(Path(scratch) / "templates")
        for name in names or [one for one in system_names() if one != "local"]:
            try:
                system_name, wanted = split_name(name)
                system = load_system(system_name)
                # where nothing is offered, only who names it is told so
                there = partitions_of(system, wanted) if names or system.partitions else []
                described = [one for one in there if system.partitions[one].image is not None]
                # of a system that is named, one that has no image is refused with the reason
                for partition in described or (there[:1] if names else []):
                    plan = make_plan(system, partition, release, policy)
                    image = make_image(system, plan, image_policy())
                    if names:
                        packer.check(image.cloud)
                    why = packer.too_old(image.cloud)
                    if not why:
                        with progress.step("validate", f"{image.name}, {image.source}"):
                            _validate(Path(scratch), image)
                    done[f"{system.name}/{partition}"] = why
            except MvstackError as error:
                errors.append(error)
    if errors:
        raise together(errors)
    return done


#: Enough for Packer to see whether the templates fit together; nothing of it is asked for anywhere.
_MADE_UP: dict[str, dict[str, Any]] = {
    "azure": {
        "azure_subscription": "00000000-0000-0000-0000-000000000000",
        "azure_tenant": "00000000-0000-0000-0000-000000000000",
        "azure_client_id": "00000000-0000-0000-0000-000000000000",
        "azure_client_secret": "made-up",
        "azure_gallery": "gallery",
        "azure_gallery_resource_group": "group",
    },
    "aws": {"aws_access_key": "made-up", "aws_secret_key": "made-up", "aws_offline": True},
    "qemu": {"qemu_output": "output"},
}


def _validate(scratch: Path, image: ImagePlan) -> None:
    variables_file = scratch / "variables.pkrvars.json"
    variables_file.write_text(json.dumps(packer_variables(image)))
    kit = scratch / "kit.tar"
    kit.write_bytes(b"kit")
    digest = sha256_of(kit)
    variables: dict[str, Any] = {
        "version": f"{image.release}.0",
        "build_id": "validate",
        "commit": "none",
        "kit": str(kit),
        "kit_sha256": digest,
        "manifest": str(scratch / "manifest.json"),
        **_MADE_UP[image.cloud],
    }
    if image.cloud == "qemu":
        variables |= {"qemu_disk": str(kit), "qemu_disk_sha256": digest, "ssh_private_key_file": ""}
    packer.validate(scratch / "templates", image.source, [variables_file], variables)
