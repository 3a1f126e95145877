"""Products given out as binaries, OSU's benchmarks and INAM, in a real Spack.

What the recipes say is asked without a solver; a few specs are solved for (slow). The whole set
that was tried is tests/spack/binaries.yaml, which tests/spack/cover.py goes through.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recipes.model import GIVEN, Recipe
from recipes.reading import read_recipes
from spack_here import run, spack_here

from mvstack.builders.spack.isolated import Isolated

HERE = Path(__file__).parent
SPACK_TESTS = HERE.parent / "spack"
sys.path.insert(0, str(SPACK_TESTS))

RECIPES = {recipe.name: recipe for recipe in read_recipes()}
OWN = [recipe for recipe in RECIPES.values() if not recipe.builtin]
PLUS = "mvapich-plus@=5.0.0"
RPM = "mvapich-plus-5.0.0-nogpu.rhel8.ofed24.10.ucx.gcc13.2.0-5.0.0-1.el8.x86_64.rpm"


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    return spack_here(tmp_path_factory.mktemp("spack"))


@pytest.fixture(scope="module")
def mirror(isolated: Isolated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source mirror that is a folder, known to this Spack."""
    folder = tmp_path_factory.mktemp("mirror")
    done = run(isolated, "mirror", "add", "--type", "source", "site", f"file://{folder}")
    assert done.returncode == 0, done.stderr
    return folder


def ask(isolated: Isolated, folder: Path, *questions: list[str]) -> list[Any]:
    """The answers of spack_binaries_inside.py."""
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps(questions))
    inside = HERE / "spack_binaries_inside.py"
    done = run(isolated, "python", str(inside), str(request), str(answer))
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(answer.read_text())
    return found


def error(answer: Any) -> str:
    assert isinstance(answer, dict) and "error" in answer, answer
    return str(answer["error"])


def test_what_is_read_without_spack_is_what_spack_understands(
    isolated: Isolated, tmp_path: Path
) -> None:
    """The reader of recipes/ against Spack itself, for each recipe that is wholly ours."""
    answers = ask(isolated, tmp_path, *[["declared", recipe.name] for recipe in OWN])
    for recipe, said in zip(OWN, answers, strict=True):
        assert "error" not in said, (recipe.name, said)
        read = {version.name: version for version in recipe.versions}
        assert read.keys() == said["versions"].keys(), recipe.name
        assert {name: version.sha256 for name, version in read.items()} == said["hashes"]
        if "url_for_version" not in recipe.methods:
            urls = {name: recipe.url_for(one) for name, one in read.items()}
            assert urls == said["versions"], recipe.name
        assert recipe.manual == said["manual"]
        for kind, told in (("conflicts", said["messages"]), ("requires", said["required"])):
            # Spack puts the package's name before a message
            told = {one.removeprefix(f"{recipe.name}: ") for one in told}
            assert _messages(recipe, kind) <= told, recipe.name
        given = {name for helper in recipe.helpers for name in GIVEN.get(helper, {})}
        for name, values in recipe.variant_values().items():
            if name not in given and values:
                words = {
                    word.lower() if word in ("True", "False") else word
                    for word in said["variants"][name]
                }
                assert values == words, (recipe.name, name)


def _messages(recipe: Recipe, kind: str) -> set[str]:
    return {one.message for one in recipe.conflicts if one.kind == kind}


def test_the_names_of_the_rpms(isolated: Isolated, tmp_path: Path) -> None:
    specs = {
        PLUS: RPM,
        f"{PLUS} gpu=cuda +cuda process_managers=slurm netmod=ofi el=9": (
            "mvapich-plus-5.0.0-cuda12.9.rhel9.ofed24.10.ofi.gcc13.2.0.slurm-5.0.0-1.el9.x86_64.rpm"
        ),
        f"{PLUS} gpu=mi300a +rocm process_managers=slurm": (
            "mvapich-plus-5.0.0-rocm6.4.3.rhel8.ofed24.10.ucx.gcc13.2.0.slurm.mi300a"
            "-5.0.0-1.el8.x86_64.rpm"
        ),
        "mvapich-plus@=4.1 gpu=cuda +cuda": (
            "mvapich-plus-4.1-cuda12.4.rhel8.ofed24.10.ucx.gcc13.2.0-4.1-1.el8.x86_64.rpm"
        ),
        "osu-inam@=1.1 el=9": "osu-inam-1.1-1.el9.x86_64.rpm",
    }
    answers = ask(isolated, tmp_path, *[["file name", spec] for spec in specs])
    assert answers == list(specs.values())
    (refused,) = ask(
        isolated, tmp_path, ["file name", "mvapich-plus@=4.1 gpu=rocm +rocm +unconfirmed"]
    )
    assert "set rocm_version to what stands in the name of your file" in error(refused)


