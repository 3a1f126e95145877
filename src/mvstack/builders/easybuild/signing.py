"""What EasyBuild built in a handover: this project's own entries, checked and signed anew."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from mvstack.builders.base import Entry
from mvstack.cache import gpg, store, unpack
from mvstack.cache.place import NotBelieved, Place
from mvstack.cache.push import good
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan


@dataclass(frozen=True)
class Built(Entry):
    """See :class:`mvstack.builders.base.Entry`."""

    found: store.Entry

    def is_of(self, node: Node | None, plan: Plan) -> bool:
        made = self.found.manifest
        says = (made.easyconfig, made.module_file)
        wanted = (node.key, f"modules/{node.file}") if node else says
        return (says, made.os, made.target) == (wanted, plan.os, plan.target)

    def good(self, target: Place, content: str) -> bool:
        return good(target, self.found.manifest.os, content) is not None

    def put(self, target: Place, key: gpg.Key) -> None:
        # what is signed is what is looked at here, and not what lies in the handover later
        with self.found.brought() as archive:
            made = self.found.manifest
            unpack.check(made, archive)
            store.put(target, made, gpg.sign(made.text(), key.fingerprint), archive, key)


def entries(source: Place) -> Iterator[tuple[str, Callable[[], Entry]]]:
    """See :meth:`mvstack.builders.base.Builder.entries`."""
    for os_name, content in store.names(source):
        yield store.manifest_name(os_name, content), partial(_read, source, os_name, content)


def _read(source: Place, os_name: str, content: str) -> Built:
    found = store.find(source, os_name, content)
    if found is None:
        raise NotBelieved("it was there a moment ago")
    with found.brought():
        made = found.manifest
        told = (made.package, made.version, made.content, made.archive.size, found.signer)
        return Built(source, *told, made.easyconfig, tuple(made.requires), found)
