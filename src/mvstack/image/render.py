"""From an image's plan to its files: Packer's variables, drop-in files, what tests expect. Pure."""

import json
import shlex
from typing import Any

from mvstack.image.plan import ImagePlan
from mvstack.plan.types import Plan
from mvstack.render.templates import generated
from mvstack.support.units import one_line

NAME = "90-mvapich-stack"


def image_files(plan: Plan, image: ImagePlan) -> dict[str, str]:
    """The files of ``image``, by name below the partition's rendered folder."""
    also = "policy/images.yaml"
    first = f"# {generated(plan, also)}\n"
    said = generated(plan, also)
    files = {
        "variables.pkrvars.json": _json(packer_variables(image)),
        "image.json": _json({"generated": said, **image.as_dict()}),
        "provision.env": first + provision_env(image),
    }
    for path, text in drop_in_files(image).items():
        files[f"files{path}"] = first + text
    return {f"image/{name}": text for name, text in files.items()}


def packer_variables(image: ImagePlan) -> dict[str, Any]:
    """What the templates are told of the image; the site and the build add their own."""
    azure: dict[str, Any] = {
        "azure_publisher": image.base.get("publisher", ""),
        "azure_offer": image.base.get("offer", ""),
        "azure_sku": image.base.get("sku", ""),
        "azure_version": image.base.get("version", ""),
        "azure_vm_size": image.built_on,
        "azure_security_type": "TrustedLaunch",
        "azure_secure_boot": image.secure_boot,
    }
    aws: dict[str, Any] = {
        "aws_base_owner": image.base.get("owner", ""),
        "aws_base_name": image.base.get("name", ""),
        "aws_instance_type": image.built_on,
    }
    common: dict[str, Any] = {
        "image": image.name,
        "release": image.release,
        "user": image.user,
        "disk_gb": image.disk_gb,
    }
    return common | {"azure": azure, "aws": aws}.get(image.cloud, {})


def provision_env(image: ImagePlan) -> str:
    """The variables that the provisioning scripts read; each is a word or an array of bash."""
    words = {
        "FAMILY": image.family,
        "OS": image.os,
        "CLOUD": image.cloud,
        "MACHINE": image.machine,
        "NIC_STACK": image.nic_stack,
        "GPU_STACK": image.gpu_stack,
        "RELEASE": image.release,
        "TREE": image.tree,
        "SYSTEM": image.system,
        "PARTITION": image.partition,
    }
    arrays = {
        "STEPS": [step["script"] for step in image.steps],
        "PACKAGES": image.packages,
        "TEST_PACKAGES": image.test_packages,
        "LAUNCH": [f"{one['module']} {one['launch']}" for one in image.launch],
        "UNITS": [f"{unit['name']} {unit['state']}" for unit in image.units],
        "DOWNLOADS": [
            f"{item['id']} {item['version']} {item['sha256']} {item['url']}"
            for item in image.downloads
        ],
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in words.items()]
    for name, values in arrays.items():
        lines.append(f"{name}=(")
        lines += [f"    {shlex.quote(value)}" for value in values]
        lines.append(")")
    return "\n".join(lines) + "\n"


def drop_in_files(image: ImagePlan) -> dict[str, str]:
    """The files below /etc that follow from the policy's tables, each line with its reason."""
    files = {
        f"/etc/sysctl.d/{NAME}.conf": _lines(
            image.sysctl, lambda row: f"{row['name']} = {row['value']}"
        ),
        f"/etc/security/limits.d/{NAME}.conf": _lines(
            image.limits, lambda row: _limit(row["item"], row["value"])
        ),
        f"/etc/tmpfiles.d/{NAME}.conf": _lines(
            image.kernel_files, lambda row: f"w {row['path']} - - - - {row['value']}"
        ),
        f"/etc/modprobe.d/{NAME}.conf": _lines(
            image.module_options,
            lambda row: f"options {row['module']} {row['option']}={row['value']}",
        ),
        f"/etc/modules-load.d/{NAME}.conf": _lines(image.modules, lambda row: row["name"]),
        "/etc/mvapich-stack/expected": "".join(
            f"{name}={value}\n"
            for rows in (
                image.hardware,
                *({"machine": size, **rows} for size, rows in image.serves.items()),
            )
            for name, value in rows.items()
        ),
    }
    for row in image.drop_ins:
        files[row["path"]] = f"# {_reason(row)}\n{row['text']}"
    return {path: text for path, text in sorted(files.items()) if text}


def _lines(rows: list[dict[str, Any]], line: Any) -> str:
    return "".join(f"# {_reason(row)}\n{line(row)}\n" for row in rows)


def _reason(row: dict[str, Any]) -> str:
    return one_line(f"{row['why']} ({row['source']})")


def _limit(item: str, value: str) -> str:
    # root is not part of `*` for pam_limits
    return "\n".join(
        f"{who:<5} {kind:<4} {item:<8} {value}"
        for who in ("*", "root")
        for kind in ("soft", "hard")
    )


def _json(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"
