"""Libraries of the distribution as modules: linked when the version is right, else refused."""

import shutil
import subprocess

import pytest
from easybuild_here import EASYCONFIGS, eb, needs

OPENBLAS = EASYCONFIGS / "system" / "o" / "OpenBLAS" / "OpenBLAS-0.3.21-GCC-12.2.0.eb"


@pytest.fixture
def easyconfig(tmp_path):
    """OpenBLAS's easyconfig with its words changed: `easyconfig(old, new)` gives the file."""
    needs()
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    found = subprocess.run(
        ["pkg-config", "--modversion", "openblas"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if found != "0.3.21":
        pytest.skip(f"the distribution's OpenBLAS is {found or 'not installed'}, not 0.3.21")

    def changed(old, new):
        text = OPENBLAS.read_text()
        assert old in text
        file = tmp_path / OPENBLAS.name.replace(
            "0.3.21", "0.3.99" if "version" in old else "0.3.21"
        )
        file.write_text(text.replace(old, new))
        return file

    return changed


def test_headers_and_libraries_are_linked_and_the_program_that_uses_them_runs(tmp_path):
    needs()
    done = eb(tmp_path / "root", OPENBLAS)
    if "OS dependencies" in done.stdout or "nothing: pkg-config" in done.stdout:
        pytest.skip("libopenblas-dev is not installed")
    assert done.returncode == 0, done.stdout[-3000:]
    home = tmp_path / "root" / "software" / "OpenBLAS" / "0.3.21-GCC-12.2.0"
    assert (home / "lib" / "libopenblas.so").resolve().name == "libopenblasp-r0.3.21.so"
    assert (home / "include" / "cblas.h").is_symlink()
    module = (
        tmp_path / "root" / "modules" / "Compiler" / "gcc" / "12.2.0" / "openblas" / "0.3.21.lua"
    )
    assert 'setenv("OPENBLAS_NUM_THREADS", "1")' in module.read_text()


def test_another_version_of_the_distribution_is_refused_with_both_versions(easyconfig, tmp_path):
    done = eb(tmp_path / "root", easyconfig("version = '0.3.21'", "version = '0.3.99'"))
    assert done.returncode != 0
    for words in ("found     0.3.21", "allowed   0.3.99", "libopenblas-dev or openblas-devel"):
        assert words in done.stdout
    assert not [*tmp_path.glob("root/modules/Compiler/gcc/12.2.0/openblas/*")]


def test_a_library_that_pkg_config_does_not_know_is_refused(easyconfig, tmp_path):
    done = eb(tmp_path / "root", easyconfig("'openblas'\n", "'openblas-of-nobody'\n"))
    assert done.returncode != 0
    assert "nothing: pkg-config knows no openblas-of-nobody" in done.stdout


def test_a_file_that_the_package_lacks_is_named(easyconfig, tmp_path):
    done = eb(tmp_path / "root", easyconfig("'cblas.h', ", "'cblas.h', 'no-such.h', "))
    assert done.returncode != 0
    assert "OpenBLAS of the distribution lacks" in done.stdout
    assert "no-such.h" in done.stdout
