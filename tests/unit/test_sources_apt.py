"""The archives that a machine's apt uses, in both formats, and what apt says when it fails."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.sources.apt_sources import FALLBACK, archives
from mvstack.sources.debian import _last_words
from mvstack.sources.pypi import _platform


def etc(folder: Path, **files: str) -> Path:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.write_text(text)
    return folder


def test_one_line_format(tmp_path: Path) -> None:
    text = """# deb http://commented.example/debian bookworm main
deb [arch=amd64 signed-by=/x.gpg] https://one.example/debian/ bookworm main contrib
deb-src http://two.example/debian stable main
deb http://security.example/debian-security bookworm-security main
deb https://packages.example/apt cloud-sdk main
  deb   cdrom:[Debian]/ bookworm main
"""
    found = archives(etc(tmp_path, sources_list=text))
    assert found == ["https://one.example/debian", "http://two.example/debian"]


def test_deb822_format(tmp_path: Path) -> None:
    text = """Types: deb
# a comment in a block
URIs: http://one.example/debian
 http://two.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Enabled: no

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
"""
    folder = etc(tmp_path, sources_list_d__debian_sources=text, sources_list_d__old_save=text)
    assert archives(folder) == ["http://one.example/debian", "http://two.example/debian"]


@pytest.mark.parametrize("text", ["", "deb http://archive.ubuntu.example/ubuntu jammy main"])
def test_without_a_debian_archive_the_public_one(tmp_path: Path, text: str) -> None:
    assert archives(etc(tmp_path, sources_list=text)) == [FALLBACK]
    assert archives(tmp_path / "none") == [FALLBACK]


@given(st.text())
def test_any_text_gives_an_archive(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "sources.list.d").mkdir()
        (path / "sources.list").write_bytes(text.encode("utf-8", "surrogatepass"))
        (path / "sources.list.d" / "x.sources").write_bytes(text.encode("utf-8", "surrogatepass"))
        assert archives(path)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Ign:1 x\nErr:1 http://x bookworm\n  Could not resolve 'x'\nW: more", "Could not resolve"),
        ("W: a warning\nE: Unable to find a source package", "Unable to find"),
        ("W: Failed to fetch http://x", "Failed to fetch"),
        ("something else\n", "something else"),
        ("", "said nothing"),
    ],
)
def test_the_last_words_of_apt(said: str, why: str) -> None:
    assert why in _last_words(said)


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
