"""Which version is newer, what others' recipes say of it, and whose hash counts."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from versions.bump import Bump, with_hashes
from versions.elsewhere import Elsewhere, Row, current, newest, of_form, order

from mvstack.model.load import load_release
from mvstack.plan import easyconfigs
from mvstack.support.errors import InvalidInput, Refused, SourceError
from mvstack.support.home import VARIABLE

OLD, NEW, OTHER = ("a" * 64, "b" * 64, "c" * 64)
ROWS = """\
name: "2026.11"
extends: "2026.11"
packages:
  # ours
  - name: Zeta
    version: "1.9"   # the first
    title: Spectral solver of our ocean group
    profile: full
    spack: zeta +mpi
    why: >-
      the ocean group publishes
      with 1.9
  # built on it
  - name: Eta
    version: 2.0.0
    title: Needs Zeta 1.9
    profile: full
    spack: ""
    why: for its plots
"""
ZETA = """\
easyblock = 'ConfigureMake'
name = 'Zeta'
version = '1.9'
homepage = 'https://zeta.example.org'
description = "Spectral solver; größer than 1.9"
toolchain = {'name': 'gmvapich', 'version': '2026.11-ofi'}
source_urls = ['https://zeta.example.org/releases/']
sources = ['%(namelower)s-%(version)s.tar.gz']
patches = ['Zeta-%(version)s_fix.patch']
# upstream's
checksums = [
    ('AAAA',
     # Debian's
     'CCCC'),
    'DDDD',
]
dependencies = [('Python', '3.10.8')]
moduleclass = 'phys'
""".replace("AAAA", OLD).replace("CCCC", OTHER)
STOCK = """\
easyblock = 'ConfigureMake'
name = 'Zeta'
version = '1.10'
homepage = 'https://zeta.example.org'
description = "x"
toolchain = SYSTEM
source_urls = ['https://elsewhere.example.org']
sources = ['zeta-%(version)s.tar.gz']
checksums = ['BBBB']
dependencies = [('Python', '3.13.5'), ('zlib', '1.3')]
""".replace("BBBB", NEW)
SPACK = """\
from spack.package import *
class Zeta(Package):
    url = "https://mirror.example.org/zeta-1.0.tar.gz"
    git = "https://github.com/example/zeta.git"
    version("main", branch="main")
    version("1.11rc1", sha256="BBBB")
    version("1.10", sha256="BBBB")
    version("1.9", sha256="AAAA")
""".replace("AAAA", OLD).replace("BBBB", NEW)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with two packages, one built on the other."""
    top = tmp_path / "site"
    for name in ("releases", "easyconfigs/z/Zeta", "easyconfigs/e/Eta"):
        (top / name).mkdir(parents=True)
    (top / "releases/2026.11.yaml").write_text(ROWS)
    patch = top / "easyconfigs/z/Zeta/Zeta-1.9_fix.patch"
    patch.write_text("--- a\n+++ b\n")
    hashed = hashlib.sha256(patch.read_bytes()).hexdigest()
    own = top / "easyconfigs/z/Zeta/Zeta-1.9-gmvapich-2026.11-ofi.eb"
    own.write_text(ZETA.replace("DDDD", hashed))
    eta = ZETA.split("source_urls")[0].replace("Zeta", "Eta").replace("1.9", "2.0.0")
    eta += "sources = []\ndependencies = [('Zeta', '1.9')]\n"
    (top / "easyconfigs/e/Eta/Eta-2.0.0-gmvapich-2026.11-ofi.eb").write_text(eta)
    monkeypatch.setenv(VARIABLE, str(top))
    return top


@pytest.fixture
def there(tmp_path: Path) -> Elsewhere:
    """Stock EasyBuild and Spack that have Zeta 1.10."""
    recipe = tmp_path / "packages/repos/spack_repo/builtin/packages/zeta/package.py"
    stock = tmp_path / "stock/z/Zeta/Zeta-1.10-foss-2025b.eb"
    for path, text in ((recipe, SPACK), (stock, STOCK)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return Elsewhere(tmp_path / "packages", tmp_path / "stock")


def bump(there: Elsewhere, site: Path, version: str = "1.10", **more: str) -> Bump:
    made = Bump(load_release(), there, version, **more)
    made.plan("zeta", site)
    return made


# --- which is newer ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9", "1.10"),
        ("2.3.7-1", "2.3.7-2"),
        ("4Feb2025", "22Jul2025"),
        ("22Jul2025", "22Jul2025_update4"),
        ("20250722", "22Jul2025_update1"),
        ("9.0.0rc1", "9.0.0"),
        ("1_14_5", "1.14.6"),
    ],
)
def test_versions_have_the_order_of_their_authors(older: str, newer: str) -> None:
    assert order(older) < order(newer)  # type: ignore[operator]


