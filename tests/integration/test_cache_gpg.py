"""Signatures: what gpg gives back is what was signed, by a key that somebody trusted on purpose."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from mvstack.cache import gpg
from mvstack.support.errors import InvalidInput, Missing, Refused

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
TEXT = '{"a": 1,\n "dash": [\n- 1]}\n-- end\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one key of its own, below a path that is too long for a socket."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("site") / ("long" * 20) / "home"
        patch.setenv("MVSTACK_GNUPGHOME", str(home))
        assert gpg.trusted() == []
        gpg.create("Site of the tests", "a@example.org")
    return home


@pytest.fixture(autouse=True)
def _at_the_site(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(site))


def why(signed: str) -> str:
    with pytest.raises(gpg.BadSignature) as error:
        gpg.verified(signed.encode())
    return str(error.value)


def test_the_home_is_for_its_owner_alone_and_is_not_the_users(
    site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert site.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("MVSTACK_GNUPGHOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert gpg.home() == tmp_path / "mvapich-stack" / "gnupg"


def test_a_signed_text_comes_back_with_its_signer() -> None:
    key = gpg.own_key()
    assert gpg.verified(gpg.sign(TEXT, key.fingerprint).encode()) == (TEXT, key.fingerprint)


def test_text_around_the_signature_is_not_signed() -> None:
    signed = gpg.sign(TEXT, gpg.own_key().fingerprint)
    for forged in (f"evil\n{signed}", f"{signed}evil\n"):
        with contextlib.suppress(gpg.BadSignature):
            assert gpg.verified(forged.encode())[0] == TEXT


def test_changed_unsigned_and_doubled_texts_are_refused() -> None:
    signed = gpg.sign(TEXT, gpg.own_key().fingerprint)
    assert "changed after it was signed" in why(signed.replace('"a": 1', '"a": 2'))
    assert "not signed" in why(TEXT)
    assert "not signed" in why("")
    assert why(signed + signed)
    assert why(signed[: len(signed) // 2])


def test_a_key_that_nobody_trusted_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = gpg.own_key()
    signed, public = gpg.sign(TEXT, key.fingerprint), gpg.export(key.fingerprint)
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "other"))
    assert key.fingerprint in why(signed)
    assert [one.fingerprint for one in gpg.fingerprints_in(public.encode())] == [key.fingerprint]
    assert key.fingerprint in why(signed)  # looking at a key is not trusting it
    gpg.trust(public.encode())
    assert gpg.verified(signed.encode())[1] == key.fingerprint
    with pytest.raises(Refused, match="no key to sign with"):
        gpg.own_key()
    gpg.forget(key.fingerprint)
    assert key.fingerprint in why(signed)


def test_a_key_is_asked_for_by_name_when_there_are_several(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "two"))
    first = gpg.create("First site", "a@example.org")
    gpg.create("Second site", "b@example.org")
    with pytest.raises(Refused, match="several keys"):
        gpg.own_key()
    assert gpg.own_key(first.fingerprint[-16:]) == first


@pytest.mark.parametrize("name", ["x", "a\n%no-ask", "1abcdef", "x" * 61, "%commit now"])
def test_a_name_cannot_give_orders_to_gpg(name: str) -> None:
    with pytest.raises(InvalidInput):
        gpg.create(name, "a@example.org")
    with pytest.raises(InvalidInput):
        gpg.create("A good name", f"a@b\n{name}")


def test_what_is_no_key_is_not_trusted() -> None:
    with pytest.raises(InvalidInput, match="no public key"):
        gpg.trust(b"hello")


def test_a_home_that_is_a_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "file"))
    with pytest.raises(Missing, match="name another in MVSTACK_GNUPGHOME"):
        gpg.trusted()


def test_without_gpg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Missing, match="apt-get install gnupg"):
        gpg.trusted()


def test_what_a_key_signed_is_refused_once_it_has_expired(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Path(tempfile.mkdtemp(dir="/tmp"))  # short enough for the agent's socket
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(home))
    key = gpg.create("A site that ends", "a@example.org")
    signed = gpg.sign(TEXT, key.fingerprint)
    words = ["--quick-set-expire", key.fingerprint, "seconds=1"]
    subprocess.run(["gpg", "--homedir", str(home), "--batch", *words], check=True)
    time.sleep(2)
    assert "EXPKEYSIG" in why(signed)
    shutil.rmtree(home, ignore_errors=True)
