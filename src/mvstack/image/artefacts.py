"""The files of a build's folder that are published with the image, and their hashes."""

import re
from collections.abc import Collection
from pathlib import Path

from mvstack.support.errors import Missing, Problem, Refused, relative
from mvstack.support.files import sha256_of

SUMS, SIGNATURE, STATE = "SHA256SUMS", "SHA256SUMS.asc", "image.json"
BUNDLE = "SHA256SUMS.sigstore.json"  # the signature where cosign signs
# The state goes on changing after the build, and the sums cannot hold themselves.
NOT_SIGNED = frozenset({SUMS, SIGNATURE, BUNDLE, STATE})
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")


def artefacts(folder: Path, but: Collection[str] = NOT_SIGNED) -> dict[str, str]:
    """Name → SHA-256 of every file below ``folder`` but those named, sorted by name.

    Raises Refused for what is no plain file or has an odd name, Missing for what cannot be read.
    """
    found, problems = {}, []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name in but or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file():
            problems.append(Problem("is no plain file, and what it is cannot be signed", name))
        elif not NAME.fullmatch(name):
            problems.append(
                Problem(
                    "has a name that a list of sums cannot hold safely",
                    repr(name),
                    allowed="letters, digits and _ . + -, not beginning with a dot or a dash",
                )
            )
        else:
            found[name] = sha256(path)
    if problems:
        raise Refused(*problems, outcome="Nothing was signed.")
    return found


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises Missing when it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise Missing(f"cannot be read: {error.strerror}", relative(path)) from None
