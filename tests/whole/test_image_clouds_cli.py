"""`mvstack image build`, `list`, `publish` and `clean` as a site gives them, on emulated clouds.

The release is a real one, the same that goes into the image for QEMU, and the test in the instance
runs its MPI. What the emulators cannot show stands in images/emulated_aws.py and fake_arm.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from images.base import base
from images.emulated_aws import REGION, EmulatedAws
from images.fake_arm import FakeArm
from images.instance import USER, Instance, make_key
from images.needs import needs
from images.release import IMAGE, PARTITION, ROOT, SYSTEM, installed
from images.world import LOOPBACK, World

from mvstack.image.flow import Asked
from mvstack.model.load import load_system
from mvstack.support.home import DATA

VERSION = "2026.11.0"
CLOUDS = {
    "aws": "{owner: '136693071363', name: debian-12-amd64-20251112-2294}",
    "azure": "{publisher: Debian, offer: debian-12, sku: 12-gen2, version: 0.20251112.2294}",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]  # the first builds an MPI


class Emulator(Protocol):
    """What both emulators have."""

    def environment(self) -> dict[str, str]: ...
    def variables(self) -> dict[str, Any]: ...


@pytest.fixture(scope="module", params=sorted(CLOUDS))
def cloud(request: pytest.FixtureRequest) -> str:
    needs("moto", "flask", "boto3", "azure.identity")
    installed()
    return str(request.param)


@pytest.fixture(scope="module")
def folder(cloud: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(cloud)


@pytest.fixture(scope="module")
def world(cloud: str) -> Iterator[World]:
    with World(("management.azure.com", "login.microsoftonline.com")) as made:
        yield made


@pytest.fixture(scope="module")
def emulator(cloud: str, world: World, folder: Path) -> Iterator[Emulator]:
    if cloud == "aws":
        with EmulatedAws(world, folder) as aws:
            aws.reset()
            yield aws
    else:
        with FakeArm(world, folder) as arm:
            arm.site(IMAGE)
            yield arm


@pytest.fixture(scope="module")
def system(cloud: str, folder: Path) -> Path:
    """The system of QEMU's image, described as an image of a cloud: the same release, installed."""
    text = (DATA / "environments" / "systems" / f"{SYSTEM}.yaml").read_text()
    text = text.replace("cloud: qemu", f"cloud: {cloud}")
    text = text.replace("base: {suite: bookworm}", f"base: {CLOUDS[cloud]}")
    path = folder / f"{SYSTEM}-{cloud}.yaml"
    path.write_text(text)
    load_system(str(path))
    return path


@pytest.fixture(scope="module")
def instance(world: World, system: Path, folder: Path) -> Iterator[Instance]:
    key = make_key(folder)
    _, image = Asked(f"{system}/{PARTITION}", root=ROOT).plan("build")
    # what steps of the cloud install beside these: the instance reaches no mirror
    packages = [*image.packages, *(["waagent"] if image.cloud == "azure" else [])]
    with Instance(world, base(packages), key.with_suffix(".pub")) as made:
        yield made


@pytest.fixture(scope="module")
def site(emulator: Emulator, instance: Instance, folder: Path) -> Path:
    """The site's file; the address is always the instance's own on loopback."""
    variables = {
        **emulator.variables(),
        "user": USER,
        "ssh_host": LOOPBACK,
        "ssh_port": instance.port,
        "ssh_private_key_file": str(next(folder.glob("*.pub")).with_suffix("")),
    }
    path = folder / "site.json"
    path.write_text(json.dumps(variables))
    return path


@pytest.fixture(scope="module")
def mvstack(world: World, emulator: Emulator, folder: Path) -> Iterator[Any]:
    home = Path(tempfile.mkdtemp(prefix="mvs-gpg-", dir="/tmp"))  # a socket's path must be short
    environment = {
        **os.environ,
        **emulator.environment(),
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "NO_PROXY": "*",
        "MVSTACK_IMAGES": str(folder / "images"),
        "MVSTACK_GNUPGHOME": str(home),
        "PYTHONPATH": str(DATA / "src"),
    }

    def run(*words: str | Path) -> tuple[int, str]:
        command = [sys.executable, str(DATA / "tests/images/cli.py"), *map(str, words)]
        return world.run(command, **environment)

    yield run
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


def test_a_site_builds_lists_publishes_and_cleans(
    mvstack: Any, cloud: str, system: Path, site: Path, folder: Path, emulator: Emulator
) -> None:
    name = f"{system}/{PARTITION}"
    code, said = mvstack("image", "build", name, "--settings", site, "--root", ROOT, "--yes")
    assert code == 0, said
    assert f"{IMAGE} {VERSION}: candidate" in said
    place = folder / "images" / "2026.11" / IMAGE / VERSION
    log = (place / "packer.log").read_text()
    assert "changed: 0 (" in log, "the second provisioning changes nothing"
    assert "ranks see each other, 705 collectives are right" in log
    papers = {path.name for path in place.iterdir()}
    assert {"packages.txt", "sbom.cdx.json", "sbom.spdx.json", "vulnerabilities.json"} <= papers
    assert "manifest.txt" not in papers, "a cloud's disk cannot be read"

    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert code == 0 and f"{IMAGE} {VERSION}: candidate" in said

    code, said = mvstack(
        "image", "clean", "--cloud", cloud, "--settings", site, "--older-than", "0"
    )
    assert code == 0 and "nothing to clean" in said

    regions = ["--region", REGION] if cloud == "aws" else ["--region", "westeurope"]
    words = ("image", "publish", name, "--settings", site, *regions, "--root", ROOT)
    code, said = mvstack(*words)
    assert code == 4 and "vulnerabilities" in said
    code, said = mvstack(*words, "--vulnerabilities-unknown")
    assert code == 4 and "no key to sign with" in said
    assert mvstack("cache", "keys", "create", "Image tests")[0] == 0
    code, said = mvstack(*words, "--vulnerabilities-unknown")
    assert code == 0 and "published to" in said, said
    assert mvstack("image", "verify", place)[0] == 0
    code, said = mvstack(*words, "--vulnerabilities-unknown")
    assert code == 4 and "published already" in said
    code, said = mvstack("image", "list", "--cloud", cloud, "--settings", site)
    assert f"{IMAGE} {VERSION}: published" in said
