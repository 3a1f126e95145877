"""The site's own file of Packer variables (``--settings``), and the cloud that it describes."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvstack.image.clouds import Cloud
from mvstack.image.clouds.aws import Aws
from mvstack.image.clouds.azure import Azure
from mvstack.image.extras import need
from mvstack.image.packer import templates
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.words import nearest

_TODO = 'write {"azure_subscription": "…", …}; variables: images/variables.pkr.hcl'
_LISTS = ("aws_copy_regions", "azure_regions")
CLOUDS = ("aws", "azure")
#: By cloud: the modules of its SDK that we use.
_SDK = {
    "aws": ("boto3",),
    "azure": ("azure.identity", "azure.mgmt.compute", "azure.mgmt.resource.resources"),
}


def read_site(path: Path | None) -> dict[str, Any]:
    """The variables of the site's file, {} without one.

    Raises InvalidInput when it cannot be read, is no JSON object, or names what is no variable.
    """
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(
            f"the site's file cannot be read: {error.strerror}", relative(path), todo=_TODO
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"the site's file is no JSON: {error}", relative(path), todo=_TODO
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput("the site's file is no JSON object", relative(path), todo=_TODO)
    if problems := _problems(found, relative(path)):
        raise InvalidInput(*problems)
    return found


def _problems(found: dict[str, Any], where: str) -> list[Problem]:
    text = "\n".join(templates().values())
    known = re.findall(r'^variable "(\w+)"', text, re.M)
    problems = [
        Problem(
            "there is no such variable",
            where,
            found=name,
            nearest=nearest(name, known),
            todo="images/variables.pkr.hcl has them all",
        )
        for name in found
        if name not in known
    ]
    for name, value in found.items():
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                problems.append(
                    Problem(f"{name} is no list of regions", where, allowed='["eu-north-1", …]')
                )
        elif name == "aws_copy_keys":
            if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
                problems.append(
                    Problem(f"{name} says no key by region", where, allowed='{"eu-north-1": "…"}')
                )
            elif {*value} != {*(found.get("aws_copy_regions") or [])}:
                problems.append(
                    Problem(
                        f"{name} and aws_copy_regions name other regions",
                        where,
                        found=", ".join(sorted(value)),
                        todo="name the key of each region that is copied to, or of none",
                    )
                )
        elif name == "prices":
            rows = value.values() if isinstance(value, dict) else [value]
            if not all(isinstance(one, int | float) and one > 0 for one in rows) or value in rows:
                problems.append(
                    Problem(
                        "prices says no price by size", where, allowed='{"hpc7a.96xlarge": 7.2}'
                    )
                )
        elif name.startswith(("aws_", "azure_")) and not isinstance(value, str | bool | None):
            problems.append(Problem(f"{name} is no text", where, allowed='"…"'))
    return problems


def cloud(name: str, site: dict[str, Any], share: Sequence[str] = ()) -> Cloud:
    """The cloud of that name, as the site's file of Packer variables describes it.

    Raises InvalidInput when the file lacks what is needed, Missing without the cloud's SDK.
    """
    if name not in CLOUDS:
        raise InvalidInput(
            "there is no such cloud",
            "--cloud",
            found=name,
            allowed=", ".join(CLOUDS),
            todo="name one of these; without --cloud it is about this machine",
        )
    if name == "aws":
        need(*_SDK[name])
        region = str(site.get("aws_region") or "us-east-2")
        keys = dict(site.get("aws_copy_keys") or {})
        if site.get("aws_kms_key"):
            keys[region] = str(site["aws_kms_key"])
        return Aws(region, list(site.get("aws_copy_regions") or []), share, keys=keys)
    names = ("azure_gallery_resource_group", "azure_gallery", "azure_subscription")
    lacking = [one for one in names if not site.get(one)]
    if lacking:
        raise InvalidInput(
            f"the site's file says nothing of {', '.join(lacking)}",
            "--settings",
            todo="a JSON file with these variables of images/variables.pkr.hcl",
        )
    need(*_SDK[name])
    group, gallery, subscription = (str(site[one]) for one in names)
    return Azure(group, gallery, subscription)