def test_no_branch_and_no_pre_release_is_the_newest() -> None:
    found = ["develop", "1.2", "2.0rc1", "1.10", "99Xyz2025", "stable"]
    assert newest(found, "1.2") == "1.10"
    assert newest(found, "2.0rc0") == "2.0rc1"
    assert newest(["develop"], "1.2") == ""
    assert not Row("MLC", "3.11b", "", spack="3.11").behind
    assert Row("Zeta", "9.0rc1", "", spack="9.0").behind


@pytest.mark.parametrize(
    ("own", "tags", "found"),
    [
        ("1.2.0", ["v1.2.0", "v1.3.0", "v2.0.0-rc1", "nightly-5", "old-9.0"], "1.3.0"),
        ("1.14.5", ["hdf5_1.14.5", "hdf5_2.0.0", "hdf5-1_14_6"], "2.0.0"),
        ("20250722", ["stable_22Jul2025", "patch_22Jul2025", "patch_10Sep2025"], "22Jul2025"),
        ("4Feb2025", ["patch_4Feb2025", "patch_10Sep2025", "stable_22Jul2025"], "10Sep2025"),
        ("1.2", ["v3", "release"], ""),
    ],
)
def test_only_tags_of_the_release_s_own_form_count(own: str, tags: list[str], found: str) -> None:
    assert newest(of_form(tags, own), own) == found


def test_the_rows_of_a_release_are_compared_by_their_newest() -> None:
    rows = current([x for x in load_release().packages if x.name in ("GROMACS", "Horovod")])
    assert {x.version for x in rows if x.name == "GROMACS" and x.by_easyconfig} == {"2025.2"}
    assert sum(x.name == "Horovod" for x in rows) == 3  # of one version, for two frameworks


# --- what a bump changes -------------------------------------------------------------------------


def test_the_row_the_easyconfig_its_patch_and_what_is_built_on_it(
    site: Path, there: Elsewhere
) -> None:
    made = bump(there, site)
    texts = {path.name: text for path, text in made.files.items()}
    row = texts["2026.11.yaml"] or ""
    wanted = ROWS.replace('"1.9"  ', '"1.10" ').replace(
        "    why: >-",
        "    source: EasyBuild's Zeta-1.10-foss-2025b.eb; Spack's zeta recipe\n    why: >-",
    )
    assert row.replace("'1.10'", '"1.10"').split() == wanted.split()
    new = texts["Zeta-1.10-gmvapich-2026.11-ofi.eb"] or ""
    assert "version = '1.10'" in new and f"checksums = [\n    '{NEW}',\n" in new
    assert "# as in EasyBuild's Zeta-1.10-foss-2025b.eb, Spack's zeta recipe\nchecksums" in new
    assert texts["Zeta-1.9-gmvapich-2026.11-ofi.eb"] is None
    assert texts["Zeta-1.9_fix.patch"] is None
    assert texts["Zeta-1.10_fix.patch"] == "--- a\n+++ b\n"
    assert "('Zeta', '1.10')" in (texts["Eta-2.0.0-gmvapich-2026.11-ofi.eb"] or "")
    for word in (
        "does the patch Zeta-%(version)s_fix.patch still apply?",
        "größer than 1.9",
        "depends on Python 3.13.5, here 3.10.8; zlib 1.3, here none",
        "needs it: does it build with 1.10?",
        "why: the ocean group publishes with 1.9",
    ):
        assert any(word in one for one in made.by_hand), word
    assert "-version = '1.9'" in made.diff() and "+version = '1.10'" in made.diff()


def test_a_reason_is_written_and_a_released_tree_is_left_alone(
    site: Path, there: Elsewhere
) -> None:
    made = bump(there, site, why="it is faster: 2 times")
    (text,) = (text for path, text in made.files.items() if path.suffix == ".yaml")
    assert "it is faster: 2 times" in (text or "") and "publishes" not in (text or "")
    assert not any("why:" in one for one in made.by_hand)
    for path in made.files:
        assert path.is_relative_to(site)
    assert "1.10" not in (site / "releases/2026.11.yaml").read_text(), "planning writes nothing"


