"""Which Debian archives a machine's apt names, and how pip is asked for a file."""

from __future__ import annotations

import pytest

from mvstack.sources import archives
from mvstack.sources.archives import _platform
from mvstack.sources.spec import Debian


def test_the_debian_archives_among_those_of_apt() -> None:
    said = """\
'http://one.example/debian/dists/bookworm/InRelease' one.example_debian_InRelease 0
'http://one.example/debian/dists/bookworm-updates/InRelease' one.example_updates_InRelease 0
'http://one.example/debian-security/dists/bookworm-security/InRelease' security_InRelease 0
'https://two.example/a%20b/debian//dists/stable/InRelease' two_InRelease 0
'file:/srv/mirror/dists/sid/InRelease' srv_InRelease 0
'cdrom:[Debian]/dists/bookworm/InRelease' cdrom 0
'http://archive.ubuntu.example/ubuntu/dists/jammy/InRelease' ubuntu_InRelease 0
W: a warning
"""
    assert archives.named_by_apt(said) == [
        "http://one.example/debian", "https://two.example/a%20b/debian", "/srv/mirror"
    ]  # fmt: skip
    assert archives.named_by_apt("") == []


def test_the_setting_comes_before_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archives.SETTING, " http://site.example/debian/ /srv/debian")
    assert archives.debian_archives() == ["http://site.example/debian", "/srv/debian"]


@pytest.mark.parametrize(
    ("package", "folder"), [("hpcc", "h/hpcc"), ("libfabric", "libf/libfabric")]
)
def test_a_file_in_the_pool(package: str, folder: str) -> None:
    wanted = Debian(package=package, file="x.orig.tar.gz")
    assert archives.place_in("http://a", wanted) == f"http://a/pool/main/{folder}/x.orig.tar.gz"


@pytest.mark.parametrize(
    ("wheel", "options"),
    [
        (
            "impi_rt-2021.19.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64"],
        ),
        ("a-1-py3-none-any.whl", ["--only-binary=:all:"]),
        (
            "a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            [
                "--only-binary=:all:",
                "--platform=manylinux_2_17_x86_64",
                "--platform=manylinux2014_x86_64",
                "--implementation=cp",
                "--abi=cp311",
                "--python-version=311",
            ],
        ),
        (
            "a-1-cp37-abi3-manylinux2014_x86_64.whl",
            [
                "--only-binary=:all:",
                "--platform=manylinux2014_x86_64",
                "--implementation=cp",
                "--abi=abi3",
            ],
        ),
        ("a-1.tar.gz", ["--no-binary=a"]),
    ],
)
def test_a_wheel_of_another_machine_can_be_asked_for(wheel: str, options: list[str]) -> None:
    assert _platform(wheel, "a==1") == options
