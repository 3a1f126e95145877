"""An image for QEMU from nothing but the distribution's packages, by the command line, for real.

One story in order, because each part takes minutes: a build is killed, what it left is seen, the
same command goes on and ends with a tested and signed image; it is built again from the recorded
list of packages and compared file by file; it is published once, and not twice. Processors are
emulated where KVM does not work.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from images.release import IMAGE, PARTITION, ROOT, SYSTEM, installed

from mvstack.image import tools
from mvstack.image.disks import mounted
from mvstack.support.errors import Missing
from mvstack.support.home import DATA

NAME = f"{SYSTEM}/{PARTITION}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root: loop devices are mounted")
    try:
        tools.need((*tools.FOR_ALL, *tools.FOR_QEMU), "the image", root=True)
        disk = tmp_path_factory.mktemp("disk") / "raw"
        with disk.open("wb") as stream:
            stream.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-E", "offset=1048576", disk, "14M"], check=True)
        with mounted(disk):
            pass
    except Missing as error:
        pytest.skip(" ".join(str(error).split()))
    installed()
    place = tmp_path_factory.mktemp("images")
    yield place
    shutil.rmtree(place, ignore_errors=True)  # gigabytes, which pytest would keep


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    """A site's own key signs; the state of whoever runs the tests is left alone."""
    home = Path("/tmp") / f"mvs-gpg-{os.getpid()}"  # a socket's path must be short
    values = {
        **os.environ,
        "MVSTACK_GNUPGHOME": str(home),
        "MVSTACK_IMAGES": str(folder),
        "PYTHONPATH": str(DATA / "src"),
    }
    values.pop("MVSTACK_OSV", None)
    return values


@pytest.fixture(scope="module", autouse=True)
def key(environment: dict[str, str]) -> Iterator[None]:
    made = mvstack(environment, "cache", "keys", "create", "Image tests")
    assert made.returncode == 0, made.stderr
    yield
    home = environment["MVSTACK_GNUPGHOME"]
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "mvstack", *words]


def mvstack(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), env=environment, capture_output=True, text=True, check=False
    )


def state(folder: Path, number: int) -> dict[str, Any]:
    path = folder / "2026.11" / IMAGE / f"2026.11.{number}" / "image.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def machines(folder: Path) -> list[str]:
    """The qemu processes that work below ``folder``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"qemu-system-x86_64") and any(
            str(folder).encode() in w for w in words
        ):
            found.append(path.parent.name)
    return found


def test_a_killed_build_leaves_no_machine_and_no_image(
    folder: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "build.log"
    words = ("image", "build", NAME, "--root", str(ROOT), "--yes")
    with log.open("wb") as stream:
        build = subprocess.Popen(command(*words), env=environment, stdout=stream, stderr=stream)
        try:
            while build.poll() is None and not list(folder.glob("work/*/packer.log")):
                time.sleep(1)
            while build.poll() is None and not machines(folder):
                time.sleep(0.2)
            assert build.poll() is None, log.read_text()
            build.send_signal(signal.SIGKILL)
        finally:
            build.kill()
            build.wait()
    deadline = time.monotonic() + 300
    while machines(folder) and time.monotonic() < deadline:
        time.sleep(1)
    assert not machines(folder), "Packer ends its machine when it is told that we are gone"
    assert state(folder, 0)["state"] == "building"
    assert not (folder / "2026.11" / IMAGE / "2026.11.0" / "disk.qcow2").exists()
    refused = mvstack(environment, "image", "publish", NAME, "--to", str(tmp_path / "out"))
    assert refused.returncode == 4, refused.stderr
    left = mvstack(environment, "image", "clean", "--json")
    assert [row["kind"] for row in json.loads(left.stdout)] == [
        "unfinished version",
        "working folder",
    ]


def test_the_same_command_goes_on_to_a_tested_and_signed_image(
    folder: Path, environment: dict[str, str]
) -> None:
    done = mvstack(environment, "image", "build", NAME, "--root", str(ROOT), "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert (said["version"], said["state"]) == ("2026.11.0", "tested")
    assert said["tests"]["fail"] == 0 and said["tests"]["pass"] > 70
    place = Path(said["folder"])
    report = json.loads((place / "tests.json").read_text())
    checks = {case["name"]: case["result"] for case in report["checks"]}
    assert sum(result == "pass" for result in checks.values()) >= 8
    assert any(name.startswith("Collectives") for name in checks)
    assert json.loads((place / "vulnerabilities.json").read_text())["state"] == "unknown"
    assert not [row for row in json.loads((place / "audit.json").read_text()) if row["fails"]]
    verified = mvstack(environment, "image", "verify", str(place))
    assert verified.returncode == 0, verified.stderr
    again = mvstack(environment, "image", "build", NAME, "--version", "2026.11.0", "--yes")
    assert again.returncode == 4, "a version that is whole never changes"


def test_it_is_built_again_and_is_the_same(folder: Path, environment: dict[str, str]) -> None:
    first = folder / "2026.11" / IMAGE / "2026.11.0"
    words = ("image", "build", NAME, "--packages", str(first / "packages.txt"), "--no-test")
    done = mvstack(environment, *words, "--root", str(ROOT), "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    second = Path(json.loads(done.stdout)["folder"])
    assert second.name == "2026.11.1"
    compared = mvstack(environment, "image", "compare", str(first), str(second), "--json")
    assert compared.returncode == 0, compared.stdout
    assert json.loads(compared.stdout)["files"] > 10000


def test_it_is_published_once(folder: Path, environment: dict[str, str], tmp_path: Path) -> None:
    words = ("image", "publish", NAME, "--version", "2026.11.0", "--to", str(tmp_path))
    unknown = mvstack(environment, *words)
    assert unknown.returncode == 4 and "vulnerabilities" in unknown.stderr
    assert not list(tmp_path.iterdir()), "nothing is published"
    known = mvstack(environment, *words, "--vulnerabilities-unknown")
    assert known.returncode == 0, known.stderr
    target = tmp_path / IMAGE / "2026.11.0"
    assert mvstack(environment, "image", "verify", str(target)).returncode == 0
    twice = mvstack(environment, *words, "--vulnerabilities-unknown")
    assert twice.returncode == 4 and "published already" in twice.stderr
    untested = mvstack(
        environment,
        *("image", "publish", NAME, "--version", "2026.11.1", "--to", str(tmp_path)),
        "--vulnerabilities-unknown",
    )
    assert untested.returncode == 4 and "was not tested" in untested.stderr
    with (target / "disk.qcow2").open("r+b") as stream:
        stream.seek(1 << 20)
        stream.write(b"changed")
    changed = mvstack(environment, "image", "verify", str(target))
    assert changed.returncode == 1 and "disk.qcow2" in changed.stderr