def test_an_rpm_that_is_not_there_is_named_with_its_page_and_place(
    isolated: Isolated, mirror: Path, tmp_path: Path
) -> None:
    plus, inam = ask(isolated, tmp_path, ["in mirror", PLUS], ["in mirror", "osu-inam@=1.1"])
    said = error(plus)
    assert f"{RPM} is in no source mirror; it is never fetched for you" in said
    assert "https://mvapich.cse.ohio-state.edu/downloads/" in said
    assert str(mirror / "mvapich-plus" / RPM) in said
    assert "is confirmed for 4.1 only" in said
    assert "declare the site's own installation as an external" in said
    assert "osu-inam-1.1-1.el8.x86_64.rpm is in no source mirror" in error(inam)


def test_bytes_are_taken_only_with_the_hash_beside_them(
    isolated: Isolated, mirror: Path, tmp_path: Path
) -> None:
    folder = mirror / "mvapich-plus"
    folder.mkdir(exist_ok=True)
    name = "mvapich-plus-4.1-nogpu.rhel9.ofed24.10.ofi.gcc13.2.0-4.1-1.el9.x86_64.rpm"
    file, beside = folder / name, folder / f"{name}.sha256"
    question = ["in mirror", "mvapich-plus@=4.1 netmod=ofi el=9"]
    file.write_bytes(b"bytes")
    assert "there is no" in error(ask(isolated, tmp_path, question)[0])
    beside.write_text(f"{'0' * 64}  {name}\n")
    said = error(ask(isolated, tmp_path, question)[0])
    digest = hashlib.sha256(b"bytes").hexdigest()
    assert f"found     sha256 {digest}" in said
    assert f"expected  sha256 {'0' * 64}" in said
    beside.write_text(f"{digest}  {name}\n")
    assert ask(isolated, tmp_path, question) == [str(file)]


def test_an_rpm_is_unpacked_and_its_scripts_name_the_new_place(
    isolated: Isolated, mirror: Path, tmp_path: Path
) -> None:
    missing = [name for name in ("rpmbuild", "rpm2cpio", "cpio") if not shutil.which(name)]
    if missing:
        pytest.skip(f"skipped: not installed: {', '.join(missing)}")
    old = "/opt/mvapich/plus/5.0.0/nogpu/ucx/gcc13.2.0"
    made = make_rpm(tmp_path / "rpmbuild", old)
    folder = mirror / "mvapich-plus"
    folder.mkdir(exist_ok=True)
    shutil.copy(made, folder / RPM)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    (folder / f"{RPM}.sha256").write_text(f"{digest}  {RPM}\n")
    prefix = tmp_path / "prefix"
    (programs,) = ask(isolated, tmp_path, ["unpack", PLUS, str(tmp_path / "work"), str(prefix)])
    assert programs == ["mpicc", "tool"]
    assert (
        prefix / "bin" / "mpicc"
    ).read_text() == f'#!/bin/sh\nexec cc -I"{prefix}/include" "$@"\n'
    assert (prefix / "lib" / "pkgconfig" / "mpich.pc").read_text() == f"prefix={prefix}\n"
    # what is no text is left as it is
    assert (prefix / "bin" / "tool").read_bytes() == b"\0" + old.encode()
    assert (prefix / "bin" / "mpicc").stat().st_mode & 0o111


