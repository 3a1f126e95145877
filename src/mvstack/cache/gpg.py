"""Sign and verify with a GPG home of the site's own, never with the user's keyring.

Every public key in that home is trusted, and no other: who trusts a key imports it on purpose.
Spack signs with gpg too, so the same home serves both builders (SPACK_GNUPGHOME).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.sources.accepted import state_dir
from mvstack.support import locks
from mvstack.support.errors import InvalidInput, Missing, Problem, Refused
from mvstack.support.processes import Done, english, run

FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
# A socket's path may have 107 characters; gpg-agent's longest name has 21 with its slash.
_LONGEST_HOME = 107 - 21
_KEY = """\
%no-protection
Key-Type: RSA
Key-Length: 4096
Key-Usage: sign
Name-Real: {name}
Name-Comment: mvapich-stack binary cache
Name-Email: {email}
Expire-Date: 0
%commit
"""


@dataclass(frozen=True)
class Key:
    """One key of the home; ``own`` when its secret half is here, so that it can sign."""

    fingerprint: str
    name: str
    own: bool


class BadSignature(Exception):
    """A text is not signed by a trusted key; the text says why and ``todo`` what to do."""

    def __init__(self, why: str, todo: str = "") -> None:
        super().__init__(why)
        self.todo = todo


def home() -> Path:
    """The GPG home of mvstack: MVSTACK_GNUPGHOME, else ``gnupg`` in the user's state."""
    chosen = os.environ.get("MVSTACK_GNUPGHOME", "")
    return Path(chosen).absolute() if chosen else state_dir() / "gnupg"


def trusted() -> list[Key]:
    """The keys that are trusted here; none when there is no home yet."""
    if not os.path.lexists(home()):  # what is there and is no folder is an error
        return []
    own = {key.fingerprint for key in _listed("--list-secret-keys", own=True)}
    return [Key(k.fingerprint, k.name, k.fingerprint in own) for k in _listed("--list-keys")]


def own_key(wanted: str = "") -> Key:
    """The key to sign with: the only one whose secret half is here, or the one that is named.

    Raises Refused when there is none or when several could be meant.
    """
    own = [key for key in trusted() if key.own]
    if wanted:
        asked = wanted.replace(" ", "").upper()
        own = [key for key in own if key.fingerprint.endswith(asked)]
    if len(own) == 1:
        return own[0]
    listed = ", ".join(f"{key.fingerprint} ({key.name})" for key in own)
    raise Refused(
        Problem(
            "several keys could sign" if own else "there is no key to sign with",
            str(home()),
            found=listed or wanted,
            todo="name one: --key FINGERPRINT"
            if own
            else 'mvstack cache keys create "Name of the site"   (once; `keys trust` on machines '
            "that install)",
        )
    )


def create(name: str, email: str) -> Key:
    """Make a key that can sign. It has no passphrase: what protects it is who may read the home.

    Raises InvalidInput for a name or address that a key cannot have, Missing without gpg.
    """
    if not re.fullmatch(r"[^\W\d_][\w .,'&/-]{3,59}", name):
        raise InvalidInput(
            Problem(
                "a key needs the name of its site",
                name,
                allowed="5 to 60 letters, digits and . , ' & / -, beginning with a letter",
            )
        )
    if not re.fullmatch(r"[\w.+-]+@[\w.-]+", email):
        raise InvalidInput(Problem("this is no e-mail address", email, allowed="name@host"))
    before = {key.fingerprint for key in trusted()}
    done = _gpg("--gen-key", "-", text=_KEY.format(name=name, email=email))
    made = [key for key in trusted() if key.own and key.fingerprint not in before]
    if done.status or len(made) != 1:
        said = _words(done)
        todo = "install gpg-agent, then the same command" if "agent" in said else "see above"
        raise Missing(Problem("gpg could not make a key", str(home()), found=said, todo=todo))
    return made[0]


def export(fingerprint: str) -> str:
    """The public half of a key, as text for others to trust."""
    return _gpg("--armor", "--export", fingerprint).text