@pytest.mark.parametrize("planted", ["easybuild", "spack", "--sha256"])
def test_a_wrong_hash_is_caught_and_both_are_named(
    site: Path, there: Elsewhere, planted: str
) -> None:
    if planted != "--sha256":
        folder = there.stock if planted == "easybuild" else there.packages
        (path,) = [x for x in folder.rglob("*") if x.suffix in (".eb", ".py")]
        path.write_text(path.read_text().replace(NEW, OTHER))
    with pytest.raises(SourceError, match="not the same everywhere") as caught:
        bump(there, site, sha256=OTHER if planted == "--sha256" else "")
    found = caught.value.problems[0].found
    assert NEW in found and OTHER in found
    assert "EasyBuild's Zeta-1.10" in found and "Spack's zeta recipe" in found


def test_a_hash_of_another_file_is_not_compared(site: Path, there: Elsewhere) -> None:
    """Where Spack's hash of the present version is not ours, its next one is of another file."""
    (path,) = there.packages.rglob("package.py")
    path.write_text(path.read_text().replace(OLD, "d" * 64).replace(NEW, OTHER))
    (said,) = bump(there, site).said
    assert said == f"zeta-1.10.tar.gz: sha256 {NEW}, by EasyBuild's Zeta-1.10-foss-2025b.eb"


def test_what_nobody_knows_is_downloaded_and_said_so(
    site: Path, there: Elsewhere, tmp_path: Path
) -> None:
    shutil.rmtree(there.stock)
    shutil.rmtree(there.packages)
    (own,) = site.rglob("Zeta-1.9-*.eb")
    own.write_text(
        own.read_text().replace("https://zeta.example.org/rel", f"file://{tmp_path}/rel")
    )
    with pytest.raises(SourceError, match=r"nobody knows a hash of zeta-1\.10\.tar\.gz") as caught:
        bump(there, site)
    assert "--sha256" in caught.value.problems[0].todo
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases/zeta-1.10.tar.gz").write_bytes(b"bytes")
    made = bump(there, site)
    assert hashlib.sha256(b"bytes").hexdigest() in made.said[0]
    assert "that nobody else has seen" in made.said[0]
    assert any("was not read" in one for one in made.by_hand) and len(there.absent) == 2


def test_half_a_row_does_not_stay_behind(site: Path, there: Elsewhere) -> None:
    with pytest.raises(Refused, match=r"Spack's recipe of zeta has no version 1\.12") as caught:
        bump(there, site, "1.12")
    assert "spack-repo/" in caught.value.problems[0].todo
    with pytest.raises(Refused, match=r"it is at 1\.9 already"):
        bump(there, site, "1.9")


def test_a_typo_gets_the_nearest_name(site: Path, there: Elsewhere) -> None:
    with pytest.raises(InvalidInput) as caught:
        Bump(load_release(), there, "1.10").plan("zetta", site)
    assert caught.value.problems[0].nearest == "Zeta"


def test_hashes_that_are_not_written_out_are_refused() -> None:
    with pytest.raises(Refused, match="not written out"):
        with_hashes("local = 'x'\nchecksums = [local * 64]\n", [OLD], [NEW])
    two = with_hashes(f"x = 'ä'; checksums = ['{OLD}']\n", [OLD], [NEW, OTHER])
    assert two == f"x = 'ä'; checksums = [('{NEW}', '{OTHER}')]\n"


@pytest.mark.parametrize("name", ["HDF5", "QuantumESPRESSO", "NEURON"])
def test_easyconfigs_of_ours_can_be_bumped(there: Elsewhere, name: str) -> None:
    """A tuple of hashes, a list of dictionaries, a patch: by a hash that a person gives."""
    made = Bump(load_release(), there, "99.0", sha256=NEW)
    made.plan(name, easyconfigs.FOLDER.parent)
    (text,) = [text or "" for path, text in made.files.items() if f"{name}-99.0-" in path.name]
    assert text.count(NEW) == 1 and "\nversion = '99.0'\n" in text
    assert OLD not in text and made.said[0].endswith(f"sha256 {NEW}, by --sha256")


def test_a_source_whose_name_does_not_follow_the_version_is_said(there: Elsewhere) -> None:
    """LAMMPS is a file by its own hash: its address would stay that of the older version."""
    made = Bump(load_release(), there, "99.0")
    made.plan("LAMMPS", easyconfigs.FOLDER.parent)
    assert any("its sources are still those of 4Jul2026" in one for one in made.by_hand)