def make_rpm(top: Path, prefix: str) -> Path:
    """An RPM with a compiler script, a .pc file and a file that is no text, below ``prefix``."""
    top.mkdir()
    (top / "one.spec").write_text(
        "Name: mvapich-plus\nVersion: 5.0.0\nRelease: 1\nSummary: s\nLicense: none\n"
        "AutoReqProv: no\n%description\nd\n%install\n"
        f"mkdir -p %{{buildroot}}{prefix}/bin %{{buildroot}}{prefix}/lib/pkgconfig\n"
        f"cd %{{buildroot}}{prefix}\n"
        f'printf \'#!/bin/sh\\nexec cc -I"{prefix}/include" "$@"\\n\' > bin/mpicc\n'
        f"chmod 755 bin/mpicc\n"
        f"printf '\\0{prefix}' > bin/tool\n"
        f"printf 'prefix={prefix}\\n' > lib/pkgconfig/mpich.pc\n"
        f"%files\n{prefix}\n"
    )
    done = subprocess.run(
        [
            "rpmbuild",
            "-bb",
            "--define",
            f"_topdir {top}",
            "--define",
            "_build_id_links none",
            "--define",
            "__brp_mangle_shebangs %{nil}",
            str(top / "one.spec"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (made,) = top.rglob("*.rpm")
    return made


def test_the_installer_is_staged_only_when_it_is_to_run(isolated: Isolated, tmp_path: Path) -> None:
    answers = ask(
        isolated,
        tmp_path,
        ["staged", PLUS],
        ["staged", f"{PLUS} rpm=installer"],
        ["by hand", f"{PLUS} rpm=installer"],
    )
    assert answers[:2] == [False, True]
    assert "mvapich-plus-installer.sh of 5.0.0" in answers[2]
    digest = RECIPES["mvapich-plus"].versions[0].sha256
    assert f"<mirror>/_source-cache/archive/23/{digest}.sh" in answers[2]
    assert f"<mirror>/mvapich-plus/{RPM}" in answers[2]


def test_nothing_of_them_is_fetched_by_its_url(isolated: Isolated, tmp_path: Path) -> None:
    """`manual_download` alone only changes Spack's last words: it would fetch by the url first."""
    specs = (f"{PLUS} rpm=installer", "mvapich2-gdr@=2.3.6", "mvapich2-x@=2.3")
    answers = ask(isolated, tmp_path, *[["fetch", spec] for spec in specs])
    assert [[url for url in said["urls"] if "ohio-state" in url] for said in answers] == [
        [],
        [],
        [],
    ]
    assert "MVAPICH-Plus is downloaded by hand." in answers[0]["said"]
    assert "mvapich2-gdr is given out as binaries only" in answers[1]["said"]
    assert "mvapich2-x is given out as binaries only" in answers[2]["said"]
    # what is fetched shows that the question can be answered otherwise
    (benchmarks,) = ask(isolated, tmp_path, ["fetch", "osu-micro-benchmarks@=7.5"])
    assert any("ohio-state" in url for url in benchmarks["urls"])


@pytest.mark.parametrize(
    ("release", "el", "words"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="8.9"\n', "8", ""),
        ('ID="rhel"\nVERSION_ID="9.4"\n', "9", ""),
        ('PRETTY_NAME="TOSS 4"\nID="toss"\nID_LIKE="rhel"\nVERSION_ID="4"\n', "8", "is TOSS 4"),
        ('PRETTY_NAME="Rocky 9"\nID="rocky"\nID_LIKE="rhel"\nVERSION_ID="9.1"\n', "8", "Rocky 9"),
        ('PRETTY_NAME="Debian 12"\nID=debian\nVERSION_ID="12"\n', "8", "this is Debian 12"),
    ],
)
def test_other_systems_are_refused_when_it_is_installed(
    isolated: Isolated, tmp_path: Path, release: str, el: str, words: str
) -> None:
    (tmp_path / "os-release").write_text(release)
    question = ["this system", f"{PLUS} el={el}", str(tmp_path / "os-release")]
    (answer,) = ask(isolated, tmp_path, question)
    if words:
        assert words in error(answer) and "use el=8 or el=9" in error(answer)
    else:
        assert answer is None


def test_what_has_no_source_says_how_to_have_it(isolated: Isolated, tmp_path: Path) -> None:
    gdr, x = ask(
        isolated, tmp_path, ["install", "mvapich2-gdr@=2.3.6"], ["install", "mvapich2-x@=2.3"]
    )
    for said, name, instead in (
        (gdr, "mvapich2-gdr", "mvapich-plus"),
        (x, "mvapich2-x", "mvapich2 2"),
    ):
        text = error(said)
        assert f"{name} cannot be built from source" in text
        assert f"`spack external find {name}`" in text
        assert "page      https://mvapich.cse.ohio-state.edu/downloads/" in text
        assert f"or use    {instead}" in text


def test_what_an_installation_says_of_itself(isolated: Isolated, tmp_path: Path) -> None:
    plus = "/opt/mvapich/plus/4.1/cuda12.4/ofi/slurm/gcc13.2.0"
    answers = ask(
        isolated,
        tmp_path,
        ["said", "mvapich-plus", "MVAPICH Device:\tch4:ofi\n", plus, ""],
        ["said", "mvapich2-gdr", "--with-pm=slurm --with-pmi=pmi1 --enable-cuda --disable-mcast"],
        ["said", "mvapich2-gdr", "--enable-rocm --enable-hip=basic"],
        ["said", "mvapich2-x", "--enable-dc --enable-umr --with-xpmem=/opt/xpmem/"],
    )
    assert [" ".join(answer) for answer in answers] == [
        "netmod=ofi gpu=cuda +cuda ~rocm cuda_version=12.4 process_managers=slurm "
        "compiler=gcc13.2.0 +unconfirmed",
        "gpu=cuda process_managers=slurm pmi_version=pmi1 ~mcast ~openacc ~core_direct",
        "gpu=rocm +mcast ~openacc ~core_direct",
        "feature=advanced-xpmem",
    ]


def test_installations_of_a_site_are_found_as_externals(isolated: Isolated, tmp_path: Path) -> None:
    """Each by what its programs print; a plain MVAPICH or MVAPICH2 is taken for none of them."""
    homes = {
        "mvapich-plus": ("mvapich/plus/5.0.0/ofi", "mpichversion", "MVAPICH Version:\\t5.0.0"),
        "mvapich2-gdr": ("gdr", "mpiname", "MVAPICH2-GDR 2.3.6 Mon Aug 2 2021 ch3:mrail"),
        "mvapich2-x": ("x", "mpiname", "MVAPICH2-X 2.3 Mon Aug 2 2018 ch3:mrail"),
        "": ("mvapich2", "mpiname", "MVAPICH2 2.3.7 Wed Mar 2 2022 ch3:mrail"),
        " ": ("mvapich", "mpichversion", "MVAPICH Version:\\t4.1"),
    }
    paths = []
    for where, program, line in homes.values():
        folder = tmp_path / where / "bin"
        folder.mkdir(parents=True)
        (folder / program).write_text(f"#!/bin/sh\nprintf '{line}\\n'\n")
        (folder / program).chmod(0o755)
        paths += ["--path", str(folder.parent)]
    # with the namespace: builtin's mvapich-plus would take any MVAPICH for itself
    names = [f"mvapich_stack.{name}" for name in homes if name.strip()]
    done = run(isolated, "external", "find", "--scope", "user", *paths, *names)
    assert done.returncode == 0, done.stderr
    found = [line.strip() for line in done.stdout.splitlines() if "@" in line]
    assert sorted(line.split()[0] for line in found) == sorted(
        ["mvapich-plus@5.0.0", "mvapich2-gdr@2.3.6", "mvapich2-x@2.3"]
    ), done.stdout


REFUSED = {
    f"{PLUS}": "",
    f"{PLUS} gpu=cuda +cuda": "",
    f"{PLUS} gpu=cuda +cuda cuda_version=12.9": "",
    f"{PLUS} gpu=mi300a +rocm rocm_version=6.4.3": "",
    "mvapich-plus@=4.1 gpu=rocm +rocm +unconfirmed": "",
    f"{PLUS} gpu=cuda +cuda cuda_version=11.8": "use cuda_version=12.9, or +unconfirmed",
    f"{PLUS} gpu=rocm +rocm rocm_version=5.3": "use rocm_version=6.4.3, or +unconfirmed",
    f"{PLUS} compiler=gcc12.3.0": "use compiler=gcc13.2.0, or +unconfirmed",
    f"{PLUS} compiler=gcc12.3.0 +unconfirmed": "",
    "mvapich-plus@=4.1 gpu=rocm +rocm": "no RPM of 4.1 with gpu=rocm is known; use 5.0.0",
    "mvapich-plus@=4.1 gpu=mi300a +rocm": "no RPM of 4.1 with gpu=mi300a is known; use 5.0.0",
    f"{PLUS} gpu=cuda ~cuda": "use gpu=cuda, or +cuda alone",
    f"{PLUS} gpu=none +cuda": "+cuda is gpu=cuda: leave one of them out",
    f"{PLUS} gpu=cuda +cuda +rocm": "+rocm is gpu=rocm or gpu=mi300a: set one",
    "osu-micro-benchmarks@=7.5 +sycl %[virtuals=c,cxx] gcc@=12.2.0": "use %oneapi, or ~sycl",
    "osu-micro-benchmarks@=7.3 +sycl %[virtuals=c,cxx] gcc@=12.2.0": "use @7.4:, or ~sycl",
    "osu-micro-benchmarks@=7.5 +xccl": "NCCL needs +cuda, RCCL +rocm",
    "osu-micro-benchmarks@=5.7.1 +cuda +xccl cuda_arch=80": "go elsewhere: use @7.3:, or ~xccl",
    "osu-micro-benchmarks@=6.2 +papi": "PAPI is known since 7.0: use @7.0:, or ~papi",
    "osu-micro-benchmarks@=5.9 +graphing": "plots are known since 6.2: use @6.2:, or ~graphing",
    "osu-micro-benchmarks@=7.2 +rocm +xccl": "RCCL is known since 7.3: use @7.3:",
    "osu-micro-benchmarks@=7.5 +cuda +xccl": "NCCL is built for a GPU: set cuda_arch",
    "osu-micro-benchmarks@=7.5 +cuda +sycl cuda_arch=80": "configure takes one of them",
    "osu-micro-benchmarks@=7.5 models=upc ^[virtuals=mpi] mpich@=4.3.2": "use ^mvapich2-x",
    "osu-micro-benchmarks@=7.5 models=upc ^[virtuals=mpi] mvapich2-x@=2.3": "",
    "mvapich2-gdr@=2.3.6 gpu=cuda ^cuda@=12.4.0": "CUDA 9.2.88 to 11.2.2: use one of these",
    "mvapich2-gdr@=2.3.6 gpu=cuda ^cuda@=11.2.2": "",
    "mvapich2-gdr@=2.3.6 gpu=rocm ^hip@=6.4.3": "ROCm 3.9 to 4.1: declare the site's",
    "mvapich2-gdr@=2.3.6 gpu=rocm ^hip@=4.1.0": "",
}


def test_what_is_refused_and_what_is_not(isolated: Isolated, tmp_path: Path) -> None:
    """Every rule of the recipes, on specs that were written and not solved for."""
    answers = ask(isolated, tmp_path, *[["refusals", spec] for spec in REFUSED])
    for (spec, words), said in zip(REFUSED.items(), answers, strict=True):
        if words:
            assert any(words in one for one in said), (spec, said)
        else:
            assert not [one for one in said if not one.startswith("needs ")], (spec, said)


@pytest.mark.slow
def test_a_sample_concretizes_and_is_refused_as_it_should(
    isolated: Isolated, tmp_path: Path
) -> None:
    """Four rows of tests/spack/binaries.yaml; the solver takes half a minute for each."""
    from cover import problem_of, read_set

    rows, _ = read_set(SPACK_TESTS / "binaries.yaml")
    wanted = ("plus-cuda", "x-advanced", "plus-4.1-rocm", "omb-two-gpus")
    chosen = [row for row in rows if row.id in wanted]
    assert len(chosen) == len(wanted)
    (tmp_path / "specs.json").write_text(json.dumps([[row.id, row.spec] for row in chosen]))
    script = SPACK_TESTS / "concretize_all.py"
    done = run(isolated, "python", str(script), str(tmp_path / "specs.json"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    answers = {
        row.id: json.loads((tmp_path / f"{row.id}.answer.json").read_text()) for row in chosen
    }
    assert {row.id: problem_of(row, answers[row.id]) for row in chosen} == dict.fromkeys(wanted, "")