def fingerprints_in(text: bytes) -> list[Key]:
    """The public keys that ``text`` holds, without trusting them."""
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        done = _gpg("--with-colons", "--show-keys", "-", data=text, at=Path(folder))
    return _from_colons(done.text)


def trust(text: bytes) -> list[Key]:
    """Trust every public key in ``text``. Raises InvalidInput when it holds none."""
    found = fingerprints_in(text)
    if not found:
        raise InvalidInput(
            Problem(
                "this is no public key",
                allowed="what `mvstack cache keys export` writes",
                found=text[:40].decode("utf-8", "replace").partition("\n")[0],
            )
        )
    done = _gpg("--import", data=text)
    there = {key.fingerprint for key in trusted()}
    if not {key.fingerprint for key in found} <= there:
        raise Missing(Problem("gpg did not take the key", str(home()), found=_words(done)))
    return found


def take_own(text: bytes) -> Key:
    """Import a secret key that signs, e.g. from a protected variable, and return it.

    Raises InvalidInput when ``text`` holds no secret key or one with a passphrase.
    """
    before = {key.fingerprint for key in trusted() if key.own}
    done = _gpg("--import", data=text)
    made = [key for key in trusted() if key.own and key.fingerprint not in before]
    if len(made) != 1:
        raise InvalidInput(
            Problem(
                "this is not one secret key without a passphrase",
                found=_words(done),
                allowed="what `gpg --armor --export-secret-keys FINGERPRINT` writes",
            )
        )
    return made[0]


def forget(fingerprint: str) -> None:
    """Trust a key no longer, and lose its secret half too if it is here."""
    _gpg("--yes", "--delete-secret-and-public-key", fingerprint)


def sign(text: str, fingerprint: str) -> str:
    """``text`` with a signature around it, as one text. Raises Refused when gpg will not."""
    done = _gpg("--local-user", fingerprint, "--digest-algo", "SHA256", "--clear-sign", text=text)
    if done.status:
        raise Refused(Problem("gpg could not sign", str(home()), found=_words(done)))
    return done.text


def verified(signed: bytes) -> tuple[str, str]:
    """The text that a trusted key has signed, and that key's fingerprint.

    Only what gpg gives back is returned: text around the signature is not part of it. Raises
    BadSignature for anything but exactly one good signature.
    """
    if b"-----BEGIN PGP SIGNED MESSAGE-----" not in signed:
        raise BadSignature("it is not signed", "have it pushed again by who built it")
    done = _gpg("--decrypt", data=signed)
    signer = _signer(done)
    return done.text, signer


def sign_detached(data: bytes, fingerprint: str) -> str:
    """A signature of ``data`` for a file of its own. Raises Refused when gpg will not."""
    words = ("--local-user", fingerprint, "--digest-algo", "SHA256", "--armor", "--detach-sign")
    done = _gpg(*words, data=data)
    if done.status:
        raise Refused(Problem("gpg could not sign", str(home()), found=_words(done)))
    return done.text


def verified_detached(data: bytes, signature: bytes) -> str:
    """The fingerprint of the trusted key that signed ``data``. Raises BadSignature."""
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        return _signer(_gpg("--verify", str(file), "-", data=data))


def _signer(done: Done) -> str:
    """The key of exactly one good signature that gpg has checked. Raises BadSignature."""
    status = [line.split() for line in _status(done)]
    words = {line[0] for line in status if line}
    if unknown := [line for line in status if line and line[0] == "ERRSIG"]:
        signer = unknown[0][-1] if FINGERPRINT.fullmatch(unknown[0][-1]) else unknown[0][1]
        raise BadSignature(
            f"it is signed with the key {signer}, which is not trusted here",
            "if that is your site's key: mvstack cache keys trust FILE, where FILE is what "
            "`mvstack cache keys export` wrote on the machine that built it",
        )
    if "BADSIG" in words:
        raise BadSignature(
            "it was changed after it was signed", "have it pushed again by who built it"
        )
    valid = [line[1] for line in status if line and line[0] == "VALIDSIG"]
    good = [line for line in status if line and line[0] == "GOODSIG"]
    if len(valid) != 1 or len(good) != 1 or done.status:
        said = ", ".join(sorted(words & _TELLING)) or _words(done)
        raise BadSignature(f"its signature cannot be relied on ({said})")
    return valid[0]


