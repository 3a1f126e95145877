"""Sign and verify with a GPG home of the site's own, never with the user's keyring.

Every public key in that home is trusted, and no other: who trusts a key imports it on purpose.
Spack signs with gpg too, so the same home serves both builders (SPACK_GNUPGHOME).
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.cache.place import NotBelieved
from mvstack.sources.accepted import state_dir
from mvstack.support import locks
from mvstack.support.errors import InvalidInput, Missing, Refused, telling
from mvstack.support.files import full
from mvstack.support.processes import Done, english, run, variable

VARIABLE = "MVSTACK_GNUPGHOME"
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


class BadSignature(NotBelieved):
    """A text is not signed by a trusted key."""


_STATUS = "[GNUPG:] "
# gpg's own words (doc/DETAILS of GnuPG); from the fifth on, why a signature is not good.
_TELLING = (
    *("ERRSIG", "BADSIG", "VALIDSIG", "GOODSIG"),
    *("EXPKEYSIG", "EXPSIG", "NODATA", "NO_PUBKEY", "REVKEYSIG"),
)


def home() -> Path:
    """The GPG home of mvstack: MVSTACK_GNUPGHOME, else ``gnupg`` in the user's state."""
    chosen = os.environ.get(VARIABLE, "")
    return full(chosen) if chosen else state_dir() / "gnupg"


def trusted() -> list[Key]:
    """The keys that are trusted here; none when there is no home yet."""
    if not os.path.lexists(home()):  # what is there and is no folder is an error
        return []
    return _keys(_gpg("--list-keys", "--with-colons", "--with-secret"))


def own_key(wanted: str = "") -> Key:
    """The key to sign with: the only one whose secret half is here, or the one that is named.

    Raises Refused when there is none or when several could be meant.
    """
    asked = wanted.replace(" ", "").upper()
    own = [key for key in trusted() if key.own and key.fingerprint.endswith(asked)]
    if len(own) == 1:
        return own[0]
    what, todo = "several keys could sign", "name one: --key FINGERPRINT"
    if not own:
        what = "there is no key to sign with"
        todo = (
            'mvstack cache keys create "Name of the site"   (once; other machines `keys trust` it)'
        )
    listed = ", ".join(f"{key.fingerprint} ({key.name})" for key in own)
    raise Refused(what, str(home()), found=listed or wanted, todo=todo)


def create(name: str, email: str) -> Key:
    """Make a key that can sign. It has no passphrase: the permissions of the home protect it.

    Raises InvalidInput for a name or address that a key cannot have, Missing without gpg.
    """
    if not re.fullmatch(r"[^\W\d_][\w .,'&/-]{3,59}", name):
        raise InvalidInput(
            "a key needs the name of its site",
            name,
            allowed="5 to 60 letters, digits and . , ' & / -, beginning with a letter",
        )
    if not re.fullmatch(r"[\w.+-]+@[\w.-]+", email):
        raise InvalidInput("not an e-mail address", email, allowed="name@host")
    made, done = _added("--gen-key", "-", data=_KEY.format(name=name, email=email).encode())
    if done.status or len(made) != 1:
        said = _words(done)
        todo = "install gpg-agent, then the same command" if "agent" in said else "see above"
        raise Missing("gpg could not make a key", str(home()), found=said, todo=todo)
    return made[0]


def export(fingerprint: str) -> str:
    """The public half of a key, as text for others to trust."""
    return _gpg("--armor", "--export", fingerprint).stdout.decode()


def fingerprints_in(text: bytes) -> list[Key]:
    """The public keys that ``text`` holds, without trusting them."""
    return _keys(_gpg("--show-keys", "--with-colons", "-", data=text))


def trust(text: bytes) -> list[Key]:
    """Trust every public key in ``text``. Raises InvalidInput when it holds none."""
    found = fingerprints_in(text)
    if not found:
        head = text[:40].decode("utf-8", "replace").partition("\n")[0]
        allowed = "what `mvstack cache keys export` writes"
        raise InvalidInput("no public key was found", allowed=allowed, found=head)
    done = _gpg("--import", data=text)
    there = {key.fingerprint for key in trusted()}
    if not {key.fingerprint for key in found} <= there:
        raise Missing("gpg did not take the key", str(home()), found=_words(done))
    return found


def take_own(text: bytes) -> Key:
    """Import a secret key, e.g. from a protected variable. Raises InvalidInput for any other."""
    made, done = _added("--import", data=text)
    if len(made) != 1:
        raise InvalidInput(
            "this is not one secret key without a passphrase",
            found=_words(done),
            allowed="what `gpg --armor --export-secret-keys FINGERPRINT` writes",
        )
    return made[0]


def _added(*words: str, data: bytes) -> tuple[list[Key], Done]:
    """The keys that can sign and were not there before gpg ran; and what it said."""
    before = {key.fingerprint for key in trusted() if key.own}
    done = _gpg(*words, data=data)
    return [key for key in trusted() if key.own and key.fingerprint not in before], done


def forget(fingerprint: str) -> None:
    """Trust a key no longer, and delete its secret half if it is here."""
    _gpg("--yes", "--delete-secret-and-public-key", fingerprint)


