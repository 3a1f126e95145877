"""Sign what was built, and tell what became of it since.

``SHA256SUMS`` names every artefact of a build's folder, as ``sha256sum --check`` reads it. Its
signature is ``SHA256SUMS.asc``, by the key of GPG that signs the site's binary caches, or
``SHA256SUMS.sigstore.json``, by cosign. The state of the build (``image.json``) goes on changing
and is not signed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from mvstack.cache import gpg
from mvstack.image import cosign
from mvstack.image.artefacts import BUNDLE, NAME, NOT_SIGNED, SIGNATURE, SUMS, artefacts, sha256
from mvstack.support.errors import CheckFailed, Problem, Refused, relative
from mvstack.support.files import write_atomically

_LINE = re.compile(rf"([0-9a-f]{{64}})  ({NAME.pattern})")
_AGAIN = "take it from where it was built, or build the image again"


@dataclass(frozen=True)
class Verified:
    """Who signed a build's folder, by the fingerprint of the key, and its files with SHA-256."""

    signer: str
    files: dict[str, str]


def own_key(key: str) -> str:
    """The name of the key that ``key`` is. Raises Refused when it cannot sign here."""
    reference = cosign.reference(key)
    return cosign.own(reference) if reference else gpg.own_key(key).fingerprint


def sign(folder: Path, key: str = "") -> Verified:
    """Write SHA256SUMS and its signature over every artefact of ``folder``.

    ``key`` is ``cosign:`` and what cosign calls a key, or the fingerprint of one of GPG, or its
    end; without it there must be one key of GPG that can sign. Raises Refused when there is no such
    key, nothing to sign, or something that cannot be signed.
    """
    signer = own_key(key)
    files = artefacts(folder)
    if not files:
        raise Refused("there is nothing to sign", relative(folder))
    text = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    reference = cosign.reference(key)
    signed = cosign.sign(text, reference) if reference else gpg.sign(text, signer, detached=True)
    for name in (SIGNATURE, BUNDLE):
        (folder / name).unlink(missing_ok=True)
    write_atomically(folder / SUMS, text)
    write_atomically(folder / (BUNDLE if reference else SIGNATURE), signed)
    return Verified(signer, files)


def signature(folder: Path) -> Path:
    """The file that signs SHA256SUMS in ``folder``, which need not be there."""
    return folder / (BUNDLE if (folder / BUNDLE).is_file() else SIGNATURE)


def verify(folder: Path) -> Verified:
    """Who signed ``folder``, when every artefact is as it was signed and there is no other.

    Raises Refused when it is not signed by a key that is trusted here, CheckFailed naming each file
    that was changed, is missing, or is there and was not signed.
    """
    sums, by = folder / SUMS, signature(folder)
    for path in (sums, by):
        if not path.is_file():
            raise Refused(
                "the build is not signed",
                relative(path),
                found="there is no such file",
                todo="mvstack image build signs what it has built and tested",
            )
    text = sums.read_bytes()
    try:
        signer = (
            cosign.signer(text, by)
            if by.name == BUNDLE
            else gpg.verified_detached(text, by.read_bytes())
        )
    except gpg.BadSignature as error:
        raise Refused(
            f"the build cannot be believed: {error}",
            relative(by),
            todo=error.todo if "not trusted" in str(error) else _AGAIN,
        ) from None
    files = _parsed(text.decode("utf-8", "replace"), sums)
    problems = [*_differing(folder, files), *_extra(folder, files)]
    if problems:
        raise CheckFailed(*problems, outcome="The build is not what was signed.")
    return Verified(signer, files)


def _parsed(text: str, path: Path) -> dict[str, str]:
    files = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in NOT_SIGNED:
            where = f"{relative(path)}:{number}"
            raise Refused("is no line that mvstack signs", where, found=line[:80])
        files[match[2]] = match[1]
    return files


def _differing(folder: Path, files: dict[str, str]) -> list[Problem]:
    problems = []
    for name, digest in files.items():
        path = folder / name
        where = relative(path)
        if path.is_symlink() or not path.is_file():
            problems.append(Problem("is missing, and was signed", where, todo=_AGAIN))
        elif (found := sha256(path)) != digest:
            problems.append(
                Problem(
                    "was changed after it was signed",
                    where,
                    found=f"sha256 {found}",
                    allowed=f"sha256 {digest}",
                    todo=_AGAIN,
                )
            )
    return problems


def _extra(folder: Path, files: dict[str, str]) -> list[Problem]:
    names = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return [
        Problem("is there, and was not signed", relative(folder / name), todo="take it away")
        for name in sorted(names - {*files, *NOT_SIGNED})
    ]
