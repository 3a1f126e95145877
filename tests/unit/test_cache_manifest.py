"""A manifest that could write elsewhere than into its own package is no manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mvstack.cache.manifest import parse

ZERO = "0" * 64


def manifest(*items: dict[str, Any], **changes: Any) -> str:
    module = {"path": "modules/x/1.lua", "kind": "file", "sha256": ZERO}
    data = {
        "format": 1, "builder": "easybuild", "content": ZERO, "os": "debian12", "target": "zen4",
        "easyconfig": "x-1.eb", "package": "x", "version": "1", "module": "x/1", "mpi": "",
        "tree": "/opt/stack/2026.11/local", "module_file": "modules/x/1.lua",
        "software": "software/x/1", "archive": {"sha256": ZERO, "size": 1}, "needs": [],
        "build": {}, "items": [*items, module],
    }  # fmt: skip
    return json.dumps({**data, **changes})


def file(path: str) -> dict[str, Any]:
    return {"path": path, "kind": "file", "sha256": ZERO}


def test_a_plain_one_is_read() -> None:
    read = parse(manifest(file("software/x/1/bin/x"), file("ebfiles_repo/x/x-1.eb")))
    assert [item.path for item in read.items][-1] == read.module_file
    assert parse(read.text()) == read


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "software/x/1/../../../y", "software/x/1//a", "./a", "",
     "software/y/1/a", "records/plan.json", "init/bash", "software/x/10/a"],
)  # fmt: skip
def test_a_path_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(ValueError):
        parse(manifest(file(path)))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"os": "../../x"},
        {"content": "x"},
        {"tree": "relative"},
        {"tree": "/ends/"},
        {"module_file": "/etc/x.lua"},
        {"module_file": "modules/other.lua"},
        {"software": "../x"},
        {"easyconfig": "a/b.eb"},
        {"archive": {"sha256": ZERO, "size": -1}},
        {"unknown": 1},
        {"items": "many"},
    ],
)
def test_what_is_not_as_it_must_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        parse(manifest(**changes))


def test_nothing_is_written_through_a_link() -> None:
    link = {"path": "software/x/1/lib", "kind": "link", "target": "/etc"}
    with pytest.raises(ValueError, match="through a link"):
        parse(manifest(link, file("software/x/1/lib/passwd")))


def test_a_path_occurs_once_and_a_file_has_its_hash() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse(manifest(file("software/x/1/a"), file("software/x/1/a")))
    with pytest.raises(ValueError, match="sha256"):
        parse(manifest({"path": "software/x/1/a", "kind": "file"}))
    with pytest.raises(ValueError, match="target"):
        parse(manifest({"path": "software/x/1/a", "kind": "link"}))


def test_text_that_is_no_json_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError) as error:
        parse("{")
    assert "\n" not in str(error.value)