def sign(text: str, fingerprint: str, detached: bool = False) -> str:
    """``text`` with a signature around it, or the signature alone. Raises Refused."""
    how = ("--armor", "--detach-sign") if detached else ("--clear-sign",)
    words = ("--local-user", fingerprint, "--digest-algo", "SHA256", *how)
    done = _gpg(*words, data=text.encode())
    if done.status:
        raise Refused("gpg could not sign", str(home()), found=_words(done))
    return done.text


def verified(signed: bytes) -> tuple[str, str]:
    """The text that a trusted key has signed, and that key's fingerprint.

    Only what gpg gives back is returned: text around the signature is not part of it. Raises
    BadSignature for anything but exactly one good signature.
    """
    if b"-----BEGIN PGP SIGNED MESSAGE-----" not in signed:
        raise BadSignature("it is not signed")
    done = _gpg("--decrypt", data=signed)
    return done.text, _signer(done)


def verified_detached(data: bytes, signature: bytes) -> str:
    """The fingerprint of the trusted key that signed ``data``. Raises BadSignature."""
    with tempfile.NamedTemporaryFile(prefix="mvstack-") as file:
        file.write(signature)
        file.flush()
        return _signer(_gpg("--verify", file.name, "-", data=data))


def _signer(done: Done) -> str:
    """The key of exactly one good signature that gpg has checked. Raises BadSignature."""
    status = [line.split()[1:] for line in done.errors.splitlines() if line.startswith(_STATUS)]
    rows = {word: [line for line in status if line[:1] == [word]] for word in _TELLING}
    for _, short, *more in rows["ERRSIG"]:
        signer = more[-1] if FINGERPRINT.fullmatch(more[-1]) else short
        raise BadSignature(
            f"it is signed with the key {signer}, which is not trusted here",
            "if that is your site's key: mvstack cache keys trust FILE, where FILE is what "
            "`mvstack cache keys export` wrote on the machine that built it",
        )
    if rows["BADSIG"]:
        raise BadSignature("it was changed after it was signed")
    if len(rows["VALIDSIG"]) != 1 or len(rows["GOODSIG"]) != 1 or done.status:
        said = ", ".join(word for word in _TELLING[4:] if rows[word]) or _words(done)
        raise BadSignature(f"its signature cannot be relied on ({said})")
    return rows["VALIDSIG"][0][1]


@contextlib.contextmanager
def agent_home() -> Iterator[None]:
    """For another program that signs: MVSTACK_GNUPGHOME by a name short enough for gpg's agent.

    The agent that it starts is ended with the block.
    """
    with _at_home(agent=True) as folder, variable(VARIABLE, folder):
        yield


def _keys(done: Done) -> list[Key]:
    """Primary keys of gpg's listing for programs (doc/DETAILS of GnuPG)."""
    found = []
    for key in re.split(r"^(?=pub:|sec:)", done.text, flags=re.MULTILINE)[1:]:
        rows: dict[str, list[str]] = {}
        for line in key.splitlines():
            rows.setdefault(line.partition(":")[0], line.split(":"))  # subkeys come later
        name = rows["uid"][9].replace("\\x3a", ":") if "uid" in rows else ""
        found.append(Key(rows["fpr"][9], name, "pub" in rows and rows["pub"][14] == "+"))
    return found


def _words(done: Done) -> str:
    lines = done.errors.splitlines()
    said = [line for line in lines if line.strip() and not line.startswith(_STATUS)]
    return " | ".join(said[-3:]) or f"status {done.status}"


def _gpg(*words: str, data: bytes = b"") -> Done:
    """Run gpg in our home."""
    program = shutil.which("gpg2") or shutil.which("gpg")
    if program is None:
        raise Missing(
            "gpg is not installed; binary caches are signed",
            todo="Debian: apt-get install gnupg; RHEL: dnf install gnupg2",
        )
    with _at_home(agent=words[0] not in ("--decrypt", "--verify", "--show-keys")) as folder:
        command = [
            *(program, "--homedir", folder, "--batch", "--no-tty", "--quiet"),
            *("--no-options", "--trust-model", "always", "--status-fd", "2", *words),
        ]
        return run(command, data=data, env=english(GNUPGHOME=folder))


@contextlib.contextmanager
def _at_home(agent: bool) -> Iterator[str]:
    """Our home, made if need be and for its owner alone, under a name short enough for gpg.

    With an ``agent`` there is one program at a time, for the agent that is ended is everybody's.
    """
    folder = home()
    todo = f"name another in {VARIABLE}"
    with telling(Missing, "the folder for keys cannot be made", where=str(folder), todo=todo):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as stack:
        name = str(folder)
        if len(name) > _LONGEST_HOME:
            short = tempfile.TemporaryDirectory(prefix="mvstack-", dir="/tmp")
            name = f"{stack.enter_context(short)}/g"
            Path(name).symlink_to(folder)
        if agent:
            stack.enter_context(locks.hold(folder / ".mvstack-lock"))
            stack.callback(_end_agent, name)
        yield name


def _end_agent(folder: str) -> None:
    with contextlib.suppress(OSError):
        run(["gpgconf", "--homedir", folder, "--kill", "gpg-agent"])
