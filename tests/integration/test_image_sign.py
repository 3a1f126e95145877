"""The signature over a build: what changed, is missing, is extra, or is signed by a stranger."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from image_tree import put

from mvstack.cache import gpg
from mvstack.image.sign import sign, verify
from mvstack.support.errors import CheckFailed, Missing, Refused

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPG home with one key that can sign."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("site") / "home"
        patch.setenv("MVSTACK_GNUPGHOME", str(home))
        gpg.create("Site of the tests", "a@example.org")
    return home


@pytest.fixture
def build(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A signed folder of a build."""
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(site))
    folder = tmp_path / "2026.11.0"
    put(folder, "disk.qcow2", b"\x00disk")
    put(folder, "logs/packer.txt", "built")
    put(folder, "image.json", '{"state": "candidate"}')
    sign(folder)
    return folder


def failure(folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(CheckFailed) as error:
        verify(folder)
    return [(one.where.rpartition("2026.11.0/")[2], one.message) for one in error.value.problems]


def test_what_was_signed_verifies_and_its_state_may_go_on(build: Path) -> None:
    put(build, "image.json", '{"state": "published"}')
    found = verify(build)
    assert found.signer == gpg.own_key().fingerprint
    assert sorted(found.files) == ["disk.qcow2", "logs/packer.txt"]
    assert found == sign(build)  # again, over what is the same


def test_others_can_verify_it_without_us(build: Path, site: Path) -> None:
    for command in (
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"],
        ["gpg", "--homedir", str(site), "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"],
    ):
        assert subprocess.run(command, cwd=build, capture_output=True).returncode == 0


def test_each_file_that_is_not_as_signed_is_named(build: Path) -> None:
    put(build, "disk.qcow2", b"\x00dis\x00")
    (build / "logs/packer.txt").unlink()
    put(build, "logs/extra.txt", "x")
    (build / "link").symlink_to("disk.qcow2")
    assert failure(build) == [
        ("disk.qcow2", "was changed after it was signed"),
        ("logs/packer.txt", "is missing, and was signed"),
        ("link", "is there, and was not signed"),
        ("logs/extra.txt", "is there, and was not signed"),
    ]


def test_a_link_to_the_same_bytes_is_not_the_file(build: Path) -> None:
    shutil.copy(build / "disk.qcow2", build.parent / "elsewhere")
    (build / "disk.qcow2").unlink()
    (build / "disk.qcow2").symlink_to(build.parent / "elsewhere")
    assert failure(build) == [("disk.qcow2", "is missing, and was signed")]


def test_sums_that_were_changed_are_not_believed(build: Path) -> None:
    sums = build / "SHA256SUMS"
    text = sums.read_text()
    for changed in (text.replace("disk", "dusk"), "", text + text):
        sums.write_text(changed)
        with pytest.raises(Refused, match="changed after it was signed"):
            verify(build)
    sums.write_text(text)
    put(build, "SHA256SUMS.asc", "no signature")
    with pytest.raises(Refused, match="cannot be believed"):
        verify(build)
    (build / "SHA256SUMS.asc").unlink()
    with pytest.raises(Refused, match="not signed"):
        verify(build)


def test_a_key_that_nobody_trusts_is_named(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = gpg.own_key()
    public = gpg.export(key.fingerprint)
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "other"))
    with pytest.raises(Refused, match=key.fingerprint) as error:
        verify(build)
    assert "cache keys trust" in error.value.problems[0].todo
    gpg.trust(public.encode())
    assert verify(build).signer == key.fingerprint
    with pytest.raises(Refused, match="no key to sign with"):
        sign(build)


def test_sums_of_a_trusted_signer_must_still_stay_in_the_folder(build: Path) -> None:
    text = f"{'0' * 64}  ../outside\n"
    put(build, "SHA256SUMS", text)
    put(build, "SHA256SUMS.asc", gpg.sign(text, gpg.own_key().fingerprint, detached=True))
    with pytest.raises(Refused, match="no line that mvstack signs"):
        verify(build)


def test_what_cannot_be_signed_is_refused(build: Path, tmp_path: Path) -> None:
    before = (build / "SHA256SUMS").read_text()
    put(build, "a name\nwith a line", "x")
    (build / "link").symlink_to("disk.qcow2")
    with pytest.raises(Refused) as error:
        sign(build)
    assert [one.where for one in error.value.problems] == ["'a name\\nwith a line'", "link"]
    assert (build / "SHA256SUMS").read_text() == before
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refused, match="nothing to sign"):
        sign(tmp_path / "empty")


COSIGN = pytest.mark.skipif(not shutil.which("cosign"), reason="cosign is not installed")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two pairs of cosign's; the first is trusted."""
    monkeypatch.setenv("COSIGN_PASSWORD", "of the tests")
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("site", "other"):
        command = ["cosign", "generate-key-pair", f"--output-key-prefix={name}"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    monkeypatch.setenv("MVSTACK_COSIGN_KEYS", str(folder / "site.pub"))
    return folder


@COSIGN
def test_cosign_signs_in_the_place_of_gpg(build: Path, keys: Path) -> None:
    signed = sign(build, f"cosign:{keys / 'site.key'}")
    assert not (build / "SHA256SUMS.asc").exists()
    assert verify(build) == signed and signed.signer.startswith("cosign ")
    command = ["cosign", "verify-blob", "--key", "site.pub", "--insecure-ignore-tlog=true"]
    command += [f"--bundle={build / 'SHA256SUMS.sigstore.json'}", str(build / "SHA256SUMS")]
    assert subprocess.run(command, cwd=keys, check=False).returncode == 0
    put(build, "disk.qcow2", b"\x01disk")
    assert failure(build) == [("disk.qcow2", "was changed after it was signed")]
    assert sign(build).signer == gpg.own_key().fingerprint
    assert not (build / "SHA256SUMS.sigstore.json").exists()


@COSIGN
def test_a_key_of_cosigns_that_is_not_trusted_neither_signs_nor_counts(
    build: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match="not among those trusted"):
        sign(build, f"cosign:{keys / 'other.key'}")
    assert verify(build).signer == gpg.own_key().fingerprint  # nothing was lost
    sign(build, f"cosign:{keys / 'site.key'}")
    text = (build / "SHA256SUMS").read_text()
    (build / "SHA256SUMS").write_text(text.replace("disk", "disc"))
    with pytest.raises(Refused, match="not signed by a key of cosign's"):
        verify(build)
    (build / "SHA256SUMS").write_text(text)
    for trusted in (str(keys / "other.pub"), ""):
        monkeypatch.setenv("MVSTACK_COSIGN_KEYS", trusted)
        with pytest.raises(Refused, match="not signed by a key of cosign's"):
            verify(build)


def test_a_site_without_cosign_is_told(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Missing, match="cosign is not installed"):
        sign(build, "cosign:site.key")
