"""Each recipe that stands in for builtin's: what builtin's does with MVAPICH, and what ours does.

And what those say that builtin lacks.

The specs are written, not solved for: the recipes are asked for what they would pass to configure,
set in the environment, or refuse. tests/integration/spack_apps_inside.py runs inside Spack.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recipes.reading import read_recipes
from spack_here import run, spack_here

INSIDE = Path(__file__).with_name("spack_apps_inside.py")
GCC = "%[virtuals=c,cxx,fortran] gcc@=12.2.0"
MPI = "^[virtuals=mpi] mvapich@=4.1"
SCOREP = (
    "^otf2@=3.1 ^opari2@=2.0.9 ^cubew@=4.9 ^cubelib@=4.9 ^binutils@=2.40 ^papi@=7.1.0 "
    "^gotcha@=1.0.8"
)
ESMF = "^netcdf-c@=4.9.2 ^netcdf-fortran@=4.6.1 ^parallelio@=2.6.2"
STRUMPACK = "^strumpack@=8.0.0~shared+mpi"
HOROVOD = "py-horovod@=0.28.1 +cuda tensor_ops=mpi cuda_arch=70 frameworks=pytorch"
HOROVOD_GPU = "HOROVOD_GPU,HOROVOD_GPU_ALLREDUCE,HOROVOD_GPU_ALLGATHER,HOROVOD_GPU_BROADCAST"
ABINIT = "abinit@=10.4.7 +openmp+gpu_aware_mpi"
ROCM = "amdgpu_target=gfx90a"
CP2K = f"cp2k@=2023.1 build_system=makefile {GCC}"
OPENMPI = "^[virtuals=mpi] openmpi@=5.0.8"
V100 = "+cuda cuda_arch=70"
PLUS = "^[virtuals=mpi] mvapich-plus@=5.0.0 gpu=cuda +cuda"
LAMMPS = f"lammps@=20250722 +kokkos {V100}"
AWARE = "MPICH_GPU_SUPPORT_ENABLED"
HYPRE = f"hypre@=2.32.0 +gpu-aware-mpi {V100}"
PETSC = "petsc@=3.24.1 +hypre"
TORCH = f"py-torch@=2.9.0 +distributed +mpi {V100}"
NO_GPU = "requires an MPI implementation with"

# (spec, what is asked, found in builtin's answer, not found there, found in ours, not found there)
Words = tuple[str, ...]
CASES: dict[str, tuple[str, str, Words, Words, Words, Words]] = {
    "esmf 8.9 is told nothing, so takes its stub of MPI": (
        f"esmf@=8.9.0 {GCC} {MPI} {ESMF}", "ESMF_COMM", (), ("ESMF_COMM",), ("'mvapich'",), (),
    ),
    "esmf 8.8 knows one name for every MVAPICH": (
        f"esmf@=8.8.1 {GCC} {MPI} {ESMF}", "ESMF_COMM", (), ("ESMF_COMM",), ("'mvapich2'",), (),
    ),
    "esmf's own word for the MPI is kept": (
        f"esmf@=8.9.0 esmf_comm=user {GCC} {MPI} {ESMF}",
        "ESMF_COMM", ("'user'",), (), ("'user'",), (),
    ),
    "esmf over another MPI is as before": (
        f"esmf@=8.9.0 {GCC} {OPENMPI} {ESMF}", "ESMF_COMM", ("'openmpi'",), (), ("'openmpi'",), (),
    ),
    "scorep is left to guess": (
        f"scorep@=9.3 {GCC} {MPI} {SCOREP}",
        "arguments", (), ("--with-mpi",), ("'--with-mpi=mpich3'",), (),
    ),
    "scalasca is left to guess": (
        f"scalasca@=2.6.1 {MPI} ^cubew@=4.9 ^otf2@=3.1",
        "arguments", (), ("--with-mpi",), ("'--with-mpi=mpich3'",), (),
    ),
    "sionlib is left to guess": (
        f"sionlib@=1.7.6 {MPI}", "arguments", (), ("--mpi",), ("'--mpi=mpich3'",), (),
    ),
    "sionlib calls MVAPICH2's wrappers with what they do not take": (
        "sionlib@=1.7.6 ^[virtuals=mpi] mvapich2@=2.3.7-2",
        "arguments", ("mpich2",), (), ("'--mpi=mpich3'",), ("mpich2'",),
    ),
    "sionlib over another MPI is as before": (
        f"sionlib@=1.7.6 {OPENMPI}", "arguments", ("openmpi",), (), ("openmpi",), ("mpich",),
    ),
    "cp2k over MVAPICH 3 is refused by gfortran 10 and later": (
        f"{CP2K} ^[virtuals=mpi] mvapich@=3.0",
        "flags:fflags", (), ("mismatch",), ("'-fallow-argument-mismatch'",), (),
    ),
    "cp2k over MVAPICH 4 needs no such flag": (
        f"{CP2K} {MPI}", "flags:fflags", (), ("mismatch",), (), ("mismatch",),
    ),
    "cp2k takes an MVAPICH without Fortran": (
        f"{CP2K} {MPI} ~fortran", "refusals", (), ("mvapich",), ("needs mvapich+fortran",), (),
    ),
    "cp2k keeps builtin's builder": (
        f"{CP2K} {MPI}", "builder", ("cp2k.package.MakefileBuilder",), (),
        ("builtin.packages.cp2k.package.MakefileBuilder",), (),
    ),
    "cp2k keeps builtin's builder by cmake": (
        f"cp2k@=2025.2 build_system=cmake {GCC} {MPI}",
        "builder", ("cp2k.package.CMakeBuilder",), (),
        ("builtin.packages.cp2k.package.CMakeBuilder",), (),
    ),
    "esmf keeps builtin's builder": (
        f"esmf@=8.9.0 {GCC} {MPI} {ESMF}", "builder", ("esmf.package.MakefileBuilder",), (),
        ("builtin.packages.esmf.package.MakefileBuilder",), (),
    ),
    "mfem leaves out MPI's Fortran library": (
        f"mfem@=4.8.0+strumpack {GCC} {MPI} {STRUMPACK}",
        "flags:ldlibs", (), ("mpifort",), ("'-lmpifort'",), (),
    ),
    "mfem adds it itself for MVAPICH2": (
        f"mfem@=4.8.0+strumpack {GCC} ^[virtuals=mpi] mvapich2@=2.3.7-2 {STRUMPACK}",
        "flags:ldlibs", (), ("mpifort",), (), ("mpifort",),
    ),
    "r-rmpi ends with an error": (
        f"r-rmpi@=0.7-2 {MPI}", "arguments", ("Unsupported MPI type",), (),
        ("'--with-Rmpi-type=MPICH2'", "'--with-mpi=/made-up/mvapich'"), (),
    ),
    "py-horovod reduces on the CPU only": (
        f"{HOROVOD} {MPI}+cuda cuda_arch=70 ^cuda@=12.4.0 ^[virtuals=pkgconfig] pkgconf@=1.8.1",
        HOROVOD_GPU, (), ("HOROVOD_GPU",),
        ("'HOROVOD_GPU': 'CUDA'", "'HOROVOD_GPU_ALLREDUCE': 'MPI'"), (),
    ),
    "py-horovod takes an MVAPICH without CUDA": (
        f"{HOROVOD} {MPI}~cuda ^cuda@=12.4.0", "refusals", (), ("mvapich",),
        ("needs mvapich+cuda",), (),
    ),
    "abinit refuses MVAPICH with ROCm": (
        f"{ABINIT}+rocm {ROCM} {MPI}+rocm {ROCM}", "refusals", (NO_GPU,), (), (), (NO_GPU,),
    ),
    "abinit refuses MVAPICH-Plus": (
        f"{ABINIT}+cuda cuda_arch=80 ^[virtuals=mpi] mvapich-plus@=4.1 gpu=cuda",
        "refusals", (NO_GPU,), (), (), (NO_GPU,),
    ),
    "abinit still refuses an MPI that knows no GPU": (
        f"{ABINIT}+rocm {ROCM} {MPI}~rocm", "refusals", (NO_GPU,), (), (NO_GPU,), (),
    ),
    "hdf5-vol-async takes an MVAPICH for one thread": (
        f"hdf5-vol-async@=1.7 {MPI} threads=single",
        "refusals", (), ("threads",), ("needs mvapich threads=multiple",), (),
    ),
    "namd sends no message over MPI": (
        f"namd@=2.14 ^charmpp@=6.10.2 backend=netlrts pmi=simplepmi {MPI}",
        "refusals", (), ("charmpp",), ("needs charmpp backend=mpi",), (),
    ),
    "namd without MPI is as before": (
        "namd@=2.14 ^charmpp@=6.10.2 backend=netlrts", "refusals", (), ("charmpp",),
        ("needs charmpp backend=mpi",), (),
    ),
    "sphexa takes an MVAPICH without ROCm": (
        f"sphexa@=0.95+rocm {ROCM} {MPI}~rocm",
        "refusals", (), ("mvapich",), ("needs mvapich+rocm amdgpu_target=gfx90a",), (),
    ),
    "abinit asks MVAPICH for its own GPU": (
        f"{ABINIT}+rocm {ROCM} {MPI}+rocm amdgpu_target=gfx942",
        "refusals", (NO_GPU,), (), ("needs mvapich amdgpu_target=gfx90a",), (NO_GPU,),
    ),
    "sphexa takes an MVAPICH-Plus without CUDA": (
        "sphexa@=0.95+cuda cuda_arch=80 ^[virtuals=mpi] mvapich-plus@=4.1 gpu=none",
        "refusals", (), ("mvapich",), ("needs mvapich-plus gpu=cuda",), (),
    ),
    "lammps takes MVAPICH-Plus for an MPI that knows no GPU": (
        f"{LAMMPS} {PLUS}", f"run:{AWARE}", (), (AWARE,), (f"'{AWARE}': '1'",), (),
    ),
    "lammps over an MVAPICH that knows no GPU is as before": (
        f"{LAMMPS} {MPI}~cuda", f"run:{AWARE},LAMMPS_POTENTIALS", ("/potentials",), (AWARE,),
        ("/potentials",), (AWARE,),
    ),
    "lammps without Kokkos is as before": (
        f"lammps@=20250722 {V100} {PLUS}", f"run:{AWARE}", (), (AWARE,), (), (AWARE,),
    ),
    "hypre takes an MVAPICH without CUDA": (
        f"{HYPRE} {MPI}~cuda", "refusals", (), ("mvapich",), ("needs mvapich+cuda",), (),
    ),
    "hypre takes an MVAPICH-Plus without CUDA": (
        f"{HYPRE} ^[virtuals=mpi] mvapich-plus@=5.0.0 gpu=none",
        "refusals", (), ("mvapich",), ("needs mvapich-plus gpu=cuda",), (),
    ),
    "hypre takes an MVAPICH for another GPU": (
        f"hypre@=2.32.0 +gpu-aware-mpi +rocm {ROCM} {MPI}+rocm amdgpu_target=gfx942",
        "refusals", (), ("mvapich",), ("needs mvapich+rocm amdgpu_target=gfx90a",), (),
    ),
    "hypre whose messages go through the host is as before": (
        f"hypre@=2.32.0 ~gpu-aware-mpi {V100} {MPI}~cuda", "refusals", (), ("mvapich",),
        (), ("mvapich",),
    ),
    "hypre keeps builtin's builder": (
        f"hypre@=2.32.0 build_system=autotools {GCC} {MPI}",
        "builder", ("hypre.package.AutotoolsBuilder",), (),
        ("builtin.packages.hypre.package.AutotoolsBuilder",), (),
    ),
    "hypre keeps builtin's builder by cmake": (
        f"hypre@=2.32.0 build_system=cmake {GCC} {MPI}",
        "builder", ("hypre.package.CMakeBuilder",), (),
        ("builtin.packages.hypre.package.CMakeBuilder",), (),
    ),
    "petsc takes an MVAPICH without CUDA": (
        f"{PETSC} {V100} {MPI}~cuda", "refusals", (), ("needs mvapich",),
        ("needs mvapich+cuda",), (),
    ),
    "petsc takes an MVAPICH-Plus without CUDA": (
        f"{PETSC} {V100} ^[virtuals=mpi] mvapich-plus@=5.0.0 gpu=none",
        "refusals", (), ("needs mvapich",), ("needs mvapich-plus gpu=cuda",), (),
    ),
    "petsc refuses every hypre that is new enough": (
        f"{PETSC} {MPI} ^hypre@=2.32.0 +mpi+fortran", "refusals",
        ("~internal-superlu",), (), (), ("hypre",),
    ),
    "petsc still refuses a hypre without MPI": (
        f"{PETSC} {MPI} ^hypre@=2.32.0 ~mpi+fortran", "refusals",
        ("needs hypre",), (), ("needs hypre+mpi",), (),
    ),
    "petsc runs programs by any mpiexec where MVAPICH has none": (
        f"{PETSC} ~batch {MPI} process_managers=slurm pmi=pmi2", "refusals",
        (), ("mpiexec",), ("no mpiexec",), (),
    ),
    "petsc over an MVAPICH with mpiexec is as before": (
        f"{PETSC} ~batch {MPI} process_managers=hydra", "refusals",
        (), ("mpiexec",), (), ("mpiexec",),
    ),
    "gpcnet is the head of a branch": (
        f"gpcnet@=1.3 {MPI}", "commit", ("error",), (), ("c56fd950ae65",), (),
    ),
    "raxml-ng is the head of a branch, whatever version is asked for": (
        f"raxml-ng@=1.1.0 {MPI}", "commit", ("None",), (), ("9b8150852c21",), (),
    ),
    "py-pyfr asks for a CUDA that no site can have": (
        f"py-pyfr@=2.0.3~scotch~libxsmm {V100} ^cuda@=12.9.1~allow-unsupported-compilers",
        "refusals", ("needs cuda@11.4.0:+allow-unsupported-compilers",), (), (),
        ("allow-unsupported-compilers",),
    ),
    "py-torch refuses CUDA tensors over MVAPICH-Plus": (
        f"{TORCH} {PLUS}", "flags:cxxflags", (), ("MPIX",), ("-DMPIX_CUDA_AWARE_SUPPORT=1",), (),
    ),
    "py-torch over an MVAPICH that knows no GPU is as before": (
        f"{TORCH} {MPI}~cuda", "flags:cxxflags", (), ("MPIX",), (), ("MPIX",),
    ),
}  # fmt: skip


# Recipes that builtin lacks: (spec, what is asked, found in the answer, not found there)
OWN: dict[str, tuple[str, str, Words, Words]] = {
    "npb-openshmem builds BT and SP for square numbers of ranks only": (
        "npb-openshmem@=1.0a names=bt,mg classes=S nprocs=4,8",
        "call:runs", ("('bt', 'S', 4)", "('mg', 'S', 4)", "('mg', 'S', 8)"), ("('bt', 'S', 8)",),
    ),
    "npb-openshmem has no IS of class D": (
        "npb-openshmem@=1.0a names=ep,is classes=D nprocs=4",
        "call:runs", ("('ep', 'D', 4)",), ("'is'",),
    ),
    "npb-upc names page, file and place": (
        "npb-upc@=2.4-11.02", "call:download_instr",
        ("threads.hpcl.gwu.edu", "npb-upc-2.4-11.02.tar.gz", "put it where", "--no-checksum"), (),
    ),
    "q-chem names page, file and place": (
        "q-chem@=6.0", "call:download_instr",
        ("q-chem.com/install", "qchem-6.0.tar.gz", "put it where", "--no-checksum"), (),
    ),
    "mpich-testsuite is configured for the MPI of the spec": (
        f"mpich-testsuite@=4.3.0 {MPI}", "arguments",
        ("--with-mpi=/made-up/mvapich", "--disable-cxx"), ("--disable-fortran", "strict"),
    ),
    "mpich-testsuite leaves out what is not asked for": (
        f"mpich-testsuite@=4.3.0 ~fortran+strict+cxx {MPI}", "arguments",
        ("--disable-fortran", "--enable-strictmpi", "--enable-cxx"), (),
    ),
    "awp-odc compiles for the GPUs that are asked for, with MVAPICH's mpicc": (
        f"awp-odc@=2025.05.15 cuda_arch=70,80 {MPI} ^cuda@=12.4.0", "call:nvcc_targets",
        ("code=sm_70", "code=sm_80"), (),
    ),
    "awp-odc needs a GPU": ("awp-odc@=2025.05.15~cuda", "refusals", ("+cuda cuda_arch",), ()),
    "awp-odc needs to know which GPU": (
        "awp-odc@=2025.05.15+cuda cuda_arch=none", "refusals", ("cuda_arch=70",), (),
    ),
    "awp-odc 1605.1 does not compile with CUDA 12": (
        "awp-odc@=1605.1 cuda_arch=70 ^cuda@=12.4.0", "refusals", ("@2025.05.15",), (),
    ),
}  # fmt: skip


# Product: (spec, what is found of it)
LIBRARIES = {
    "mvapich": (MPI, "mvapich/lib64/libmpi.so"),
    "mvapich-plus": (PLUS, "mvapich-plus/lib64/libmpi.so"),
    "mvapich2": ("^[virtuals=mpi] mvapich2@=2.3.7-2", "mvapich2/lib64/libmpi.so"),
    "mvapich2-gdr": ("^[virtuals=mpi] mvapich2-gdr@=2.3.6", "mvapich2-gdr/lib64/libmpi.so"),
    "mvapich2-x": ("^[virtuals=mpi] mvapich2-x@=2.3", "mvapich2-x/lib64/libmpi.so"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the recipes say of each case; one process for all."""
    folder = tmp_path_factory.mktemp("apps")
    isolated = spack_here(folder / "state")
    request, answer = folder / "request.json", folder / "answer.json"
    both, own = ["builtin", "mvapich_stack_mends"], ["mvapich_stack"]
    asked: list[dict[str, Any]] = [
        *({"spec": one[0], "ask": one[1], "spaces": both} for one in CASES.values()),
        *({"spec": one[0], "ask": one[1], "spaces": own} for one in OWN.values()),
        *_libraries(folder),
    ]
    request.write_text(json.dumps(asked))
    done = run(isolated, "python", str(INSIDE), str(request), str(answer))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(answer.read_text())
    said = [[_text(one) for one in row] for row in found]
    return dict(zip([*CASES, *OWN, *LIBRARIES], said, strict=True))


