"""Rows of the record out of Spack's lock files and stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spack_rows import rows_of_lock

from mvstack.model.load import load_release
from mvstack.support.errors import InvalidInput

RELEASE = load_release()
FFTW = next(one for one in RELEASE.packages if one.spack.startswith("fftw@"))
VERSION = FFTW.spack.split()[0].removeprefix("fftw@=")


BUILT = {"mpi": True, "openmp": True, "precision": ["double", "float", "long_double"]}


def lock(folder: Path, version: str = VERSION, **variants: object) -> Path:
    edges = [{"name": "mvapich-plus", "hash": "mpi"}]
    specs: dict[str, Any] = {
        "top": {
            "name": "fftw",
            "namespace": "builtin",
            "version": version,
            "dependencies": edges,
            "parameters": BUILT | variants,
        },
        "mpi": {"name": "mvapich-plus", "version": "5.0.0"},
        "beneath": {"name": "hdf5", "version": "1.14.5"},
    }
    path = folder / "spack.lock"
    path.write_text(json.dumps({"roots": [{"hash": "top"}], "concrete_specs": specs}))
    return path


def store(folder: Path, installed: bool) -> Path:
    prefix = folder / "linux" / "fftw"
    (prefix / ".spack").mkdir(parents=True)
    (prefix / ".spack" / "install_times.json").write_text('{"total": 81.26}')
    (prefix / "libfftw3.so").write_bytes(b"x" * 3_000_000)
    index = {"installs": {"top": {"path": str(prefix), "installed": installed}}}
    (folder / ".spack-db").mkdir()
    (folder / ".spack-db" / "index.json").write_text(json.dumps({"database": index}))
    return folder


def test_a_root_of_a_lock_resolves(tmp_path: Path) -> None:
    (row,) = rows_of_lock(RELEASE, lock(tmp_path), "expanse/gpu")
    assert (row.package, row.version, row.builder) == (FFTW.name, FFTW.version, "spack")
    assert (row.state, row.of) == ("resolves", FFTW.spack)
    assert row.mpi == "mvapich-plus@5.0.0 on expanse/gpu"


@pytest.mark.parametrize(("installed", "state"), [(True, "built"), (False, "resolves")])
def test_what_a_store_has_installed_is_built(tmp_path: Path, installed: bool, state: str) -> None:
    (row,) = rows_of_lock(RELEASE, lock(tmp_path), "here", store(tmp_path / "store", installed))
    assert row.state == state
    assert (row.seconds, row.size_mb) == ((81.3, 3) if installed else (None, None))


def test_a_recipe_of_another_repository_has_other_bytes(tmp_path: Path) -> None:
    path = lock(tmp_path)
    (row,) = rows_of_lock(RELEASE, path, "here")
    assert row.bytes == ""
    path.write_text(path.read_text().replace('"builtin"', '"mvapich_stack_accepted"'))
    (row,) = rows_of_lock(RELEASE, path, "here")
    assert row.bytes == "not upstream's bytes"


def test_another_version_shows_nothing(tmp_path: Path) -> None:
    assert rows_of_lock(RELEASE, lock(tmp_path, "3.3.9"), "here") == []


@pytest.mark.parametrize(
    "variants",
    [{"mpi": False}, {"openmp": None}, {"precision": ["float"]}, {"precision": "double"}],
)
def test_other_variants_show_nothing(tmp_path: Path, variants: dict[str, object]) -> None:
    assert "precision=float,double,long_double" in FFTW.spack
    assert rows_of_lock(RELEASE, lock(tmp_path, **variants), "here") == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"roots": [{}], "concrete_specs": {}}'])
def test_what_is_no_lock_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spack.lock"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="not a lock file"):
        rows_of_lock(RELEASE, path, "here")
