"""Sources are read from easyconfigs in every form that EasyBuild takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.plan.easyconfigs import index
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import known_sources
from mvstack.support.errors import InvalidInput

DATA = Path(__file__).parent.parent / "data" / "sources"
HEAD = """easyblock = 'ConfigureMake'
name = 'Alpha'
version = '1'
homepage = 'https://example.org'
description = "x"
toolchain = SYSTEM
"""


def write(folder: Path, text: str, name: str = "alpha.eb") -> Path:
    path = folder / name
    path.write_text(HEAD + text)
    return path


def test_templates_are_filled_and_alternatives_kept() -> None:
    (spec,) = specs_from_easyconfigs([DATA / "plain.eb"])
    assert (spec.software, spec.version, spec.filename) == ("Alpha", "1.2.3", "alpha-1.2.3.tar.gz")
    assert spec.hashes == ("1" * 64, "2" * 64)
    assert spec.urls == ("https://example.org/alpha/1.2/alpha-1.2.3.tar.gz",)
    assert spec.name == "alpha@1.2.3"
    assert spec.recipe.endswith("plain.eb:9")


def test_every_form_of_source_and_checksum() -> None:
    specs = {spec.filename: spec for spec in specs_from_easyconfigs([DATA / "forms.eb"])}
    assert {name: spec.hashes for name, spec in specs.items()} == {
        "beta-2.0.tar.xz": ("3" * 64,),
        "data-2.0.tgz": ("4" * 64,),
        "typed-ofi.zip": ("5" * 64,),
    }
    assert specs["beta-2.0.tar.xz"].urls == ("https://example.org/get?file=beta-2.0.tar.xz",)
    assert specs["data-2.0.tgz"].urls == ("https://example.net/data/v2.0.tgz",)


def test_components_and_extensions_have_sources_too() -> None:
    specs = specs_from_easyconfigs([DATA / "bundle.eb"])
    assert [(s.software, s.filename, s.hashes[0][0], s.urls[0]) for s in specs] == [
        ("Gamma", "part-0.1.tar.gz", "6", "https://example.org/parts/part-0.1.tar.gz"),
        ("Gamma", "ext-7.tar.gz", "7", "https://example.org/ext/ext-7.tar.gz"),
        ("Gamma", "other_8.zip", "8", "https://example.org/other/other_8.zip"),
    ]


def test_a_file_that_two_kinds_of_software_are_of_has_one_hash(tmp_path: Path) -> None:
    """OMB-Py is in the tarball of OSU-Micro-Benchmarks; v1.tar.gz of two places is two files."""
    text = "source_urls = ['https://{}.org']\nsources = ['v1.tar.gz']\nchecksums = ['{}']\n"
    first = write(tmp_path, text.format("a", "1" * 64))
    same = write(tmp_path, text.format("a", "2" * 64), "same.eb")
    other = write(tmp_path, text.format("b", "2" * 64), "other.eb")
    for path in (same, other):
        path.write_text(path.read_text().replace("'Alpha'", "'Beta'"))
    assert len(specs_from_easyconfigs([first, other])) == 2
    with pytest.raises(InvalidInput, match=r"v1\.tar\.gz has other hashes than in .*alpha\.eb"):
        specs_from_easyconfigs([first, same])


def test_a_file_of_several_easyconfigs_is_one_source() -> None:
    assert len(specs_from_easyconfigs([DATA / "plain.eb", DATA / "plain.eb"])) == 1


@pytest.mark.parametrize(
    ("checksums", "found"),
    [("", "None"), ("checksums = ['0123']", "0123"), ("checksums = ['" + "A" * 64 + "']", "A" * 9)],
)
def test_a_source_without_sha256_is_refused(tmp_path: Path, checksums: str, found: str) -> None:
    path = write(tmp_path, f"sources = ['alpha-1.tar.gz']\n{checksums}\n")
    with pytest.raises(InvalidInput, match="has no SHA-256") as caught:
        specs_from_easyconfigs([path])
    assert found in caught.value.problems[0].found
    assert "alpha.eb" in caught.value.problems[0].where


def test_the_hash_of_a_patch_is_not_the_hash_of_a_source(tmp_path: Path) -> None:
    path = write(tmp_path, f"sources = ['a.tar.gz', 'b.tar.gz']\nchecksums = ['{'1' * 64}']\n")
    with pytest.raises(InvalidInput, match=r"source b\.tar\.gz has no SHA-256"):
        specs_from_easyconfigs([path])


def test_all_errors_of_all_files_are_told(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, "sources = ['a.tar.gz']\n", "a.eb"),
        tmp_path / "missing.eb",
        write(tmp_path, "sources = [\n", "broken.eb"),
        write(tmp_path, f"sources = ['%(nix)s.gz']\nchecksums = ['{'1' * 64}']\n", "template.eb"),
        write(tmp_path, f"sources = ['../x.gz']\nchecksums = ['{'1' * 64}']\n", "escape.eb"),
    ]
    with pytest.raises(InvalidInput) as caught:
        specs_from_easyconfigs(paths)
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    for words in ("has no SHA-256", "no such easyconfig", "cannot read", "%(nix)s", "'../x.gz'"):
        assert words in text


def test_two_easyconfigs_that_disagree_are_told(tmp_path: Path) -> None:
    one = write(tmp_path, f"sources = ['a.gz']\nchecksums = ['{'1' * 64}']\n", "one.eb")
    two = write(tmp_path, f"sources = ['a.gz']\nchecksums = ['{'2' * 64}']\n", "two.eb")
    with pytest.raises(InvalidInput, match="other hashes than in") as caught:
        specs_from_easyconfigs([one, two])
    assert "two.eb:8" in caught.value.problems[0].where


def test_our_own_easyconfigs_can_all_be_read() -> None:
    names = {spec.name for spec in specs_from_easyconfigs(index().values())}
    assert {"mpich@4.0.2", "mvapich@4.0", "mvapich@4.1", "hpcc@1.5.0"} <= names


def test_policy_and_easyconfigs_agree() -> None:
    """A row about a file or a hash that no recipe lists says nothing of anything."""
    specs = {spec.filename: spec for spec in specs_from_easyconfigs(index().values())}
    for filename, row in known_sources().items():
        assert filename in specs, f"{filename}: no easyconfig has this source"
        assert set(row.hashes) <= set(specs[filename].hashes), filename
        assert not set(row.refused) & set(specs[filename].hashes), filename


def test_debians_mpich_is_not_upstreams_bytes_and_hpcc_is() -> None:
    specs = {spec.name: spec for spec in specs_from_easyconfigs(index().values())}
    mpich, hpcc = specs["mpich@4.0.2"], specs["hpcc@1.5.0"]
    assert [mpich.upstream(one) for one in mpich.hashes] == [True, False]
    assert hpcc.upstream(hpcc.hashes[0])
    assert hpcc.known.debian is not None
    assert specs["mvapich@4.1"].known.refused  # the tarball that was replaced in place is explained


@pytest.mark.parametrize("easyblock", ["PythonBundle", "AnyPythonBundle"])
def test_python_packages_are_asked_of_pypi(tmp_path: Path, easyblock: str) -> None:
    path = tmp_path / "Two-1.0.eb"
    path.write_text(
        f"easyblock = '{easyblock}'\nname = 'Two'\nversion = '1.0'\n"
        "homepage = 'x'\ndescription = 'x'\n"
        "toolchain = {'name': 'GCC', 'version': '12.2.0'}\n"
        f"exts_list = [('first-part', '2.1', {{'checksums': ['{'a' * 64}']}}),\n"
        "  ('other', '3', {'source_urls': ['https://example.org/'], "
        f"'checksums': ['{'b' * 64}']}})]\n"
    )
    found = {spec.filename: spec.known.pypi for spec in specs_from_easyconfigs([path], {})}
    assert found == {"first-part-2.1.tar.gz": "first-part==2.1", "other-3.tar.gz": ""}


def test_a_python_package_with_a_url_on_pypi_is_asked_there(tmp_path: Path) -> None:
    path = tmp_path / "mpi4py-3.1.4.eb"
    path.write_text(
        "easyblock = 'PythonPackage'\nname = 'mpi4py'\nversion = '3.1.4'\n"
        "homepage = 'x'\ndescription = 'x'\n"
        "toolchain = {'name': 'GCC', 'version': '12.2.0'}\nsource_urls = [PYPI_SOURCE]\n"
        f"sources = [SOURCE_TAR_GZ]\nchecksums = ['{'a' * 64}']\n"
    )
    (spec,) = specs_from_easyconfigs([path], {})
    assert spec.known.pypi == "mpi4py==3.1.4"


def test_a_source_from_git_is_packed_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "x.eb"
    path.write_text(
        "name = 'Odd'\nversion = '2.1'\nhomepage = 'x'\ndescription = 'x'\n"
        "toolchain = {'name': 'GCC', 'version': '12.2.0'}\nsource_urls = ['https://host/odd/']\n"
        "sources = ['odd.tgz', {'filename': 'part-%(version)s.tar.xz', 'git_config': {\n"
        "    'url': 'https://host/of', 'repo_name': 'part', 'tag': 'v%(version)s',\n"
        "    'recursive': True}}]\n"
        f"checksums = ['{'a' * 64}', '{'b' * 64}']\n"
    )
    plain, packed = specs_from_easyconfigs([path], {})
    assert (plain.git, plain.position, packed.position) == ({}, 0, 1)
    assert (packed.filename, packed.hashes, packed.urls) == ("part-2.1.tar.xz", ("b" * 64,), ())
    assert packed.git["tag"] == "v2.1" and packed.git["recursive"] is True
