"""On the other side: believe a bundle's key if it is the one that is meant, and keep what it says.

Run by the bundle's own `install`, inside of the checkout that it brought:

    python -m mvstack.bundle.arrive BUNDLE [FINGERPRINT]
"""

import json
import sys
from pathlib import Path

from mvstack.cache import gpg
from mvstack.sources.accepted import Accepted, accept, accepted_for
from mvstack.support.errors import InvalidInput, MvstackError, Refused


def arrive(bundle: Path, fingerprint: str) -> list[str]:
    """Trust the key and note accepted bytes; what was done, a line for each.

    Raises Refused when binaries came and no key was named, or another key than theirs.
    """
    about = json.loads((bundle / "manifest.json").read_text())
    said = []
    signers = about["binaries"]["signed_by"] if about["binaries"] else []
    if signers:
        wanted = fingerprint.replace(" ", "").upper()
        known = {key.fingerprint for key in gpg.trusted()}
        if wanted not in signers and not known & set(signers):
            yours = f", and you trust {wanted}" if wanted else ""
            raise Refused(
                "the binaries of this bundle are signed, and nobody said by whom they may be",
                str(bundle),
                found=f"signed with {', '.join(signers)}{yours}",
                todo="ask who made the bundle for the fingerprint, by another way than the "
                "bundle itself, and give it: ./install --trust FINGERPRINT",
                outcome="Nothing was installed.",
            )
        if wanted in signers and wanted not in known:
            file = bundle / "cache" / "keys" / f"{wanted}.asc"
            found = gpg.fingerprints_in(file.read_bytes())
            if [key.fingerprint for key in found] != [wanted]:
                raise InvalidInput("this file holds another key than its name says", str(file))
            gpg.trust(file.read_bytes())
            said.append(f"trusted from now on: {found[0].fingerprint}  {found[0].name}")
    for row in about["accepted"]:
        one = Accepted(**row)
        known_bytes = accepted_for(one.software, one.version, one.filename)
        if known_bytes is None or known_bytes.sha256 != one.sha256:
            accept(one)
            said.append(
                f"{one.software} {one.version}: not upstream's bytes, accepted by who made the "
                f"bundle: {one.reason}"
            )
    return said


def main() -> None:
    """The program."""
    try:
        for line in arrive(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""):
            print(line)
    except MvstackError as error:
        sys.exit(f"mvstack: {error.title}\n{error}")


if __name__ == "__main__":
    main()
