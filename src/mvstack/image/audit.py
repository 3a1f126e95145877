"""Look through a generalised image, offline, for what must not be in one. Nothing is changed."""

import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mvstack.image.audit_accounts import accounts
from mvstack.image.audit_rules import IDENTITY, SECRET, Rule, rules
from mvstack.image.audit_trust import authorities
from mvstack.image.finding import Finding
from mvstack.image.globs import any_of
from mvstack.image.packages import owned
from mvstack.image.walk import CAPABILITY, Node, walk
from mvstack.support.errors import Missing
from mvstack.support.units import clean

# A key among the tests or examples of a package is no secret.
_OF_A_PACKAGE = re.compile(r"/opt/.*/(?:tests?|testing|testdata|examples?|samples?|demos?|docs?)/")
_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-")
_LARGEST_KEY = 1 << 20  # bytes; a file with a key in it is small
_PRIVATE = "private key"
_COMPILED = re.compile(r"(.*)/__pycache__/([^/.]+)\.[^/]*\.pyc")
_COMMENT = re.compile(r"^\s*(?:#|//\s).*$", re.MULTILINE)


@dataclass
class _Sum:
    rule: Rule
    files: int = 0
    size: int = 0


def audit(root: Path) -> list[Finding]:
    """What is in the file tree ``root`` that an image must not hold, sorted by path.

    Raises Missing for what cannot be read.
    """
    nodes = sorted(walk(root), key=lambda node: node.path)
    packaged = _Packaged(root)
    found = {
        *_by_rule(nodes, packaged),
        *_keys(nodes, packaged),
        *_privileged(nodes, packaged),
        *_machine_id(nodes),
        *accounts(root),
        *authorities(root),
    }
    told = {finding.path for finding in found if finding.what != _PRIVATE}
    # a host key is a private key too: it is told once
    return sorted(one for one in found if one.what != _PRIVATE or one.path not in told)


class _Packaged:
    """The files that packages own, asked for when they are first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def paths(self) -> Collection[str] | None:
        """None where nobody can tell."""
        try:
            return owned(self._root)
        except Missing:
            return None

    def has(self, path: str) -> bool:
        """Whether a package is known to own it, or what it was compiled from."""
        if found := _COMPILED.fullmatch(path):
            path = f"{found[1]}/{found[2]}.py"
        return path in (self.paths or ())


def _by_rule(nodes: list[Node], packaged: _Packaged) -> Iterator[Finding]:
    patterns = [(rule, any_of(rule.paths)) for rule in rules()]
    everything = any_of(path for rule in rules() for path in rule.paths)
    sums: dict[str, _Sum] = {}
    for node in nodes:
        if not everything.fullmatch(node.path):
            continue
        rule = next((rule for rule, paths in patterns if _fits(rule, paths, node)), None)
        if rule and rule.when == "unowned" and packaged.has(node.path):
            continue
        if rule and rule.below:
            total = sums.setdefault(rule.below, _Sum(rule))
            total.files += 1
            total.size += node.status.st_size
        elif rule:
            yield Finding(node.path, rule.what, rule.why, rule.fails)
    for folder, total in sums.items():
        what = f"{total.rule.what}: {total.files} files, {total.size / 1e6:.1f} MB"
        yield Finding(folder, what, total.rule.why, total.rule.fails)


def _fits(rule: Rule, paths: re.Pattern[str], node: Node) -> bool:
    if not paths.fullmatch(node.path):
        return False
    if rule.when == "entry":
        return True
    if rule.when == "there":
        return not node.is_folder
    if not node.is_file or not node.status.st_size:
        return False
    if rule.found is None:
        return True
    text = node.read(_LARGEST_KEY).decode("utf-8", "replace")
    return bool(rule.found.search(_COMMENT.sub("", text)))


def _keys(nodes: list[Node], packaged: _Packaged) -> Iterator[Finding]:
    for node in nodes:
        small = node.is_file and 0 < node.status.st_size <= _LARGEST_KEY
        if not small or _OF_A_PACKAGE.match(node.path) or not _KEY.search(node.read()):
            continue
        # what a package puts below /usr (an example, a program that writes keys) is no secret
        if not (node.path.startswith("/usr/") and packaged.has(node.path)):
            yield Finding(node.path, _PRIVATE, SECRET)


def _privileged(nodes: list[Node], packaged: _Packaged) -> Iterator[Finding]:
    """Files that give their rights to whoever runs them and that no package owns."""
    found = {node.path: how for node in nodes if node.is_file and (how := _rights(node))}
    if not found:
        return
    if packaged.paths is None:
        why = "whether a package owns them is unknown: its list cannot be read"
        yield Finding("/", f"{len(found)} files that give rights to who runs them", why)
        return
    for path, how in found.items():
        if not packaged.has(path):
            why = "nothing updates it, and a fault in it gives its rights to every user"
            yield Finding(path, f"{how} file that no package owns", why)


def _rights(node: Node) -> str:
    mode = node.status.st_mode
    if mode & stat.S_ISUID:
        return "setuid"
    if mode & stat.S_ISGID and mode & 0o111:
        return "setgid"
    return "privileged (capabilities)" if CAPABILITY in node.attributes() else ""


def _machine_id(nodes: list[Node]) -> Iterator[Finding]:
    """machine-id(5): empty, "uninitialized" or no file at all in an image of several machines."""
    for node in nodes:
        if node.path in ("/etc/machine-id", "/var/lib/dbus/machine-id") and node.is_file:
            text = node.read(100).decode("utf-8", "replace").strip()
            if text not in ("", "uninitialized"):
                yield Finding(node.path, f"machine id {clean(text)}", IDENTITY)
