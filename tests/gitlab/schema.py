"""Holds YAML against the JSON schema that GitLab (or GitHub) publishes for it; needs no network."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

import pytest
from ruamel.yaml import YAML

GITLAB, GITHUB = "vendor.gitlab-ci", "vendor.github-workflows"


def errors(text: str, schema: str = GITLAB) -> list[str]:
    """What the schema does not allow in ``text``, each as ``place: message``; empty when valid.

    A file with a `spec:` before its `---` is held against it without that header; what stands for
    an input must then fit as text. Skips where check-jsonschema is not installed.
    """
    if not importlib.util.find_spec("check_jsonschema"):
        pytest.skip("not installed: check-jsonschema")
    words = ["--builtin-schema", schema, "--output-format", "json", "--color", "never"]
    words += ["--data-transform", "gitlab-ci"] if schema == GITLAB else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yml"
        file.write_text(_body(text), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "check_jsonschema", *words, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        raise RuntimeError(
            f"check-jsonschema: status {done.returncode}: {done.stdout}{done.stderr}"
        )
    said = json.loads(done.stdout)
    found = [f"{one['path']}: {one['message']}" for one in said.get("errors", [])]
    found += [f"cannot be read: {one}" for one in said.get("parse_errors", [])]
    if done.returncode and not found:
        raise RuntimeError(f"check-jsonschema failed and named nothing: {done.stdout}")
    return found


def _body(text: str) -> str:
    """The text without a `spec:` header."""
    if "\n---" not in text:
        return text
    head, separator, body = text.partition("\n---")
    loaded = YAML(typ="rt", pure=True).load(StringIO(head))
    return body if separator and loaded and set(loaded) == {"spec"} else text
