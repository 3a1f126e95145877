"""The patches for spack-packages: each applies to its develop, loads there, and solves."""

import json
import subprocess
from pathlib import Path

import pytest
from spack_stock import TOP, Stock, clone_of

PATCHES = sorted((TOP / "spack-repo" / "upstream").glob("*.patch"))
INSIDE = Path(__file__).with_name("spack_upstream_inside.py")
# A spec, and what its MPI must have, or its recipe must add to the C++ flags.
SPECS = {
    "mvapich netmod=ucx process_managers=slurm pmi=pmix": "pmi=pmix",
    "mvapich netmod=ofi +rocm amdgpu_target=gfx90a": "amdgpu_target:=gfx90a",
    "hypre +cuda cuda_arch=80 +gpu-aware-mpi ^mvapich netmod=ucx": "+cuda",
    "hypre +rocm amdgpu_target=gfx90a +gpu-aware-mpi ^mvapich": "amdgpu_target:=gfx90a",
    "sphexa +cuda cuda_arch=80 ^mvapich": "+cuda",
    "abinit +gpu_aware_mpi +cuda cuda_arch=80 ^mvapich": "+cuda",
    "py-torch +cuda cuda_arch=80 +mpi ^mvapich +cuda": "-DMPIX_CUDA_AWARE_SUPPORT=1",
}


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    return Stock(tmp_path_factory.mktemp("stock"))


@pytest.fixture(scope="module")
def develop(stock):
    """A copy of spack-packages' develop that may be changed, and what it is called."""
    name, clone = clone_of(stock.kept, "develop")
    copy = stock.folder / f"patched-{clone.name}"
    subprocess.run(["git", "clone", "--quiet", str(clone), str(copy)], check=True)
    return name, copy


def apply(folder, patch, *words):
    command = ["git", "-C", str(folder), "apply", *words, str(patch)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_a_patch_applies_to_develop(develop, patch):
    name, folder = develop
    done = apply(folder, patch, "--check")
    assert done.returncode == 0, f"{name}: {done.stderr}"


def test_the_patched_recipes_load_and_concretize(stock, develop):
    _, folder = develop
    for patch in PATCHES:
        assert apply(folder, patch).returncode == 0, patch.name
    stock.takes(folder)
    names = ",".join(patch.stem.replace("_", "-") for patch in PATCHES)
    said = stock.run("python", str(INSIDE), "--", names, *SPECS)
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert found["audit"] == []
    for text, wanted in SPECS.items():
        answer = found["answers"][text]
        assert answer.startswith("builtin.mvapich@"), text
        assert wanted in answer, text


def test_the_page_names_every_patch():
    page = (TOP / "docs" / "upstream.md").read_text()
    assert PATCHES
    assert [one.name for one in PATCHES if one.stem.replace("_", "-") not in page] == []
