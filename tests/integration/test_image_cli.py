"""`mvstack image`, used wrongly: each error names what is wrong and what to do; its exit code.

What starts no machine. Commands run in this process, but for what a person without root sees.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.cli import main as cli
from mvstack.image import build, checkout, site, store, tools
from mvstack.image.clean import clean_here
from mvstack.image.sign import sign, verify
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA
from mvstack.support.progress import Progress

SYSTEM, IMAGE, RELEASE = "qemu-debian12/mpich", "qemu-debian12-mpich", "2026.11"
QUIET = Progress(0, mode="quiet")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "images"
    monkeypatch.setenv("MVSTACK_IMAGES", str(folder))
    monkeypatch.setenv("MVSTACK_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "gnupg"))
    monkeypatch.delenv("MVSTACK_OSV", raising=False)
    return folder


@pytest.fixture
def mvstack(
    images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """A command line: its exit code, and what it wrote on standard output and standard error."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mvstack", "image", *map(str, words)])
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return code, said.out, said.err

    return run


def version(images: Path, state: str, **facts: Any) -> store.Version:
    made = store.begin(images, RELEASE, IMAGE, f"{state}{facts}", None, {"commit": "c", **facts})
    made.set(state=state)
    return made


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "given"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("build nosuch", 3, ["no system nosuch", "qemu-debian12"]),
        ("build qemu-debian12", 3, ["3 partitions", "qemu-debian12/mpich"]),
        ("build azure-hbv4/nosuch", 3, ["no partition nosuch", "hpc"]),
        ("build expanse/cpu", 4, ["expanse/cpu has no image", "expanse.yaml"]),
        ("build", 2, ["SYSTEM"]),
        (f"build {SYSTEM} --version 2026.11", 3, ["--version", "2026.11.0"]),
        (f"build {SYSTEM} --version 2025.05.0", 3, ["--version", "2026.11.0"]),
        (f"build {SYSTEM} --packages /nonexistent", 3, ["/nonexistent", "packages.txt"]),
        (f"build {SYSTEM} --settings /nonexistent", 3, ["/nonexistent", "variables.pkr.hcl"]),
        (f"build {SYSTEM} --images /a,b", 3, ["plain path", "','", "--images"]),
        (f"test {SYSTEM}", 4, ["no version of qemu-debian12-mpich", "mvstack image build"]),
        (f"publish {SYSTEM}", 3, ["--to FOLDER"]),
        (f"publish {SYSTEM} --to /x --share 1", 3, ["--share", "for aws", "12 digits"]),
        ("publish azure-hbv4 --to /x", 3, ["--to", "leave it out"]),
        (f"delete {SYSTEM} --version 2026.11.0", 3, ["to a folder", "remove the folder"]),
        ("deprecate aws-hpc7a --version 2026.11.0 --last 2026-01-31", 3, ["that day is over"]),
        (f"replicate {SYSTEM} westeurope --version 2026.11.0", 3, ["to a folder"]),
        (f"boot-test {SYSTEM} --settings SITE --budget 1", 4, ["started here", "image test"]),
        (
            "boot-test aws-hpc7a --settings SITE --budget 1",
            4,
            ["aws_subnet, aws_security_group", '"hpc7a.96xlarge": AN HOUR', "Nothing was started"],
        ),
        (
            "boot-test azure-hbv4 --settings SITE --budget 4.9",
            4,
            ["azure_subnet", "Standard_HB176rs_v4"],
        ),
        ("boot-test aws-hpc7a --budget 1", 2, ["--settings"]),
        ("boot-test aws-hpc7a --settings SITE", 2, ["--budget"]),
        ("build aws-hpc7a --last 30.6.2027", 2, ["--last"]),
        ("publish azure-hbv4 --share 123456789012", 3, ["--share", "for aws"]),
        ("list --cloud gcp", 3, ["--cloud", "gcp", "aws, azure"]),
        ("clean --cloud gcp --yes", 3, ["--cloud", "gcp", "aws, azure"]),
        ("clean --older-than -1", 2, ["--older-than"]),
        ("verify /nonexistent", 3, ["/nonexistent", "mvstack image list"]),
        ("compare /nonexistent /", 3, ["/nonexistent", "mvstack image list"]),
        ("compare / /", 3, ["manifest.txt", "mvstack image list"]),
        ("nosuch", 2, ["nosuch"]),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    mvstack: Run, images: Path, tmp_path: Path, words: str, code: int, says: list[str]
) -> None:
    site = str(written(tmp_path, "{}"))
    got, out, err = mvstack(*(site if word == "SITE" else word for word in words.split()))
    assert got == code, err
    flat = " ".join(err.replace("│", " ").split())
    assert all(word in flat for word in says), err
    assert not out
    assert not images.exists(), "nothing is begun"


