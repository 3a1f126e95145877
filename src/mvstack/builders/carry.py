"""Sources on their way into the mirror of a bundle."""

from mvstack.sources.fetch import Fetched, Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Entry, Store


def carried(fetcher: Fetcher, mirror: Store, spec: SourceSpec) -> Fetched:
    """Fetch a source as for an installation, and have it in ``mirror`` too. Raises SourceError."""
    fetched = fetcher.fetch(spec)
    if mirror.get(fetched.sha256) is None:
        size = fetched.path.stat().st_size
        told = (fetched.sha256, spec.filename, spec.name, size, fetched.place, fetched.note)
        mirror.add(fetched.path, Entry(*told), bool(spec.licence_page))
    return fetched
