"""Signatures by cosign, for a site whose keys are in a KMS, on a token, or in cosign's own files.

The network is not asked: neither a transparency log nor certificates.
"""

import base64
import hashlib
import os
import re
import tempfile
from pathlib import Path

from mvstack.support.errors import Missing, Refused, relative
from mvstack.support.processes import run

PREFIX = "cosign:"
TRUSTED = "MVSTACK_COSIGN_KEYS"
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----(.+?)-----END PUBLIC KEY-----", re.S)


def reference(key: str) -> str:
    """What cosign calls the key of ``--key cosign:REFERENCE``; "" for a key of GPG."""
    return key.removeprefix(PREFIX) if key.startswith(PREFIX) else ""


def own(key: str) -> str:
    """The name of the key ``key`` of cosign's that can sign here.

    Raises Missing without cosign, Refused when cosign cannot use the key, or it is not trusted.
    """
    name = _name(_said("public-key", "--key", key), key)
    if name not in _trusted():
        todo = f"{TRUSTED}=FILE[:FILE…] names public keys: cosign public-key --key {key} >FILE"
        raise Refused("the key that signs is not among those trusted", key, todo=todo)
    return name


def sign(text: str, key: str) -> str:
    """The signature of ``text`` by ``key``, as sigstore's bundle. Raises as own."""
    options = ("--yes", "--use-signing-config=false", "--tlog-upload=false")
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        bundle = Path(folder) / "bundle"
        _said("sign-blob", *options, "--key", key, "--bundle", str(bundle), "-", data=text.encode())
        return bundle.read_text()


def signer(text: bytes, bundle: Path) -> str:
    """Which trusted key signed ``text``. Raises Missing without cosign, Refused when none did."""
    said = ""
    for name, file in _trusted().items():
        try:
            options = ("--insecure-ignore-tlog=true", "--key", file)
            _said("verify-blob", *options, "--bundle", str(bundle), "-", data=text)
        except Refused as error:
            said = error.problems[0].found
        else:
            return name
    raise Refused(
        "the build is not signed by a key of cosign's that is trusted here",
        relative(bundle),
        found=said or "no key is trusted",
        todo=f"{TRUSTED}=FILE[:FILE…] names the public keys of those you trust",
    )


def _trusted() -> dict[str, str]:
    """Name → file of each public key that the environment names."""
    files = filter(None, os.environ.get(TRUSTED, "").split(":"))
    try:
        return {_name(Path(file).read_text(), file): file for file in files}
    except OSError as error:
        said = f"{TRUSTED} names a file that cannot be read: {error.strerror}"
        raise Missing(said, str(error.filename)) from None


def _name(text: str, where: str) -> str:
    """What a key in PEM is called: the SHA-256 of its DER, as sigstore's tools print it."""
    if not (found := _PEM.search(text)):
        raise Refused("is no public key in PEM", where, found=text[:80])
    return f"cosign {hashlib.sha256(base64.b64decode(found[1])).hexdigest()}"


def _said(*words: str, data: bytes = b"") -> str:
    try:
        done = run(["cosign", *words], data=data)
    except FileNotFoundError:
        todo = "install it (docs.sigstore.dev), or sign by GPG: leave --key cosign:… out"
        raise Missing("cosign is not installed", todo=todo) from None
    if not done.ok:
        raise Refused(f"cosign {words[0]} failed", found=done.errors.strip()[-300:])
    return done.text