def _libraries(folder: Path) -> list[dict[str, Any]]:
    """What a recipe of builtin that links the MPI by itself finds of each product."""
    asked = []
    for product, (spec, _) in LIBRARIES.items():
        library = folder / product / "lib64" / "libmpi.so"
        library.parent.mkdir(parents=True)
        library.touch()
        asked.append(
            {
                "spec": f"hpcc@=1.5.0 {GCC} {spec}",
                "ask": "libs:mpi",
                "spaces": ["builtin"],
                "prefixes": {product: str(folder / product)},
            }
        )
    return asked


def _text(answer: Any) -> str:
    """JSON's lists within lists as the tuples that they were."""
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        return str([tuple(one) for one in answer])
    return str(answer)


@pytest.mark.parametrize("name", CASES)
def test_what_builtin_does_and_what_ours_does(name: str, answers: dict[str, list[str]]) -> None:
    builtin, ours = answers[name]
    _, _, theirs, not_theirs, wanted, unwanted = CASES[name]
    assert all(word in builtin for word in theirs), builtin
    assert not any(word in builtin for word in not_theirs), builtin
    assert all(word in ours for word in wanted), ours
    assert not any(word in ours for word in unwanted), ours


@pytest.mark.parametrize("name", OWN)
def test_what_builtin_lacks(name: str, answers: dict[str, list[str]]) -> None:
    [said] = answers[name]
    _, _, wanted, unwanted = OWN[name]
    assert all(word in said for word in wanted), said
    assert not any(word in said for word in unwanted), said


@pytest.mark.parametrize("product", LIBRARIES)
def test_whoever_links_the_mpi_finds_its_library(
    product: str, answers: dict[str, list[str]]
) -> None:
    """charmpp, hpcc, mpi4py, npb and wannier90 ask for it; by its name no MPI has a library."""
    [said] = answers[product]
    assert said.endswith(f"{LIBRARIES[product][1]}']"), said


def test_each_recipe_that_inherits_an_application_is_tried() -> None:
    recipes = [one for one in read_recipes() if one.builtin == one.folder.replace("_", "-")]
    inherit = {one.builtin for one in recipes} - {"mpi", "mvapich", "mvapich2"}
    assert len(inherit) >= 18
    tried = {case[0].split("@")[0] for case in CASES.values()}
    assert inherit <= tried
