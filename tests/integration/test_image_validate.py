"""Packer accepts the templates for every image of the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from images.old_packer import adapt

from mvstack.image import packer, validation
from mvstack.model.load import load_system, system_names
from mvstack.support.errors import InvalidInput, Missing
from mvstack.support.progress import Progress

QUIET = Progress(0, mode="quiet")


@pytest.fixture(autouse=True)
def _packer() -> None:
    if not shutil.which("packer"):
        pytest.skip("packer is not installed")


@pytest.fixture
def any_packer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old one is shown the clouds' templates too, without what it does not know."""
    prepare = packer.prepare

    def adapted(folder: Path) -> None:
        prepare(folder)
        adapt(folder)

    monkeypatch.setattr(packer, "prepare", adapted)
    monkeypatch.setattr(packer, "CURRENT", (1, 6, 6))


@pytest.mark.usefixtures("any_packer")
def test_every_image_is_valid() -> None:
    done = validation.validate_images([], QUIET)
    wanted = {
        f"{name}/{partition}"
        for name in system_names()
        for partition, part in load_system(name).partitions.items()
        if part.image is not None
    }
    assert done == dict.fromkeys(wanted, "")
    clouds = {name.partition("-")[0] for name in done}
    assert clouds == {"azure", "aws", "qemu"}


def test_the_templates_are_formatted() -> None:
    done = subprocess.run(
        ["packer", "fmt", "-check", "-diff", str(packer.TEMPLATES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("any_packer")
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("aws.pkr.hcl", "encrypt_boot", "encrypt_root"),
        ("azure.pkr.hcl", "image_publisher", "publisher"),
        ("qemu.pkr.hcl", "iso_checksum", "iso_check"),
    ],
)
def test_packer_sees_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str
) -> None:
    """Validation is a look: a misspelt argument of any source is refused, with Packer's words."""
    texts = packer.templates()
    texts[file] = texts[file].replace(old, new)
    monkeypatch.setattr(packer, "templates", lambda: texts)
    names = {"aws": "aws-c6i", "azure": "azure-hbv3", "qemu": "qemu-debian12/mpich"}
    with pytest.raises(InvalidInput, match=new):
        validation.validate_images([names[file.partition(".")[0]]], QUIET)


def test_a_cloud_that_an_old_packer_cannot_be_shown() -> None:
    if packer.version() >= packer.CURRENT:
        pytest.skip("the Packer here is new enough")
    done = validation.validate_images([], QUIET)
    assert not done["qemu-debian12/mpich"] and "too old" in done["aws-c6i/hpc"]
    with pytest.raises(Missing, match="too old"):
        validation.validate_images(["aws-c6i"], QUIET)


PACKER = """#!/bin/bash
case "$*" in
    version) echo 'Packer v{version}' ;;
    'plugins installed') echo '{plugins}' ;;
    *) exit 1 ;;
esac
"""
PLUGIN = (
    "/root/.config/packer/plugins/github.com/hashicorp/azure/packer-plugin-azure_v2.3.3_x5.0_linux"
)


@pytest.mark.parametrize(
    ("version", "plugins", "words"),
    [
        ("1.14.2", PLUGIN, ""),
        ("1.14.2", PLUGIN.replace("azure", "amazon"), "plugin is not installed"),
        ("1.14.2", "", "packer init images"),
        ("1.13.1", PLUGIN, "too old"),
    ],
)
def test_a_packer_that_cannot_build_is_told_before_anything_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, plugins: str, words: str
) -> None:
    place = tmp_path / "packer"
    place.write_text(PACKER.format(version=version, plugins=plugins))
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if not words:
        packer.check("azure")
        return
    with pytest.raises(Missing, match=words) as refused:
        packer.check("azure")
    assert "Nothing was built." in str(refused.value)
