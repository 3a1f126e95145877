"""Packer and our lint accept the templates for every image of the repository."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mvstack.image import flow, packer, strip
from mvstack.model.load import load_system, system_names
from mvstack.support.errors import InvalidInput
from mvstack.support.progress import Progress

QUIET = Progress(0, mode="quiet")


@pytest.fixture(autouse=True)
def _packer() -> None:
    if not shutil.which("packer"):
        pytest.skip("packer is not installed")


def test_every_image_is_valid() -> None:
    done = flow.validate_images([], QUIET)
    wanted = {
        f"{name}/{partition}"
        for name in system_names()
        for partition, part in load_system(name).partitions.items()
        if part.image is not None
    }
    assert set(done) == wanted
    clouds = {name.partition("-")[0] for name in done}
    assert clouds == {"azure", "aws", "qemu"}


def test_the_templates_are_formatted() -> None:
    done = subprocess.run(
        ["packer", "fmt", "-check", "-diff", str(strip.TEMPLATES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


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
    texts = strip.templates()
    texts[file] = texts[file].replace(old, new)
    monkeypatch.setattr(packer, "templates", lambda: texts)
    monkeypatch.setattr("mvstack.image.lint.lint", lambda: [])
    names = {"aws": "aws-c6i", "azure": "azure-hbv3", "qemu": "qemu-debian12/mpich"}
    with pytest.raises(InvalidInput, match=new):
        flow.validate_images([names[file.partition(".")[0]]], QUIET)


def test_what_an_older_packer_is_not_shown_is_said() -> None:
    done = flow.validate_images(["aws-c6i"], QUIET)
    left = done["aws-c6i/hpc"]
    assert ("amazon-ebs: imds_support" in left) == (packer.version() <= packer.OLD)
