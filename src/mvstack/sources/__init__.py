"""The source mirror: every source by its SHA-256, for both builders and for sites without network.

Looked for in this order: the mirror, the mirrors that a site names, upstream, the Debian source
archive, PyPI (wheels). Whatever the place, the bytes must have a hash that the recipe lists, or
one that a person accepted on purpose. docs/sources.md is the guide.
"""

from mvstack.sources.accepted import Accepted, accepted_for, state_dir
from mvstack.sources.fetch import Fetched, Fetcher, site_mirrors
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Entry, Store

__all__ = [
    "Accepted",
    "Entry",
    "Fetched",
    "Fetcher",
    "SourceSpec",
    "Store",
    "accepted_for",
    "site_mirrors",
    "specs_from_easyconfigs",
    "state_dir",
]
