"""Who could log in to an image with a password: /etc/passwd, /etc/shadow and their backups."""

from collections.abc import Iterator
from pathlib import Path

from mvstack.image.audit_rules import SECRET
from mvstack.image.finding import Finding
from mvstack.image.walk import inside, unreadable

_FILES = ("/etc/passwd", "/etc/passwd-", "/etc/shadow", "/etc/shadow-", "/etc/gshadow")
_OPEN = "the same password opens every machine that starts from the image"


def accounts(root: Path) -> Iterator[Finding]:
    """Accounts with a password, without one, and the one that Packer builds by.

    Raises Missing when a file cannot be read.
    """
    for path in _FILES:
        place = inside(root, path)
        if place is None or not place.is_file():
            continue
        try:
            text = place.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise unreadable(path, error) from None
        for line in text.splitlines():
            fields = line.split(":")
            if len(fields) > 1:
                yield from _account(path, fields)


def _account(path: str, fields: list[str]) -> Iterator[Finding]:
    name, password = fields[:2]
    if name == "packer" and path == "/etc/passwd":
        yield Finding(path, "account packer", "it is the build's own, with the build's rights")
    if path.startswith("/etc/gshadow"):
        # a group without a password is joined by nobody but its members
        if password.strip("!*"):
            yield Finding(path, f"password of the group {name}", SECRET)
    elif password == "":
        yield Finding(path, f"{name} needs no password", "anybody can log in as this account")
    elif password[0] in "!*":
        if password.strip("!*"):
            why = f"{SECRET}; whoever unlocks the account gives it back this password"
            yield Finding(path, f"hash of a password of {name}, locked", why, fails=False)
    elif not (password == "x" and path.startswith("/etc/passwd")):
        yield Finding(path, f"password of {name}", _OPEN)
