"""Holds YAML against the JSON schema that GitLab (or GitHub) publishes for it; needs no network."""

from __future__ import annotations

from functools import cache
from io import StringIO
from typing import Any

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

GITLAB, GITHUB = "vendor.gitlab-ci", "vendor.github-workflows"


def errors(text: str, schema: str = GITLAB) -> list[str]:
    """What the schema does not allow in ``text``, each as ``place: message``; empty when valid.

    A file with a `spec:` before its `---` is held against it without that header; what stands for
    an input must then fit as text. Skips where check-jsonschema is not installed.
    """
    try:
        data = _reader(schema).load(_body(text))
    except YAMLError as error:
        return [f"cannot be read: {error}"]
    return [
        f"{'/'.join(map(str, one.absolute_path))}: {one.message}"
        for one in _validator(schema).iter_errors(data)
    ]


@cache
def _validator(schema: str) -> Any:
    pytest.importorskip("check_jsonschema", reason="not installed: check-jsonschema")
    from check_jsonschema.builtin_schemas import get_builtin_schema
    from jsonschema.validators import validator_for

    found = get_builtin_schema(schema)
    return validator_for(found)(found)


@cache
def _reader(schema: str) -> YAML:
    pytest.importorskip("check_jsonschema", reason="not installed: check-jsonschema")
    from check_jsonschema.transforms import TRANSFORM_LIBRARY

    yaml = YAML(typ="safe")
    if schema == GITLAB:
        TRANSFORM_LIBRARY["gitlab-ci"].modify_yaml_implementation(yaml)
    return yaml


def _body(text: str) -> str:
    """The text without a `spec:` header."""
    if "\n---" not in text:
        return text
    head, separator, body = text.partition("\n---")
    loaded = YAML(typ="rt", pure=True).load(StringIO(head))
    return body if separator and loaded and set(loaded) == {"spec"} else text
