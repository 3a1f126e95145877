"""The Packer templates hold together, and ask for what a cloud's image must have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mvstack.image import packer
from mvstack.support.errors import Missing

TEXTS = packer.templates()
ALL = "\n".join(TEXTS.values())
VARIABLES = dict(re.findall(r'^variable "(\w+)" \{\n(.*?)^\}', ALL, re.M | re.S))
#: By template: arguments that must be given, and why.
MUST = {
    "azure.pkr.hcl": {
        "azure_tags": "what a crashed build leaves behind is found by its tags",
        "secure_boot_enabled": "it is decided for each system, with the reason",
        "shared_gallery_image_version_exclude_from_latest": "a candidate is not `latest`",
        "image_version": "a moving base makes two builds differ",
    },
    "aws.pkr.hcl": {
        "run_tags": "what a crashed build leaves behind is found by its tags",
        "run_volume_tags": "as run_tags",
        "snapshot_tags": "as run_tags",
        "encrypt_boot": "the disk is encrypted",
        "imds_support": "instances answer IMDSv2 alone",
        "ena_support": "EFA needs ENA",
    },
    "qemu.pkr.hcl": {"iso_checksum": "the base disk is known by its hash"},
}


def test_every_variable_that_is_used_is_declared_and_the_other_way_round() -> None:
    used = set(re.findall(r"\bvar\.([a-z0-9_]+)", ALL))
    assert used - set(VARIABLES) == set()
    boot = {"prices", "azure_subnet", "aws_security_group"}  # `image boot-test` reads them
    assert set(VARIABLES) - used <= {"release", "qemu_seed", *boot}


def test_secrets_are_marked_as_such() -> None:
    secret = re.compile("secret|password|token|access_key")
    plain = [name for name, body in VARIABLES.items() if "sensitive" not in body]
    assert not [name for name in plain if secret.search(name)]


@pytest.mark.parametrize(("file", "name"), [(file, one) for file in MUST for one in MUST[file]])
def test_what_an_image_must_have_is_asked_for(file: str, name: str) -> None:
    assert re.search(rf"^  {name} +=", TEXTS[file], re.M), MUST[file][name]


def test_no_script_is_taken_from_the_network() -> None:
    assert not re.search(r"(curl|wget)[^|\n]*\|\s*(sudo\s+)?(ba)?sh", ALL)


def test_a_candidate_is_never_what_is_taken_by_default() -> None:
    assert re.search(r"exclude_from_latest\s*= true", TEXTS["azure.pkr.hcl"])
    assert "published" not in ALL


@pytest.mark.parametrize("found", [(1, 6, 6), (1, 9, 5)])
def test_an_old_packer_is_refused_for_a_cloud_and_does_for_qemu(
    monkeypatch: pytest.MonkeyPatch, found: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(packer, "version", lambda: found)
    with pytest.raises(Missing, match="too old") as caught:
        packer.check("aws")
    assert "packer init" in caught.value.problems[0].todo
    packer.check("qemu")


@pytest.mark.parametrize("found", [(1, 6, 6), (1, 10, 0), (1, 15, 1)])
def test_only_a_packer_with_plugins_is_told_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(packer, "version", lambda: found)
    (tmp_path / "old.pkr.hcl").write_text("")
    packer.prepare(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert set(TEXTS) - names == ({"plugins.pkr.hcl"} if found < (1, 7) else set())
    assert names <= set(TEXTS)