def test_an_error_is_json_for_scripts(mvstack: Run) -> None:
    code, out, _ = mvstack("list", "--cloud", "gcp", "--json")
    said = json.loads(out)
    assert code == said["exit_code"] == 3
    assert said["problems"][0]["todo"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", ["no JSON", "line 1"]),
        ("[1]", ["no JSON object"]),
        (b"\xff\xfe", ["no JSON"]),
        ('{"aws_regionn": "x"}', ["no such variable", "aws_region"]),
        ('{"aws_copy_regions": "eu-north-1"}', ["aws_copy_regions", "list"]),
        ('{"aws_region": ["us-east-2"]}', ["aws_region", "no text"]),
        ('{"prices": {"hpc7a.96xlarge": "7.2"}}', ["prices", "no price by size"]),
        ('{"prices": {"hpc7a.96xlarge": 0}}', ["prices", "no price by size"]),
        ('{"prices": 7.2}', ["prices", "no price by size"]),
    ],
)
def test_a_site_file_that_is_wrong(
    mvstack: Run, tmp_path: Path, text: str | bytes, says: list[str]
) -> None:
    place = written(tmp_path, text)
    for words in (["build", "aws-hpc7a"], ["list"], ["clean"], ["list", "--cloud", "aws"]):
        code, _, err = mvstack(*words, "--settings", place)
        assert code == 3 and str(place) in err
        assert all(word in err for word in says), err


@given(st.text(max_size=60))
def test_no_text_in_a_site_file_is_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    place = written(tmp_path_factory.getbasetemp(), text.encode("utf-8", "surrogatepass"))
    try:
        assert site.read_site(place) == json.loads(text) == {}
    except InvalidInput as error:
        assert error.problems


def test_a_cloud_that_the_site_does_not_describe(mvstack: Run, tmp_path: Path) -> None:
    place = written(tmp_path, '{"azure_subscription": "x"}')
    code, _, err = mvstack("list", "--cloud", "azure", "--settings", place)
    assert code == 3
    assert "azure_gallery_resource_group, azure_gallery" in err
    assert "variables.pkr.hcl" in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "an empty line"),
        ("root:x:0:0::/root:/bin/sh\n", "root:x"),
        (b"\x7fELF\xff", "not text"),
    ],
)
def test_a_list_of_packages_that_is_none(
    mvstack: Run, tmp_path: Path, text: str | bytes, says: str
) -> None:
    place = written(tmp_path, text)
    code, _, err = mvstack("build", SYSTEM, "--packages", place)
    assert code == 3 and str(place) in err and says in err


def test_lists_of_both_families_are_taken(tmp_path: Path) -> None:
    text = "libstdc++6:amd64=12.2.0-14+deb12u1\nglibc-langpack-en.x86_64=2.34-231.el9_7.2\n"
    assert build.read_packages(written(tmp_path, text)) == text


@pytest.fixture
def no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "bin"
    folder.mkdir()
    if git := shutil.which("git"):
        (folder / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(folder))
    yield


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"build {SYSTEM}", "apt-get install -y --no-install-recommends"),
        ("build aws-hpc7a", "packer zstd"),
        ("validate aws-hpc7a", "apt-get install -y packer"),
    ],
)
def test_programs_that_are_lacking_are_named(
    mvstack: Run, images: Path, no_tools: None, words: str, says: str
) -> None:
    code, _, err = mvstack(*words.split())
    assert code == 7 and says in err, err
    assert not images.exists()


