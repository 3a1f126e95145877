"""What must not be left in an image: the rules of images/audit.yaml."""

import re
from functools import cache
from typing import Literal

from mvstack.image.packer import TEMPLATES
from mvstack.model.base import Strict, validated
from mvstack.model.yamlfile import read_yaml

IDENTITY = "every machine that starts from the image would have the same one"
SECRET = "whoever can start the image can read it"


class Rule(Strict):
    """Paths that must not be left behind, and why; images/audit.yaml explains each field."""

    paths: list[str]
    what: str
    why: str
    when: Literal["there", "entry", "filled", "unowned"] = "filled"
    found: re.Pattern[str] | None = None
    below: str = ""
    fails: bool = True


class _File(Strict):
    rules: list[Rule]


@cache
def rules() -> list[Rule]:
    """The rules in order. Raises InvalidInput with file and line for what is wrong."""
    return validated(_File, read_yaml(TEMPLATES / "audit.yaml")).rules