_TELLING = {"EXPKEYSIG", "REVKEYSIG", "EXPSIG", "NODATA", "NO_PUBKEY"}


@contextlib.contextmanager
def agent_home() -> Iterator[None]:
    """For another program that signs: MVSTACK_GNUPGHOME by a name short enough for gpg's agent.

    The agent that it starts is ended with the block.
    """
    before = os.environ.get("MVSTACK_GNUPGHOME")
    with _usable(home()) as folder, _alone(Path(folder), True):
        os.environ["MVSTACK_GNUPGHOME"] = folder
        try:
            yield
        finally:
            _end_agent(folder)
            if before is None:
                del os.environ["MVSTACK_GNUPGHOME"]
            else:
                os.environ["MVSTACK_GNUPGHOME"] = before


def _listed(what: str, own: bool = False) -> list[Key]:
    text = _gpg("--with-colons", what).text
    return [Key(key.fingerprint, key.name, own) for key in _from_colons(text)]


def _from_colons(text: str) -> list[Key]:
    """Primary keys of gpg's listing for programs (doc/DETAILS of GnuPG)."""
    found: list[Key] = []
    primary = False
    for line in text.splitlines():
        fields = line.split(":")
        if fields[0] in ("pub", "sec"):
            primary = True
        elif fields[0] == "fpr" and primary:
            found.append(Key(fields[9], "", False))
            primary = False
        elif fields[0] == "uid" and found and not found[-1].name:
            found[-1] = Key(found[-1].fingerprint, fields[9].replace("\\x3a", ":"), False)
    return found


def _status(done: Done) -> list[str]:
    mark = "[GNUPG:] "
    lines = done.errors.splitlines()
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


def _words(done: Done) -> str:
    lines = done.errors.splitlines()
    said = [line for line in lines if line.strip() and not line.startswith("[GNUPG:]")]
    return " | ".join(said[-3:]) or f"status {done.status}"


def _gpg(*words: str, text: str = "", data: bytes = b"", at: Path | None = None) -> Done:
    """Run gpg in our home; what it started in the background is ended with it."""
    program = shutil.which("gpg2") or shutil.which("gpg")
    if program is None:
        raise Missing(
            Problem(
                "gpg is not installed, and a binary cache is signed",
                todo="Debian: apt-get install gnupg; RHEL: dnf install gnupg2",
            )
        )
    needs_agent = at is None and words[0] not in ("--decrypt", "--verify")
    with _usable(at or home()) as folder, _alone(Path(folder), needs_agent):
        command = [
            *(program, "--homedir", folder, "--batch", "--no-tty", "--quiet"),
            *("--no-options", "--trust-model", "always", "--status-fd", "2", *words),
        ]
        try:
            return run(command, data=text.encode() or data, env=english(GNUPGHOME=folder))
        finally:
            if needs_agent:
                _end_agent(folder)


def _end_agent(folder: str) -> None:
    with contextlib.suppress(OSError):
        run(["gpgconf", "--homedir", folder, "--kill", "gpg-agent"])


@contextlib.contextmanager
def _alone(folder: Path, wanted: bool) -> Iterator[None]:
    """One gpg at a time in a home, for the agent that one of them ends is everybody's."""
    if not wanted:
        yield
        return
    with locks.hold(folder / ".mvstack-lock"):
        yield


@contextlib.contextmanager
def _usable(folder: Path) -> Iterator[str]:
    """``folder``, made if need be and for its owner alone, under a name short enough for gpg."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Missing(
            Problem(
                f"the folder for keys cannot be made: {error.strerror}",
                str(folder),
                todo="name another in MVSTACK_GNUPGHOME",
            )
        ) from None
    if len(str(folder)) <= _LONGEST_HOME:
        yield str(folder)
        return
    with tempfile.TemporaryDirectory(prefix="mvstack-", dir="/tmp") as short:
        link = Path(short) / "g"
        link.symlink_to(folder)
        yield str(link)