def test_a_test_without_its_programs_withdraws_nothing(
    mvstack: Run, images: Path, no_tools: None
) -> None:
    tested = version(images, "tested", signed="F")
    (tested.folder / "SHA256SUMS").write_text("signed")
    before = (tested.folder / "image.json").read_bytes()
    code, _, err = mvstack("test", SYSTEM)
    assert code == 7 and "qemu-system-x86" in err
    assert (tested.folder / "image.json").read_bytes() == before
    assert (tested.folder / "SHA256SUMS").is_file()


def test_a_test_without_the_disk(mvstack: Run, images: Path) -> None:
    tools_there = all(shutil.which(name) for name in tools.FOR_TEST)
    if not tools_there:
        pytest.skip("what starts an image is not installed")
    made = version(images, "candidate")
    code, _, err = mvstack("test", SYSTEM)
    assert code == 7 and str(made.folder / "disk.qcow2") in err


def test_a_database_that_is_not_there(
    mvstack: Run, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, tools.FOR_ALL + tools.FOR_TEST)):
        pytest.skip("what makes an image is not installed, or this is not root")
    monkeypatch.setenv("MVSTACK_OSV", "/nonexistent")
    code, _, err = mvstack("build", SYSTEM)
    assert code == 7
    assert "/nonexistent" in err or "apt-get install" in err


def test_only_what_was_tested_and_signed_is_published(
    mvstack: Run, images: Path, tmp_path: Path
) -> None:
    words = ("publish", SYSTEM, "--to", tmp_path / "to")
    version(images, "candidate")
    code, _, err = mvstack(*words)
    assert code == 4 and "was not tested" in err and "vulnerabilities" in err
    version(images, "tested", why_unsigned="there is no key to sign with")
    code, _, err = mvstack(*words, "--vulnerabilities-unknown")
    assert code == 4 and "cache keys create" in err and "no key to sign with" in err
    version(images, "published")
    code, _, err = mvstack(*words)
    assert code == 4 and "published already" in err
    assert not (tmp_path / "to").exists()


@pytest.mark.skipif(not shutil.which("cosign"), reason="cosign is not installed")
def test_what_cosign_signed_is_published_with_its_signature(
    mvstack: Run, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSIGN_PASSWORD", "of the tests")
    subprocess.run(["cosign", "generate-key-pair"], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("MVSTACK_COSIGN_KEYS", str(tmp_path / "cosign.pub"))
    tested = version(images, "tested")
    (tested.folder / "disk.qcow2").write_text("disk")
    tested.set(signed=sign(tested.folder, f"cosign:{tmp_path / 'cosign.key'}").signer)
    code, out, err = mvstack(
        "publish", SYSTEM, "--to", tmp_path / "to", "--vulnerabilities-unknown"
    )
    assert code == 0, out + err
    (there,) = (tmp_path / "to" / IMAGE).iterdir()
    assert verify(there).signer.startswith("cosign ")


def test_a_version_says_its_last_day_and_after_it_is_not_published(
    mvstack: Run, images: Path, tmp_path: Path
) -> None:
    today = datetime.now(UTC).date()
    version(images, "tested", signed="", last_day=str(today))
    code, out, _ = mvstack("list")
    assert code == 0 and f"{IMAGE} 2026.11.0: tested; " in out and f"end {today}" in out
    over = version(images, "published", last_day=str(today - timedelta(1)))
    code, out, _ = mvstack("list")
    assert f"{over.title}: published (past its last day); " in out
    over.set(state="tested")
    words = ("publish", SYSTEM, "--to", tmp_path / "to", "--vulnerabilities-unknown")
    code, _, err = mvstack(*words)
    assert code == 4 and "is past its last day" in err and not (tmp_path / "to").exists()


def test_a_damaged_record_is_shown_and_nothing_takes_its_place(mvstack: Run, images: Path) -> None:
    version(images, "candidate")
    record = version(images, "published").folder / "image.json"
    whole = json.loads(record.read_text())
    for text in (
        "{",
        "[]",
        json.dumps({**whole, "state": "odd"}),
        json.dumps({**whole, "version": "2026.11.7"}),
        json.dumps({**whole, "build_id": "../../.."}),
        json.dumps({name: value for name, value in whole.items() if name != "steps"}),
    ):
        record.write_text(text)
        code, out, _ = mvstack("list")
        assert code == 0 and f"{IMAGE} 2026.11.1: damaged" in out
        code, out, _ = mvstack("clean", "--yes")
        assert code == 0 and record.read_text() == text
        code, _, err = mvstack("test", SYSTEM, "--version", "2026.11.1")
        assert code == 4 and "2026.11.1 (damaged)" in err
        new = store.begin(images, RELEASE, IMAGE, text, None, {})
        assert new.version not in ("2026.11.0", "2026.11.1")


def test_clean_leaves_what_is_whole_or_worked_on(mvstack: Run, images: Path) -> None:
    kept = [version(images, state).folder for state in store.STATES[1:]]
    held, left = version(images, "building", n=1), version(images, "building", n=2)
    orphan = images / "work" / "20261121T211500Z-000000"
    half = images / "base" / ".base-x"
    for place in (orphan, half, store.work_folder(left)):
        place.mkdir(parents=True)
        (place / "file").write_text("x")
    with store.locked(held):
        code, out, _ = mvstack("clean", "--json")
        shown = {row["id"] for row in json.loads(out)}
        expected = [left.folder, store.work_folder(left), orphan, half]
        assert code == 0 and shown == set(map(str, expected))
        assert all(place.exists() for place in expected), "it is only shown"
        assert {row["id"] for row in clean_here(images, True, QUIET)} == shown
        assert not any(place.exists() for place in expected)
        assert held.folder.is_dir() and store.work_folder(held).is_dir()
    assert all(place.is_dir() for place in kept)


def test_a_version_whose_test_was_cut_off_is_gone_on_with(images: Path) -> None:
    made = store.begin(images, RELEASE, IMAGE, "x", None, {})
    made.set(state="candidate", testing=True)
    assert store.begin(images, RELEASE, IMAGE, "x", None, {}).version == made.version
    assert store.begin(images, RELEASE, IMAGE, "x", made.version, {}).version == made.version
    made.set(testing=False)
    assert store.begin(images, RELEASE, IMAGE, "x", None, {}).version != made.version


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://me:secret@example.org/a/b.git?token=t", "git+https://example.org/a/b.git"),
        ("git@example.org:a/b.git", "git+ssh://example.org/a/b.git"),
        ("ssh://me@example.org:2222/a", "git+ssh://example.org:2222/a"),
        ("/srv/git/a.git", ""),
        ("file:///srv/git/a.git", ""),
        ("https://[bad", ""),
        ("", ""),
    ],
)
def test_the_origin_of_the_code_tells_no_secret_and_no_folder(remote: str, url: str) -> None:
    assert checkout.public_url(remote) == url


@pytest.fixture
def roots() -> Iterator[Path]:
    """A folder of root's that everybody may look into; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_person_without_root(roots: Path) -> None:
    """They may look at images that are root's, and are told what they may not do."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, to be somebody else; and setpriv")
    version(roots, "candidate")
    # may read everything, so that this checkout and its Python are found wherever they are
    read = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", *read]
    environment = {
        **os.environ,
        "PYTHONPATH": str(DATA / "src"),
        "HOME": "/nonexistent",
        "MVSTACK_IMAGES": str(roots),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*nobody, sys.executable, "-P", "-m", "mvstack", "image", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    before = sorted(roots.rglob("*"))
    listed = run("list")
    assert listed.returncode == 0, listed.stderr
    assert f"{IMAGE} 2026.11.0: candidate" in listed.stdout
    assert run("clean").returncode == 0
    built = run("build", SYSTEM)
    assert built.returncode == 7 and "sudo" in built.stderr, built.stderr
    assert sorted(roots.rglob("*")) == before
